//! Reservations of one context that end in any order: while one is under way its page stays open,
//! its place is its own, and no reader is given the page as finished.
#![cfg(not(loom))]

use crate::heap;

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use heap::{COLD_EXTENDS, FoundRecord, HeapRing, Request, Shape, base_at, word};
use ringmark_format::record::{self, Header};
use ringmark_format::session::Mode;
use ringmark_ring::observe::HEADER_WORDS;
use ringmark_ring::reservation::RawReservation;

const PAGE_WORDS: usize = HEADER_WORDS + 24;
const SHAPE: Shape = Shape {
    page_words: PAGE_WORDS,
    pages: 3,
};
/// More would leave no page that is ever closed.
const OPEN_AT_MOST: usize = 4;

struct Open {
    reservation: RawReservation,
    event: u32,
    payload: u64,
}

struct Tracer {
    mode: Mode,
    ring: HeapRing,
    open: Vec<Open>,
    /// *produced* since the first of the open reservations began.
    produced: u64,
    begun: u32,
    reserved: u64,
    lost: u64,
    /// The next page to be looked at.
    next: u64,
    random: u64,
}

fn tracer(mode: Mode, seed: u64) -> Tracer {
    Tracer {
        mode,
        ring: HeapRing::new(mode, SHAPE),
        open: Vec::new(),
        produced: 0,
        begun: 0,
        reserved: 0,
        lost: 0,
        next: 0,
        random: seed,
    }
}

impl Tracer {
    fn random(&mut self, below: u64) -> u64 {
        let a = self.random.wrapping_mul(6_364_136_223_846_793_005);
        self.random = a.wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 33) % below
    }

    fn begin(&mut self) {
        let (event, payload) = (self.begun, self.random(4));
        let is_first = self.open.is_empty();
        self.begun += 1;
        // Some are extended by their time.
        let now = u64::from(event) << (self.random(8) / 7 * 32);
        let request = Request {
            type_id: 16 + event,
            payload,
            now,
        };
        let reserved = self.ring.reserve(COLD_EXTENDS, request, &base_at);
        match reserved {
            Ok((_, mut reservation)) => {
                (0..payload).for_each(|i| reservation.set_word(i as usize, word(event, i)));
                self.open.push(Open {
                    reservation: reservation.into_raw(),
                    event,
                    payload,
                });
                self.reserved += 1;
            }
            Err(_) => self.lost += 1,
        }
        if is_first {
            self.produced = self.ring.slot.produced();
        }
        let produced = self.ring.slot.produced();
        assert_eq!(produced, self.produced, "a page was switched");
    }

    fn end(&mut self) {
        let which = self.random(self.open.len() as u64) as usize;
        let it = self.open.swap_remove(which);
        // SAFETY: a header word in this ring's pages, which are never freed.
        let header = unsafe { &*it.reservation.header.cast::<AtomicU64>() };
        let found = record::unpack(header.load(Relaxed));
        assert!(matches!(found, Header::Busy(_)), "its place is {found:?}");
        for i in 0..it.payload {
            let place = it.reservation.payload.wrapping_add(i as usize);
            // SAFETY: a payload word of the same reservation.
            let found = unsafe { &*place.cast::<AtomicU64>() }.load(Relaxed);
            assert_eq!(found, word(it.event, i), "its payload");
        }
        if self.random(5) == 0 {
            // SAFETY: this thread's, and ended once.
            unsafe { it.reservation.cancel() };
        } else {
            // SAFETY: as above.
            unsafe { it.reservation.commit() };
        }
    }

    /// Looks at the pages that were sealed since the last look, as a consumer does, and gives them
    /// back in discard mode: nothing is under way in them.
    fn consume(&mut self) {
        self.next = self.next.max(self.ring.live().start);
        while self.next + 1 < self.ring.slot.produced() {
            let page = self.ring.copy_sealed(self.next);
            let page = page.unwrap_or_else(|| panic!("page {} is not there", self.next));
            for found in page.records() {
                assert_ne!(found, FoundRecord::Open, "in sealed page {}", self.next);
            }
            assert!(page.is_closed(), "sealed page {} is open", self.next);
            self.next += 1;
        }
        if self.mode == Mode::Discard {
            self.ring.slot.release(self.next);
        }
    }

    fn run(&mut self, steps: u32) {
        for _ in 0..steps {
            if !self.open.is_empty() && self.random(2) == 0 {
                self.end();
            } else if self.open.len() < OPEN_AT_MOST {
                self.begin();
            }
            self.consume();
        }
        while !self.open.is_empty() {
            self.end();
        }
        let produced = self.ring.slot.produced();
        for _ in 0..PAGE_WORDS {
            self.begin();
            if !self.open.is_empty() {
                self.end();
            }
            self.consume();
        }
        assert!(self.ring.slot.produced() > produced, "the ring goes on");
        assert_eq!(self.reserved, self.ring.writer.reservations());
        assert_eq!(self.lost, self.ring.slot.lost_in_all());
        assert_eq!(self.reserved + self.lost, u64::from(self.begun));
    }
}

#[test]
fn the_first_one_may_end_first() {
    for mode in [Mode::Discard, Mode::Overwrite] {
        let ring = HeapRing::new(mode, SHAPE);
        let reserve = |type_id, payload| {
            let now = 0;
            let request = Request {
                type_id,
                payload,
                now,
            };
            let reserved = ring.reserve(COLD_EXTENDS, request, &base_at);
            reserved.map(|(_, reservation)| reservation)
        };
        let emit = || reserve(16, 1).map(|reservation| reservation.commit());
        emit().unwrap();
        let first = reserve(17, 1).unwrap();
        let second = reserve(18, 4).unwrap();
        first.commit();
        let written = (0..50).filter(|_| emit().is_ok()).count();
        assert_eq!((ring.slot.produced(), written), (1, 7), "{mode:?}");
        second.commit();
        emit().unwrap();
        assert_eq!(ring.slot.produced(), 2, "{mode:?}: the ring goes on");
    }
}

#[test]
fn in_any_order() {
    let (seeds, steps) = if cfg!(miri) { (2, 200) } else { (200, 2000) };
    for mode in [Mode::Discard, Mode::Overwrite] {
        for seed in 1..=seeds {
            tracer(mode, seed).run(steps);
        }
    }
}
