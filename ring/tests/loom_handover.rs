//! Schema stream and mailbox over loom's atomics: what was written before a word was published is
//! there for each side that has seen the word.
#![cfg(loom)]

use crate::models;

use std::sync::Arc;

use loom::thread;
use models::*;
use ringmark_format::PageNumber;
use ringmark_format::mailbox::MAILBOX_BYTES;
use ringmark_format::session::{Extent, Mode};
use ringmark_ring::mailbox::{Answer, Mailbox, Withdrawal};
use ringmark_ring::observe::{self, PageRead};
use ringmark_ring::schema_log::{STATE_WORDS, SchemaLog};
use ringmark_ring::sync::AtomicU64;

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
        if !mailbox.take(forgotten) {
            return false;
        }
        assert_eq!(mailbox.request_text(), "forgotten", "{VIOLATED}: request");
        let text = "late".into();
        mailbox.answer(forgotten, &Answer { status: 0, text });
        true
    });
    let number = mailbox.request("new");
    if helper.join().unwrap() {
        assert_eq!(mailbox.read_answer().text, "late", "{VIOLATED}: answer");
    }
    if number.is_some() {
        assert_eq!(mailbox.request_text(), "new", "{VIOLATED}: request");
    }
    drop(memory);
}

/// A request is done or taken back, never both; one that follows a withdrawal is read whole, and as
/// itself.
fn withdrawal() {
    let mut memory = Memory::default();
    let words = memory.words(MAILBOX_BYTES / 8);
    let mailbox = Mailbox::over(words).unwrap();
    let first = mailbox.request("first").unwrap();
    let helper = thread::spawn(move || {
        let number = mailbox.requested();
        let is_taken = mailbox.take(number);
        if is_taken {
            let expected = if number == first { "first" } else { "new" };
            assert_eq!(mailbox.request_text(), expected, "{VIOLATED}: request");
        }
        is_taken.then_some(number)
    });
    let withdrawn = mailbox.withdraw(first) == Withdrawal::Done;
    let next = mailbox.request("new");
    let done = helper.join().unwrap();
    assert!(!(withdrawn && done == Some(first)), "{VIOLATED}: done");
    assert_eq!(next.is_some(), withdrawn, "{VIOLATED}: next");
    drop(memory);
}

/// A helper that has seen a request, which is taken back, does nothing of it, nor of a later one
/// that is taken back, too.
fn two_withdrawals() {
    let mut memory = Memory::default();
    let words = memory.words(MAILBOX_BYTES / 8);
    let mailbox = Mailbox::over(words).unwrap();
    let first = mailbox.request("first").unwrap();
    let helper = thread::spawn(move || mailbox.take(first));
    let first_withdrawn = mailbox.withdraw(first) == Withdrawal::Done;
    let second = mailbox.request("second");
    assert_eq!(second.is_some(), first_withdrawn, "{VIOLATED}: next");
    let second_withdrawn =
        second.is_some_and(|second| mailbox.withdraw(second) == Withdrawal::Done);
    let is_taken = helper.join().unwrap();
    assert_eq!(
        first_withdrawn, second_withdrawn,
        "{VIOLATED}: nobody took it"
    );
    assert_ne!(is_taken, first_withdrawn, "{VIOLATED}: done");
    drop(memory);
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
    holds("withdrawal", withdrawal);
    holds("two withdrawals", two_withdrawals);
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
fn a_record_without_its_schema_is_caught() {
    caught("W3", schema_before_record);
    // The fence R4 stands between the copied record and the schema, too.
    caught("R2+R4", schema_before_record);
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
