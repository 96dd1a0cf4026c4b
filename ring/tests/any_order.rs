//! Reservations of one context that end in any order: while one is under way its page stays open,
//! its place is its own, and no reader is given the page as finished.
#![cfg(not(loom))]

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use ringmark_format::record::{self, Header};
use ringmark_format::session::Mode;
use ringmark_format::slot::state;
use ringmark_format::{PageNumber, RingId, TypeId};
use ringmark_ring::observe::{self, HEADER_WORDS};
use ringmark_ring::reservation::RawReservation;
use ringmark_ring::slot::SLOT_WORDS;
use ringmark_ring::writer::Ring;
use ringmark_ring::{ClockSample, PageRead, SlotGeometry, SlotView, Writer};

const PAGE_WORDS: usize = HEADER_WORDS + 24;
const PAGES: usize = 3;
/// More would leave no page that is ever closed.
const OPEN_AT_MOST: usize = 4;

fn words(count: usize) -> &'static [AtomicU64] {
    Box::leak((0..count).map(|_| AtomicU64::new(0)).collect::<Box<[_]>>())
}

struct Open {
    reservation: RawReservation,
    event: u32,
    payload: u64,
}

struct Tracer {
    mode: Mode,
    pages: &'static [AtomicU64],
    slot: SlotView<'static>,
    writer: &'static Writer,
    open: Vec<Open>,
    /// *produced* since the first of the open reservations began.
    turned: u64,
    begun: u32,
    reserved: u64,
    lost: u64,
    /// The next page to be looked at.
    next: u64,
    random: u64,
}

fn tracer(mode: Mode, seed: u64) -> Tracer {
    let geometry = SlotGeometry {
        pages_offset: 0,
        page_bytes: PAGE_WORDS as u32 * 8,
        pages: PAGES as u32,
    };
    let slot = SlotView::new(words(SLOT_WORDS), &words(1)[0]).unwrap();
    assert!(slot.claim(state::FREE));
    slot.set_geometry(geometry);
    slot.set_owner(RingId(7), 42, [0; 16]);
    slot.publish_state(state::ACTIVE);
    let pages = words(PAGES * PAGE_WORDS);
    let writer: &'static Writer = Box::leak(Box::new(Writer::new()));
    let ring = Ring {
        pages,
        geometry,
        slot,
        slot_index: 0,
        mode,
        ring_id: 7,
        tid: 42,
        thread_name: [0; 16],
    };
    // SAFETY: the only user of this writer.
    unsafe { writer.attach(ring, 4) };
    Tracer {
        mode,
        pages,
        slot,
        writer,
        open: Vec::new(),
        turned: 0,
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
        let base = |tick| ClockSample { tick, mono_ns: 0 };
        let type_id = TypeId(16 + event);
        let reserved = match self.writer.reserve(type_id, payload, now) {
            Some(reservation) => Ok(reservation),
            None => self.writer.reserve_cold(type_id, payload, now, &base),
        };
        match reserved {
            Ok(mut reservation) => {
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
            self.turned = self.slot.produced();
        }
        assert_eq!(self.slot.produced(), self.turned, "a page was turned");
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
        let oldest = self.slot.produced().saturating_sub(PAGES as u64);
        self.next = self.next.max(oldest);
        while self.next + 1 < self.slot.produced() {
            let first = self.next as usize % PAGES * PAGE_WORDS;
            let page = &self.pages[first..first + PAGE_WORDS];
            let mut copy = [0; PAGE_WORDS];
            let PageRead::Copied(kept) =
                observe::copy_sealed(page, PageNumber(self.next), &mut copy)
            else {
                panic!("page {} is not there", self.next);
            };
            assert!(!kept.damaged, "page {} is damaged", self.next);
            let mut at = HEADER_WORDS;
            while at < kept.words {
                at += match record::unpack(copy[at]) {
                    Header::Pad => break,
                    Header::Cancelled(words) => words as usize,
                    Header::Record {
                        payload_words: Some(payload),
                        ..
                    } => 1 + payload as usize,
                    found => panic!("{found:?} in sealed page {}", self.next),
                };
            }
            self.next += 1;
        }
        if self.mode == Mode::Discard {
            self.slot.release(self.next);
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
        let produced = self.slot.produced();
        for _ in 0..PAGE_WORDS {
            self.begin();
            if !self.open.is_empty() {
                self.end();
            }
            self.consume();
        }
        assert!(self.slot.produced() > produced, "the ring goes on");
        assert_eq!(self.reserved, self.writer.reservations());
        assert_eq!(self.lost, self.slot.lost_in_all());
        assert_eq!(self.reserved + self.lost, u64::from(self.begun));
    }
}

fn word(event: u32, index: u64) -> u64 {
    u64::from(event) << 32 | index | 1 << 63
}

#[test]
fn the_first_one_may_end_first() {
    for mode in [Mode::Discard, Mode::Overwrite] {
        let Tracer { slot, writer, .. } = tracer(mode, 1);
        let emit = || {
            let base = |tick| ClockSample { tick, mono_ns: 0 };
            let reserved = match writer.reserve(TypeId(16), 1, 0) {
                Some(reservation) => Ok(reservation),
                None => writer.reserve_cold(TypeId(16), 1, 0, &base),
            };
            reserved.map(|reservation| reservation.commit())
        };
        emit().unwrap();
        let first = writer.reserve(TypeId(17), 1, 0).unwrap();
        let second = writer.reserve(TypeId(18), 4, 0).unwrap();
        first.commit();
        let written = (0..50).filter(|_| emit().is_ok()).count();
        assert_eq!((slot.produced(), written), (1, 7), "{mode:?}");
        second.commit();
        emit().unwrap();
        assert_eq!(slot.produced(), 2, "{mode:?}: the ring goes on");
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
