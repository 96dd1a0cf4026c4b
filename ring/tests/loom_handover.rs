//! Slots, schema stream and mailbox over loom's atomics: what was written before a word was
//! published is there for whoever has seen the word.
#![cfg(loom)]

mod models;

use std::sync::Arc;

use loom::thread;
use models::*;
use ringmark_format::mailbox::MAILBOX_BYTES;
use ringmark_format::session::{Extent, Mode};
use ringmark_format::slot::state;
use ringmark_format::{PageNumber, RingId};
use ringmark_ring::SlotView;
use ringmark_ring::mailbox::{Answer, Mailbox};
use ringmark_ring::observe::{self, PageRead};
use ringmark_ring::schema_log::{STATE_WORDS, SchemaLog};
use ringmark_ring::slot::SLOT_WORDS;
use ringmark_ring::sync::AtomicU64;

/// A reader that sees a claim sees its geometry, owner and positions.
fn first_claim() {
    let mut memory = Memory::default();
    let slot = SlotView::new(memory.words(SLOT_WORDS), &memory.words(1)[0]).unwrap();
    let thread = thread::spawn(move || {
        assert!(slot.claim(state::FREE));
        slot.set_geometry(geometry());
        slot.set_owner(RingId(RING_ID), 42, [b'x'; 16]);
        slot.publish_state(state::ACTIVE);
    });
    if slot.state() == state::ACTIVE {
        assert_eq!(slot.geometry(), geometry(), "{VIOLATED}: geometry");
        let owner = (
            slot.ring_id(),
            slot.tid(),
            slot.claims(),
            slot.thread_name(),
        );
        let expected = (RingId(RING_ID), 42, 1, [b'x'; 16]);
        assert_eq!(owner, expected, "{VIOLATED}: owner");
    }
    thread.join().unwrap();
    drop(memory);
}

/// A reader that sees the seal finds the last page whole and the reservations counted.
fn sealed_claim() {
    let model = Model::new(Mode::Overwrite);
    model.fill(1);
    let owner = model.clone();
    let thread = thread::spawn(move || {
        owner.emit(1).unwrap();
        owner.writer.seal();
    });
    if model.slot.ended() {
        assert_eq!(model.slot.events_sealed(), 2, "{VIOLATED}: events_sealed");
        let mut copy = [0; PAGE_WORDS];
        let read = observe::copy_sealed(model.page(0), PageNumber(0), &mut copy);
        let PageRead::Copied(kept) = read else {
            panic!("{VIOLATED}: page 0 is gone");
        };
        check_sealed(&copy, kept, 0);
    }
    thread.join().unwrap();
}

/// One of two claimers gets a sealed slot, after everything its last owner did. The shadow stands
/// for the writer's private words.
fn next_owner() {
    fn claim(model: &Model, ring_id: u64) -> bool {
        let won = model.slot.claim(state::SEALED);
        if won {
            model.shadow[0].with_mut(|_| ());
            assert_eq!(model.slot.events_sealed(), 1, "{VIOLATED}: events_sealed");
            assert_eq!(model.slot.claims(), 1, "{VIOLATED}: claims");
            model.slot.set_owner(RingId(ring_id), 43, [0; 16]);
            model.slot.publish_state(state::ACTIVE);
        }
        won
    }
    let model = Model::new(Mode::Overwrite);
    model.fill(1);
    let (owner, rival) = (model.clone(), model.clone());
    let owner = thread::spawn(move || {
        owner.shadow[0].with_mut(|_| ());
        owner.writer.seal();
    });
    let rival = thread::spawn(move || claim(&rival, 8));
    let won = claim(&model, 9);
    owner.join().unwrap();
    let rival_won = rival.join().unwrap();
    assert!(!(won && rival_won), "{VIOLATED}: two owners");
    if won || rival_won {
        let expected = RingId(if won { 9 } else { 8 });
        assert_eq!(model.slot.ring_id(), expected, "{VIOLATED}: owner");
    }
}

/// The schema stream's words: two extents of three words each.
struct Schema {
    state: &'static [AtomicU64; STATE_WORDS],
    file: &'static [AtomicU64],
    _memory: Memory,
}

// SAFETY: the memory is touched at the drop only, when the model's threads have ended.
unsafe impl Send for Schema {}
// SAFETY: as above.
unsafe impl Sync for Schema {}

const EXTENTS: [Extent; 2] = [
    Extent {
        offset: 0,
        bytes: 24,
    },
    Extent {
        offset: 32,
        bytes: 24,
    },
];

impl Schema {
    fn new() -> Arc<Self> {
        let mut memory = Memory::default();
        let schema = Self {
            state: memory.words(STATE_WORDS).first_chunk().unwrap(),
            file: memory.words(7),
            _memory: memory,
        };
        schema.log().add_extent(EXTENTS[0]).unwrap();
        Arc::new(schema)
    }

    fn log(&self) -> SchemaLog<'static> {
        SchemaLog::over(self.state, self.file)
    }
}

fn entry(first: u8, words: u8) -> Vec<u8> {
    (first..first + 8 * words).collect()
}

/// A reader finds every byte below the length it saw, in whichever extent it lies.
fn schema_stream() {
    let schema = Schema::new();
    let seen = schema.clone();
    let reader = thread::spawn(move || check_schema(&seen.log().read(0)));
    // The producer comes first: loom overlooks that a load was followed by a store of a thread
    // that has loaded the word itself in between, as `append` does.
    let log = schema.log();
    log.append(&entry(1, 2)).unwrap();
    log.add_extent(EXTENTS[1]).unwrap();
    log.append(&entry(17, 3)).unwrap();
    reader.join().unwrap();
}

fn check_schema(read: &[u8]) {
    assert!(
        [0, 16, 40].contains(&read.len()),
        "{VIOLATED}: length {}",
        read.len()
    );
    let expected = &entry(1, 5)[..read.len()];
    assert_eq!(read, expected, "{VIOLATED}: schema bytes");
}

/// A reader that has copied a record finds the schema that was there before it.
fn schema_before_record() {
    let model = Model::new(Mode::Overwrite);
    model.fill(1);
    let schema = Schema::new();
    let (seen, stream) = (model.clone(), schema.clone());
    let reader = thread::spawn(move || {
        let mut copy = [0; PAGE_WORDS];
        let read = observe::copy_open(seen.page(0), PageNumber(0), &mut copy);
        if matches!(read, PageRead::Copied(_)) && copy[PAGE_WORDS - 3] == committed(1) {
            let read = stream.log().read(0);
            assert_eq!(read, entry(1, 1), "{VIOLATED}: schema of a record");
        }
    });
    schema.log().append(&entry(1, 1)).unwrap();
    model.emit(1).unwrap();
    reader.join().unwrap();
}

/// A request and its answer are there when their numbers are.
fn mailbox() {
    let mut memory = Memory::default();
    let words = memory.words(MAILBOX_BYTES / 8);
    let mailbox = Mailbox::over(words).unwrap();
    let helper = thread::spawn(move || {
        let number = mailbox.requested();
        if number == 0 {
            return;
        }
        assert_eq!(mailbox.request_text(), "list", "{VIOLATED}: request");
        let text = "none".into();
        mailbox.answer(number, &Answer { status: 3, text });
    });
    let number = mailbox.request("list").unwrap();
    if mailbox.answered() == number {
        let answer = mailbox.read_answer();
        let text = "none".into();
        assert_eq!(answer, Answer { status: 3, text }, "{VIOLATED}: answer");
    }
    helper.join().unwrap();
    drop(memory);
}

/// An answer is there when its number is.
fn answer() {
    let mut memory = Memory::default();
    let words = memory.words(MAILBOX_BYTES / 8);
    let mailbox = Mailbox::over(words).unwrap();
    let number = mailbox.request("list").unwrap();
    let text = || "none".to_owned();
    let controller = thread::spawn(move || {
        if mailbox.answered() == number {
            let (status, text) = (3, text());
            let answer = mailbox.read_answer();
            assert_eq!(answer, Answer { status, text }, "{VIOLATED}: answer");
        }
    });
    let (status, text) = (3, text());
    mailbox.answer(number, &Answer { status, text });
    controller.join().unwrap();
    drop(memory);
}

/// A request never comes over one that the helper may still read.
fn request_after_an_answer() {
    let mut memory = Memory::default();
    let words = memory.words(MAILBOX_BYTES / 8);
    let mailbox = Mailbox::over(words).unwrap();
    let forgotten = mailbox.request("forgotten").unwrap();
    let helper = thread::spawn(move || {
        assert_eq!(mailbox.request_text(), "forgotten", "{VIOLATED}: request");
        let text = "late".into();
        mailbox.answer(forgotten, &Answer { status: 0, text });
    });
    let number = mailbox.request("new");
    helper.join().unwrap();
    assert_eq!(mailbox.read_answer().text, "late", "{VIOLATED}: answer");
    if number.is_some() {
        assert_eq!(mailbox.request_text(), "new", "{VIOLATED}: request");
    }
    drop(memory);
}

#[test]
fn a_claim_brings_its_facts() {
    holds("first claim", first_claim);
    holds("sealed claim", sealed_claim);
}

#[test]
fn a_sealed_slot_has_one_next_owner() {
    holds("next owner", next_owner);
}

#[test]
fn published_schema_is_there() {
    holds("schema stream", schema_stream);
    holds("schema before record", schema_before_record);
}

#[test]
fn requests_and_answers_are_whole() {
    holds("mailbox", mailbox);
    holds("answer", answer);
    holds("request after an answer", request_after_an_answer);
}

#[test]
fn weakened_t1_is_caught() {
    caught("T1", first_claim);
    caught("T1", sealed_claim);
    caught("T1", next_owner);
}

#[test]
fn weakened_t2_is_caught() {
    caught("T2", first_claim);
    caught("T2", sealed_claim);
    caught("T2", next_owner);
}

#[test]
fn weakened_s1_is_caught() {
    caught("S1", schema_stream);
}

#[test]
fn weakened_s2_is_caught() {
    caught("S2", schema_stream);
}

#[test]
fn weakened_m1_is_caught() {
    caught("M1", mailbox);
    caught("M1", answer);
}

#[test]
fn weakened_m2_is_caught() {
    caught("M2", mailbox);
    caught("M2", answer);
}
