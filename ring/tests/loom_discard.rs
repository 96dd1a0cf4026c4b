//! Discard mode over loom's atomics: the consumer reads sealed pages in place, and the producer
//! switches none that was not released.
#![cfg(loom)]

use crate::models;

use std::sync::atomic::Ordering::Relaxed;

use loom::thread;
use models::*;
use ringmark_format::TypeId;
use ringmark_format::counters::Cause;
use ringmark_format::session::Mode;
use ringmark_ring::{ClockSample, PageCopy};

/// Emits event `i`, again and again while the ring is full, and marks its page as written to.
fn emit_when_there_is_room(model: &Model, i: u64) {
    loop {
        match model.emit(i) {
            Ok(()) => break,
            Err(Cause::RingFull) => thread::yield_now(),
            Err(cause) => panic!("event {i}: {cause:?}"),
        }
    }
    model.shadow[i as usize / 2 % PAGES].with_mut(|_| ());
}

/// Waits until page `number` is sealed, reads it in place, releases it.
fn consume(model: &Model, number: u64) {
    while model.slot.produced() < number + 2 {
        thread::yield_now();
    }
    let mut words = [0; PAGE_WORDS];
    for (to, from) in words.iter_mut().zip(model.page(number)) {
        *to = from.load(Relaxed);
    }
    model.shadow[number as usize % PAGES].with(|_| ());
    let whole = PageCopy {
        words: PAGE_WORDS,
        records: None,
        damaged: false,
        settled: false,
    };
    check_sealed(&words, whole, number);
    model.slot.release(number + 1);
}

/// `events` events, the first `filled` before the threads start;
/// the consumer takes every page that gets sealed.
fn run(filled: u64, events: u64) {
    let model = Model::new(Mode::Discard);
    model.fill(filled);
    let producer = model.clone();
    let thread = thread::spawn(move || {
        (filled..events).for_each(|i| emit_when_there_is_room(&producer, i));
    });
    let sealed = (events - 1) / 2;
    (0..sealed).for_each(|number| consume(&model, number));
    thread.join().unwrap();
    assert_eq!(model.slot.produced(), sealed + 1, "{VIOLATED}: produced");
}

/// The ring is full: page 0 must be released before its place becomes page 2.
fn full_ring() {
    run(4, 5);
}

/// Page 1 is sealed, read and released while the ring goes on.
fn sealed_page() {
    run(3, 5);
}

/// Two laps from an empty ring.
fn two_laps() {
    run(0, 7);
}

/// Two reservations, of which the first one ends first: the page of the second one is given to the
/// consumer after its end only, and then whole.
fn the_first_one_ends_first() {
    let model = Model::new(Mode::Discard);
    let producer = model.clone();
    let thread = thread::spawn(move || {
        let base = |tick| ClockSample { tick, mono_ns: 0 };
        let reserve = |i: u64| producer.writer.reserve(TypeId(16 + i as u32), 1, 10 * i);
        let mut first = producer
            .writer
            .reserve_cold(TypeId(16), 1, 0, &base)
            .unwrap();
        let mut second = reserve(1).unwrap();
        first.set_word(0, 100);
        first.commit();
        let early = producer.emit(2);
        assert_eq!(
            early,
            Err(Cause::Nested),
            "{VIOLATED}: the page was switched"
        );
        second.set_word(0, 101);
        producer.shadow[0].with_mut(|_| ());
        second.commit();
        (2..4).for_each(|i| emit_when_there_is_room(&producer, i));
    });
    consume(&model, 0);
    thread.join().unwrap();
}

/// A full ring loses the newest event, counts it, and leaves the oldest page alone.
fn loses_the_newest() {
    let model = Model::new(Mode::Discard);
    model.fill(4);
    let producer = model.clone();
    let thread = thread::spawn(move || {
        let emitted = producer.emit(4);
        let lost = producer.slot.lost()[Cause::RingFull as usize];
        assert_eq!(lost, u64::from(emitted.is_err()), "{VIOLATED}: lost events");
    });
    consume(&model, 0);
    thread.join().unwrap();
}

#[test]
fn a_page_is_not_turned_before_its_release() {
    holds("full ring", full_ring);
    holds("two laps", two_laps);
    holds("full ring that loses", loses_the_newest);
}

#[test]
fn a_sealed_page_is_read_in_place() {
    holds("sealed page", sealed_page);
}

#[test]
fn a_page_is_not_given_away_before_all_its_reservations_end() {
    holds("the first one ends first", the_first_one_ends_first);
}

#[test]
fn weakened_c1_is_caught() {
    caught("C1", full_ring);
}

#[test]
fn weakened_p1_is_caught() {
    caught("P1", full_ring);
}

#[test]
fn weakened_r3_is_caught() {
    caught("R3", sealed_page);
}

#[test]
fn weakened_w4_is_caught() {
    // See the test of this name in overwrite mode: the fence W1 orders the same stores.
    holds_without("W4", "sealed page, after the fence alone", sealed_page);
    caught("W1+W4", sealed_page);
}
