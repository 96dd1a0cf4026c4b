//! The rings of one thread whose reservations are left for ever, or end late and in any order: no page
//! is used again in which one is open, and each event is there, open, or counted as lost.
#![cfg(not(any(loom, steps)))]

use crate::heap;

use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use heap::{FoundRecord, HeapRing, Shape, base_at, word};
use ringmark_format::TypeId;
use ringmark_format::counters::Cause;
use ringmark_format::record::{self, Header};
use ringmark_format::session::Mode;
use ringmark_ring::observe::HEADER_WORDS;
use ringmark_ring::reservation::RawReservation;
use ringmark_ring::writer::{HANDLER_GOES_ON_AFTER, RINGS_MAX};
use ringmark_ring::{Reservation, Writer};

const SHAPE: Shape = Shape {
    page_words: HEADER_WORDS + 24,
    pages: 3,
};

struct Open {
    reservation: RawReservation,
    event: u32,
}

/// A thread that does what `producer/src/session/attach.rs` does. Its consumer takes each page as soon as
/// it is sealed.
struct Thread {
    mode: Mode,
    rings: Vec<HeapRing>,
    /// Page of each ring that its consumer looks at next.
    next: Vec<u64>,
    current: usize,
    begun: u32,
    committed: u64,
    found: u64,
    is_in_handler: bool,
}

impl Thread {
    fn new(mode: Mode) -> Self {
        Self {
            mode,
            rings: vec![HeapRing::new(mode, SHAPE)],
            next: vec![0],
            current: 0,
            begun: 0,
            committed: 0,
            found: 0,
            is_in_handler: false,
        }
    }

    fn writer(&self) -> &'static Writer {
        self.rings[self.current].writer
    }

    fn reserve(&mut self) -> Option<Open> {
        let event = self.begun;
        self.begun += 1;
        let mut reserved = reserve(self.writer(), event);
        if let Err(Cause::Nested) = reserved
            && self.goes_on_beside()
        {
            reserved = reserve(self.writer(), event);
        }
        match reserved {
            Ok(mut reservation) => {
                reservation.set_word(0, word(event, 0));
                let reservation = reservation.into_raw();
                Some(Open { reservation, event })
            }
            Err(cause) => {
                self.writer().lose(cause);
                None
            }
        }
    }

    /// Whether its next event goes to another ring.
    fn goes_on_beside(&mut self) -> bool {
        let writer = self.writer();
        let other = writer.idle_other();
        if other.is_none() && !writer.wants_another(|| self.is_in_handler) {
            return false;
        }
        self.current = match other {
            Some(other) => {
                let is_it = |ring: &HeapRing| ptr::eq(ring.writer, other);
                self.rings.iter().position(is_it).expect("one of its rings")
            }
            None => {
                self.rings.push(HeapRing::new(self.mode, SHAPE));
                self.next.push(0);
                self.rings.len() - 1
            }
        };
        if other.is_none() {
            writer.join(self.writer());
        }
        writer.change_to(self.writer());
        true
    }

    fn emit(&mut self) {
        if let Some(open) = self.reserve() {
            self.end(&open);
        }
        self.consume();
    }

    fn leave(&mut self) {
        let _never_ended = self.reserve();
    }

    /// Ends a reservation, however late: its place and its payload are as it left them.
    fn end(&mut self, open: &Open) {
        // SAFETY: a header word in a page of these rings, which are never freed.
        let header = unsafe { &*open.reservation.header.cast::<AtomicU64>() };
        let found = record::unpack(header.load(Relaxed));
        assert!(matches!(found, Header::Busy(_)), "its place is {found:?}");
        // SAFETY: a payload word of the same reservation.
        let payload = unsafe { &*open.reservation.payload.cast::<AtomicU64>() };
        assert_eq!(payload.load(Relaxed), word(open.event, 0), "its payload");
        // SAFETY: this thread's, and ended once.
        unsafe { open.reservation.commit() };
        self.committed += 1;
    }

    /// Nothing is under way in a page that is sealed.
    fn consume(&mut self) {
        for (ring, next) in self.rings.iter().zip(&mut self.next) {
            while *next + 1 < ring.slot.produced() {
                let page = ring.copy_sealed(*next).expect("a sealed page");
                for record in page.records() {
                    let is_whole = matches!(record, FoundRecord::Committed(_));
                    assert!(is_whole, "{record:?} in sealed page {next}");
                    self.found += 1;
                }
                *next += 1;
            }
            if self.mode == Mode::Discard {
                ring.slot.release(*next);
            }
        }
    }

    fn lost(&self, cause: Cause) -> u64 {
        self.rings.iter().map(|ring| ring.lost(cause)).sum()
    }

    /// What was begun was committed, is open, or is counted; what was committed is there.
    fn check(&mut self, open: u64) {
        let (nested, full) = (self.lost(Cause::Nested), self.lost(Cause::RingFull));
        let what = format!("{:?}, {} rings", self.mode, self.rings.len());
        assert_eq!(full, 0, "{what}");
        assert_eq!(
            self.committed + open + nested,
            u64::from(self.begun),
            "{what}"
        );
        self.consume();
        let mut still_open = 0;
        for (ring, next) in self.rings.iter().zip(&self.next) {
            let Some(page) = ring.copy(*next) else {
                continue;
            };
            for record in page.records() {
                match record {
                    FoundRecord::Committed(_) => self.found += 1,
                    FoundRecord::Open => still_open += 1,
                    FoundRecord::Cancelled => panic!("{record:?}: {what}"),
                }
            }
        }
        assert_eq!((self.found, still_open), (self.committed, open), "{what}");
    }
}

fn reserve(writer: &'static Writer, event: u32) -> Result<Reservation<'static>, Cause> {
    let (type_id, now) = (TypeId(16 + event), u64::from(event));
    match writer.reserve(type_id, 1, now) {
        Some(reservation) => Ok(reservation),
        None => writer.reserve_or_decide(type_id, 1, now, &base_at),
    }
}

#[test]
fn a_reservation_that_is_left_costs_no_other_event() {
    for mode in [Mode::Discard, Mode::Overwrite] {
        let mut thread = Thread::new(mode);
        let left = RINGS_MAX as u64 - 1;
        for _ in 0..left {
            thread.leave();
            (0..200).for_each(|_| thread.emit());
        }
        assert_eq!(thread.lost(Cause::Nested), 0, "{mode:?}");
        assert_eq!(thread.rings.len(), RINGS_MAX, "{mode:?}");
        thread.check(left);
    }
}

#[test]
fn a_thousand_are_counted_and_take_no_more_rings() {
    for mode in [Mode::Discard, Mode::Overwrite] {
        let mut thread = Thread::new(mode);
        let mut open = Vec::new();
        for _ in 0..1000 {
            open.extend(thread.reserve());
            (0..20).for_each(|_| thread.emit());
        }
        assert_eq!(thread.rings.len(), RINGS_MAX, "{mode:?}");
        assert!(thread.lost(Cause::Nested) > 0, "{mode:?}");
        thread.check(open.len() as u64);
        // None of them was left after all.
        let rings = thread.rings.len();
        let lost = thread.lost(Cause::Nested);
        open.iter().for_each(|open| thread.end(open));
        (0..1000).for_each(|_| thread.emit());
        assert_eq!(thread.lost(Cause::Nested), lost, "{mode:?}");
        assert_eq!(thread.rings.len(), rings, "{mode:?}");
    }
}

/// As coroutines hold them that a timer switches: each may go on after any of the others.
#[test]
fn reservations_that_end_late_are_whole_and_their_rings_used_again() {
    const HELD: usize = 6;
    let (seeds, steps) = if cfg!(miri) { (1, 300) } else { (100, 3000) };
    for (mode, seed) in [Mode::Discard, Mode::Overwrite]
        .into_iter()
        .flat_map(|mode| (1..=seeds).map(move |seed| (mode, seed)))
    {
        let (mut thread, mut random) = (Thread::new(mode), Random(seed));
        let mut held = Vec::new();
        for _ in 0..steps {
            match random.below(8) {
                0 if held.len() < HELD => held.extend(thread.reserve()),
                1 | 2 if !held.is_empty() => {
                    let at = random.below(held.len() as u64) as usize;
                    thread.end(&held.swap_remove(at));
                }
                _ => (0..random.below(30)).for_each(|_| thread.emit()),
            }
        }
        assert_eq!(thread.lost(Cause::Nested), 0, "{mode:?}, seed {seed}");
        assert!(thread.rings.len() <= HELD + 1, "{mode:?}, seed {seed}");
        thread.check(held.len() as u64);
    }
}

/// What it interrupts ends as soon as it has.
#[test]
fn a_handler_takes_a_ring_only_when_it_loses_very_many() {
    let mut thread = Thread::new(Mode::Overwrite);
    let interrupted = thread.reserve().expect("room");
    thread.is_in_handler = true;
    while thread.lost(Cause::Nested) + 1 < HANDLER_GOES_ON_AFTER {
        thread.emit();
    }
    assert_eq!(thread.rings.len(), 1);
    thread.emit();
    assert_eq!(thread.rings.len(), 2);
    (0..100).for_each(|_| thread.emit());
    assert_eq!(thread.lost(Cause::Nested) + 1, HANDLER_GOES_ON_AFTER);
    thread.is_in_handler = false;
    thread.end(&interrupted);
    (0..100).for_each(|_| thread.emit());
    thread.check(0);
}

/// Its handler lost some, and then left the reservation.
#[test]
fn a_thread_that_leaves_its_handler_loses_no_more_than_that_did() {
    let mut thread = Thread::new(Mode::Overwrite);
    thread.leave();
    thread.is_in_handler = true;
    while thread.lost(Cause::Nested) < 100 {
        thread.emit();
    }
    thread.is_in_handler = false;
    (0..1000).for_each(|_| thread.emit());
    assert!(thread.lost(Cause::Nested) < 200);
    assert_eq!(thread.rings.len(), 2);
    thread.check(1);
}

struct Random(u64);

impl Random {
    fn below(&mut self, below: u64) -> u64 {
        let a = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = a.wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }
}
