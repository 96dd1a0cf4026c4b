//! Events after a pause: the page that is open has become too old for 32 bits of ticks. With a
//! clock of the test's own, what each event takes, on which way, and when the page is switched.
#![cfg(not(loom))]

use crate::heap;

use std::cell::RefCell;
use std::sync::atomic::Ordering::Relaxed;

use heap::{ALL_WAYS, FoundRecord, HeapRing, Request, Shape, Way, base_at};
use ringmark_format::TypeId;
use ringmark_format::counters::Cause;
use ringmark_format::record::{self, Header};
use ringmark_format::session::Mode;
use ringmark_ring::observe::HEADER_WORDS;
use ringmark_ring::writer::PAYLOAD_WORDS_MAX;
use ringmark_ring::{Reservation, Writer};

const PAGE_WORDS: usize = 512;
const ROOM: usize = PAGE_WORDS - HEADER_WORDS;
const PAGES: usize = 4;
const SHAPE: Shape = Shape {
    page_words: PAGE_WORDS,
    pages: PAGES,
};
/// 2^32 ticks and one more.
const PAUSE: u64 = 1 << 32;

struct Heap {
    ring: HeapRing,
    /// Tick of every recorded event; its number is its place.
    ticks: RefCell<Vec<u64>>,
}

fn heap(mode: Mode) -> Heap {
    Heap {
        ring: HeapRing::new(mode, SHAPE),
        ticks: RefCell::default(),
    }
}

impl std::ops::Deref for Heap {
    type Target = HeapRing;

    fn deref(&self) -> &HeapRing {
        &self.ring
    }
}

impl Heap {
    /// One event of one word at `now`. Returns the way on which it was reserved.
    fn emit(&self, now: u64) -> Result<Way, Cause> {
        let (way, reservation) = self.reserve(now)?;
        reservation.commit();
        Ok(way)
    }

    /// As an event does it.
    fn reserve(&self, now: u64) -> Result<(Way, Reservation<'static>), Cause> {
        let request = Request {
            type_id: 16,
            payload: 1,
            now,
        };
        let (way, mut reservation) = self.ring.reserve(ALL_WAYS, request, &base_at)?;
        let mut ticks = self.ticks.borrow_mut();
        reservation.set_word(0, ticks.len() as u64);
        ticks.push(now);
        Ok((way, reservation))
    }

    /// Events in each page that is there, all of them with their ticks.
    fn events(&self) -> Vec<usize> {
        self.live().map(|number| self.events_of(number)).collect()
    }

    fn events_of(&self, number: u64) -> usize {
        let page = self.copy(number).unwrap();
        for found in page.records() {
            let FoundRecord::Committed(event) = found else {
                panic!("{found:?} in page {number}");
            };
            let number = event.payload[0];
            let expected = self.ticks.borrow()[number as usize];
            assert_eq!(event.tick, expected, "tick of event {number}");
        }
        let found = page.records().count();
        assert_eq!(page.kept.records, Some(found as u64), "page {number}");
        found
    }

    /// Words of the open page that are in use.
    fn used(&self) -> usize {
        let number = self.slot.produced() - 1;
        self.copy(number).unwrap().kept.words
    }
}

#[test]
fn a_burst_after_a_pause_goes_one_way_and_takes_two_words_more_until_the_page_is_full() {
    for mode in [Mode::Overwrite, Mode::Discard] {
        let heap = heap(mode);
        assert_eq!(heap.emit(1000), Ok(Way::Cold));
        assert_eq!(heap.emit(1000 + PAUSE - 1), Ok(Way::Straight));
        let now = 1000 + PAUSE;
        for i in 0..(ROOM as u64 - 4) / 4 {
            let before = heap.used();
            assert_eq!(heap.emit(now + i), Ok(Way::Extended), "event {i}");
            assert_eq!(heap.used() - before, 4, "words of event {i}");
        }
        assert_eq!(heap.slot.produced(), 1);
        assert_eq!(heap.emit(now + 1000), Ok(Way::Cold));
        assert_eq!(heap.emit(now + 1001), Ok(Way::Straight));
        assert_eq!(heap.used(), HEADER_WORDS + 4);
        assert_eq!(heap.events(), [2 + (ROOM - 4) / 4, 2]);
        assert_eq!(heap.slot.lost_in_all(), 0);
    }
}

#[test]
fn slow_events_keep_the_whole_history() {
    let heap = heap(Mode::Overwrite);
    let events = PAGES * (ROOM / 4);
    for i in 1..=events as u64 {
        heap.emit(i * PAUSE).unwrap();
    }
    assert_eq!(heap.slot.produced(), PAGES as u64);
    assert_eq!(heap.events().iter().sum::<usize>(), events);
}

#[test]
fn in_a_full_ring_what_fits_is_recorded() {
    let heap = heap(Mode::Discard);
    while heap.slot.produced() < PAGES as u64 {
        heap.emit(1000).unwrap();
    }
    let room = (PAGE_WORDS - heap.used()) / 4;
    let burst = 1000 + PAUSE;
    let written = (0..200).filter(|i| heap.emit(burst + i).is_ok()).count();
    assert_eq!(written, room);
    assert_eq!(heap.lost(Cause::RingFull), 200 - room as u64);
    heap.events();
    heap.slot.release(1);
    assert_eq!(heap.emit(burst + 200), Ok(Way::Cold));
    heap.events();
}

#[test]
fn around_an_open_reservation_and_in_it() {
    for outer_at in [1000, 1000 + PAUSE] {
        let heap = heap(Mode::Overwrite);
        heap.emit(1000).unwrap();
        let (_, outer) = heap.reserve(outer_at).unwrap();
        (0..20).for_each(|i| assert_eq!(heap.emit(outer_at + PAUSE + i), Ok(Way::Extended)));
        outer.commit();
        assert_eq!((heap.slot.produced(), heap.slot.lost_in_all()), (1, 0));
        assert_eq!(heap.events(), [22]);
    }
}

#[test]
fn a_tick_from_before_the_page_is_extended() {
    let heap = heap(Mode::Overwrite);
    heap.emit(1000).unwrap();
    assert_eq!(heap.emit(999), Ok(Way::Extended));
    assert_eq!(heap.emit(1000), Ok(Way::Straight));
    assert_eq!(heap.events(), [3]);
}

#[test]
fn what_is_not_that_simple_is_left_alone() {
    let zeroed = Writer::new();
    assert!(zeroed.reserve_extended(TypeId(16), 0, PAUSE).is_none());
    let heap = heap(Mode::Overwrite);
    heap.emit(1000).unwrap();
    for (payload, now) in [
        (1, 1000),
        (ROOM as u64, 1000 + PAUSE),
        (PAYLOAD_WORDS_MAX + 1, 1000 + PAUSE),
    ] {
        let reserved = heap.writer.reserve_extended(TypeId(16), payload, now);
        assert!(reserved.is_none(), "{payload} words at {now}");
    }
    assert_eq!(heap.emit(1000 + PAUSE), Ok(Way::Extended));
    assert_eq!(heap.events(), [2]);
}

#[test]
fn given_up_it_is_one_cancel() {
    let heap = heap(Mode::Overwrite);
    heap.emit(1000).unwrap();
    drop(heap.writer.reserve_extended(TypeId(16), 1, 1000 + PAUSE));
    let word = heap.pages[HEADER_WORDS + 2].load(Relaxed);
    assert_eq!(record::unpack(word), Header::Cancelled(4));
}

#[test]
fn a_long_record_is_extended() {
    let heap = heap(Mode::Overwrite);
    heap.emit(1000).unwrap();
    let now = 1000 + PAUSE;
    let long = heap.writer.reserve_extended(TypeId(16), 300, now).unwrap();
    long.commit();
    let words = &heap.pages[HEADER_WORDS + 2..];
    let words = [0, 1, 2, 3].map(|i| words[i].load(Relaxed));
    let extension = record::pack(0, TypeId(record::TIME_EXTEND), 1);
    let inner = record::pack(0, TypeId(16), 300);
    assert_eq!(words, [extension, now, inner, 300]);
    assert_eq!(heap.used(), HEADER_WORDS + 2 + 304);
}
