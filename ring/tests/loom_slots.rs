//! Slots over loom's atomics: claims, seals, the next owner, rings made ahead of time. What was
//! written before a word was published is there for each side that has seen the word.
#![cfg(loom)]

use crate::models;

use loom::thread;
use models::*;
use ringmark_format::session::Mode;
use ringmark_format::slot::state;
use ringmark_format::{PageNumber, RingId, TypeId};
use ringmark_ring::directory::Directory;
use ringmark_ring::observe::{self, PageRead};
use ringmark_ring::slot::SLOT_WORDS;
use ringmark_ring::sync::AtomicU64;
use ringmark_ring::{ClockSample, SlotView};

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

/// A reader that finds an owner finds all of one claim, whichever it is.
fn owner_of_two() {
    let mut memory = Memory::default();
    let slot = SlotView::new(memory.words(SLOT_WORDS), &memory.words(1)[0]).unwrap();
    assert!(slot.claim(state::FREE));
    slot.set_owner(RingId(RING_ID), 42, [b'x'; 16]);
    let reader = thread::spawn(move || {
        let Some(owner) = slot.owner() else { return };
        let (ring_id, tid, name) = (owner.ring_id.0, owner.tid, owner.thread_name);
        let claim = ring_id - RING_ID;
        let expected = (42 + claim as u32, [b'x' + claim as u8; 16]);
        assert_eq!((tid, name), expected, "{VIOLATED}: owner of {ring_id}");
        assert_eq!(owner.claims, 1 + claim as u32, "{VIOLATED}: claims");
    });
    slot.set_owner(RingId(RING_ID + 1), 43, [b'y'; 16]);
    reader.join().unwrap();
    drop(memory);
}

/// A ring that goes to its next owner while a reader looks on: what the reader takes for sealed is
/// sealed. It looks as the reader crate does, at *produced* first.
fn reclaimed_under_a_reader() {
    let model = Model::new(Mode::Overwrite);
    model.fill(1);
    let seen = model.clone();
    let reader = thread::spawn(move || look_at_sealed(&seen));
    model.emit(1).unwrap();
    model.writer.seal();
    assert!(model.slot.claim(state::SEALED));
    model.slot.set_owner(RingId(RING_ID), 43, [0; 16]);
    model.attach();
    model.slot.publish_state(state::ACTIVE);
    model.emit(2).unwrap();
    reader.join().unwrap();
}

/// A ring that its thread sets aside in the middle of a reservation, and then goes on in, because
/// a handler went to another ring: it is not taken for sealed before its thread ends.
fn set_aside() {
    let model = Model::new(Mode::Overwrite);
    model.fill(1);
    let seen = model.clone();
    let reader = thread::spawn(move || look_at_sealed(&seen));
    let other = Model::new(Mode::Overwrite);
    let base = |tick| ClockSample { tick, mono_ns: 0 };
    let open = model.writer.reserve_cold(TypeId(17), 1, 10, &base);
    let mut open = open.unwrap();
    model.writer.join(other.writer);
    model.writer.change_to(other.writer);
    open.set_word(0, 101);
    open.commit();
    model.writer.seal_all();
    assert!(other.slot.ended(), "{VIOLATED}: the other ring is open");
    reader.join().unwrap();
}

/// Everything below *produced* is closed and complete if the state, read after it, says "ended".
fn look_at_sealed(model: &Model) {
    let produced = model.slot.produced();
    if !model.slot.ended() {
        return;
    }
    let number = produced - 1;
    let mut copy = [0; PAGE_WORDS];
    if let PageRead::Copied(kept) =
        observe::copy_sealed(model.page(number), PageNumber(number), &mut copy)
    {
        check_sealed(&copy, kept, number);
    }
}

/// The helper thread makes rings ahead of time; a thread that takes one finds its geometry, and no
/// other thread gets the same one.
fn warm_pool() {
    let mut memory = Memory::default();
    let used = &memory.words(1)[0];
    let (words, consumed) = (memory.words(2 * SLOT_WORDS), memory.words(2));
    let slot = move |index: u32| {
        let at = index as usize;
        SlotView::new(words.get(at * SLOT_WORDS..)?, consumed.get(at)?)
    };
    let directory = Directory::new(used, 2, slot);
    let take = move || {
        let index = directory.claim_warm()?;
        let found = slot(index).unwrap().geometry();
        assert_eq!(found, geometry(), "{VIOLATED}: geometry");
        Some(index)
    };
    let taker = thread::spawn(take);
    let index = directory.add(geometry(), |_| true).unwrap();
    slot(index).unwrap().publish_state(state::WARM);
    let here = take();
    let there = taker.join().unwrap();
    assert!(here.is_none() || here != there, "{VIOLATED}: two owners");
    let taken = u32::from(here.is_some()) + u32::from(there.is_some());
    assert_eq!(directory.count_warm() + taken, 1, "{VIOLATED}: rings");
    drop(memory);
}

/// A thread takes a sealed ring that a reader has just drained, with all of its last owner's words.
fn drained_ring() {
    let model = Model::new(Mode::Discard);
    model.fill(1);
    let (owner, used) = (model.clone(), AtomicU64::new(1));
    let slot = model.slot;
    let thread = thread::spawn(move || {
        owner.shadow[0].with_mut(|_| ());
        owner.writer.seal();
        owner.slot.release(1);
    });
    let directory = Directory::new(&used, 1, |_| Some(slot));
    if directory.claim_drained().is_some() {
        model.shadow[0].with_mut(|_| ());
        assert_eq!(model.slot.events_sealed(), 1, "{VIOLATED}: events_sealed");
        assert_eq!(model.slot.produced(), 1, "{VIOLATED}: produced");
    }
    thread.join().unwrap();
}

#[test]
fn a_claim_brings_its_facts() {
    holds("first claim", first_claim);
    holds("sealed claim", sealed_claim);
    holds("owner of two", owner_of_two);
}

#[test]
fn a_sealed_slot_has_one_next_owner() {
    holds("next owner", next_owner);
    holds("drained ring", drained_ring);
    holds("reclaimed under a reader", reclaimed_under_a_reader);
}

#[test]
fn a_ring_set_aside_is_not_sealed() {
    holds("set aside", set_aside);
}

#[test]
fn a_warm_ring_has_one_owner() {
    holds("warm pool", warm_pool);
}

#[test]
fn weakened_t1_is_caught() {
    caught("T1", first_claim);
    caught("T1", sealed_claim);
    caught("T1", next_owner);
    caught("T1", warm_pool);
    // Its reader's release comes after the seal, and orders the same.
    caught("T1+C1", drained_ring);
}

#[test]
fn weakened_t2_is_caught() {
    caught("T2", first_claim);
    caught("T2", sealed_claim);
    caught("T2", next_owner);
    caught("T2", warm_pool);
}

#[test]
fn weakened_o1_is_caught() {
    caught("O1", owner_of_two);
}

#[test]
fn weakened_o2_is_caught() {
    caught("O2", owner_of_two);
}

#[test]
fn weakened_o3_is_caught() {
    caught("O3", owner_of_two);
}

#[test]
fn weakened_o4_is_caught() {
    caught("O4", owner_of_two);
}
