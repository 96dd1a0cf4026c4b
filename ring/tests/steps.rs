//! Every step of the real writer at which a signal handler may come, one after the other. Run with
//! `RUSTFLAGS="--cfg steps" cargo nextest run -p ringmark-ring steps::`.
#![cfg(steps)]

use crate::heap;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use heap::{ALL_WAYS, FoundRecord, HeapRing, Request, Shape, base_at, word};
use ringmark_format::counters::CAUSES;
use ringmark_format::session::Mode;
use ringmark_ring::Reservation;
use ringmark_ring::observe::HEADER_WORDS;
use ringmark_ring::sync::stepped::set_handler;

const ROOM: usize = 10;
const PAGES: usize = 3;
const SHAPE: Shape = Shape {
    page_words: HEADER_WORDS + ROOM,
    pages: PAGES,
};

/// One schedule: a handler of `events` events at step `first`, and one at step `second`, counted
/// over all steps, the first handler's own included.
#[derive(Debug, Clone, Copy)]
struct Plan {
    mode: Mode,
    filled: u32,
    payload: u64,
    events: u32,
    handler_payload: u64,
    first: u32,
    second: u32,
    /// The handlers leave the reservation of their last event open. It ends later: after that of
    /// the context that they interrupt, and after others.
    leaves_open: bool,
    /// From this event on it is later than 32 bits of ticks reach.
    paused_before: u32,
}

/// An event whose reservation is open.
struct Open {
    event: u32,
    page: u64,
    payload: u64,
    reservation: Reservation<'static>,
}

struct Tracer {
    plan: Plan,
    ring: HeapRing,
    /// Page and payload words of every committed event.
    committed: RefCell<BTreeMap<u32, (u64, u64)>>,
    begun: Cell<u32>,
    reserved: Cell<u64>,
    lost: RefCell<[u64; CAUSES]>,
    step: Cell<u32>,
    open: RefCell<Vec<Open>>,
}

thread_local! {
    /// The ring of the schedule before.
    static RING: Cell<Option<HeapRing>> = const { Cell::new(None) };
}

fn tracer(plan: Plan) -> Tracer {
    let ring = RING.take();
    Tracer {
        plan,
        ring: ring.map_or_else(
            || HeapRing::new(plan.mode, SHAPE),
            |ring| ring.renewed(plan.mode),
        ),
        committed: RefCell::default(),
        begun: Cell::new(0),
        reserved: Cell::new(0),
        lost: RefCell::default(),
        step: Cell::new(0),
        open: RefCell::default(),
    }
}

impl Tracer {
    fn emit(&self, payload: u64) {
        if let Some(open) = self.reserve(payload) {
            self.commit(open);
        }
    }

    fn reserve(&self, payload: u64) -> Option<Open> {
        let event = self.begun.replace(self.begun.get() + 1);
        let request = Request {
            type_id: 16 + event,
            payload,
            now: self.tick_of(event),
        };
        match self.ring.reserve(ALL_WAYS, request, &base_at) {
            Ok((_, reservation)) => {
                self.reserved.set(self.reserved.get() + 1);
                Some(Open {
                    event,
                    page: self.quiet(|| self.ring.slot.produced()) - 1,
                    payload,
                    reservation,
                })
            }
            Err(cause) => {
                self.lost.borrow_mut()[cause as usize] += 1;
                None
            }
        }
    }

    fn tick_of(&self, event: u32) -> u64 {
        let paused = u64::from(event >= self.plan.paused_before);
        u64::from(event) + (paused << 33)
    }

    fn commit(&self, open: Open) {
        let (event, mut reservation) = (open.event, open.reservation);
        (0..open.payload).for_each(|i| reservation.set_word(i as usize, word(event, i)));
        reservation.commit();
        let found = (open.page, open.payload);
        self.committed.borrow_mut().insert(event, found);
    }

    /// Without counting steps.
    fn quiet<T>(&self, what: impl FnOnce() -> T) -> T {
        let step = self.step.replace(u32::MAX / 2);
        let result = what();
        self.step.set(step);
        result
    }

    fn between_steps(&self) {
        let step = self.step.replace(self.step.get() + 1);
        if step != self.plan.first && step != self.plan.second {
            return;
        }
        let is_under_way = self.quiet(|| self.ring.under_way()) > 0;
        let produced = self.quiet(|| self.check(false));
        let emitted = self.plan.events - u32::from(self.plan.leaves_open);
        (0..emitted).for_each(|_| self.emit(self.plan.handler_payload));
        if self.plan.leaves_open {
            let open = self.reserve(self.plan.handler_payload);
            self.open.borrow_mut().extend(open);
        }
        let produced_now = self.quiet(|| self.check(false));
        assert!(
            !is_under_way || produced == produced_now,
            "a handler switched a page: {:?}",
            self.plan
        );
    }

    /// What was committed is found, once and whole; nothing else is. Returns *produced*.
    fn check(&self, at_rest: bool) -> u64 {
        let mut expected = self.committed.borrow().clone();
        let mut live = self.ring.live();
        if !at_rest && live.end >= PAGES as u64 {
            // The page in this place may be on its way out.
            live.start += 1;
        }
        expected.retain(|_, (page, _)| live.contains(page));
        let produced = live.end;
        let mut first_events = None;
        for number in live {
            let (first_event, found) = self.read(number, &mut expected, at_rest);
            if at_rest && let Some(before) = first_events {
                assert_eq!(
                    first_event, before,
                    "first_event of page {number}: {:?}",
                    self.plan
                );
            }
            first_events = Some(first_event + found);
        }
        assert!(
            expected.is_empty(),
            "not found: {expected:?}: {:?}",
            self.plan
        );
        if at_rest {
            assert_eq!(
                self.ring.slot.lost(),
                *self.lost.borrow(),
                "{:?}",
                self.plan
            );
            let reservations = first_events.unwrap_or(0);
            assert_eq!(reservations, self.reserved.get(), "{:?}", self.plan);
        }
        produced
    }

    fn read(
        &self,
        number: u64,
        expected: &mut BTreeMap<u32, (u64, u64)>,
        at_rest: bool,
    ) -> (u64, u64) {
        let Some(page) = self.ring.copy(number) else {
            panic!("page {number} is not there: {:?}", self.plan);
        };
        for found in page.records() {
            let event = match found {
                FoundRecord::Open if !at_rest => continue,
                FoundRecord::Committed(event) => event,
                other => panic!("{other:?} in page {number}: {:?}", self.plan),
            };
            let number = event.type_id - 16;
            assert_eq!(event.tick, self.tick_of(number), "{:?}", self.plan);
            for (i, found) in event.payload.iter().enumerate() {
                let expected = word(number, i as u64);
                assert_eq!(*found, expected, "event {number}: {:?}", self.plan);
            }
            let known = expected.remove(&number);
            let plan = &self.plan;
            assert!(known.is_some() || !at_rest, "event {number}: {plan:?}");
        }
        let sealed = number + 1 < self.ring.slot.produced();
        let closed = page.is_closed();
        assert!(closed || !sealed, "page {number} is open: {:?}", self.plan);
        (page.first_event(), page.kept.records.unwrap())
    }
}

/// Runs one schedule; returns how many steps there were.
fn run(plan: Plan) -> u32 {
    let tracer = Rc::new(tracer(plan));
    tracer.quiet(|| (0..plan.filled).for_each(|_| tracer.emit(1)));
    let handled = tracer.clone();
    set_handler(Some(Rc::new(move || handled.between_steps())));
    tracer.emit(plan.payload);
    tracer.emit(plan.payload);
    set_handler(None);
    let steps = tracer.step.get();
    if plan.leaves_open {
        // A lap of the ring, if its pages were switched.
        (0..2 * PAGES * ROOM).for_each(|_| tracer.emit(0));
        tracer.check(false);
        let open = tracer.open.take();
        open.into_iter().for_each(|open| tracer.commit(open));
    }
    tracer.check(true);
    tracer.emit(1);
    tracer.check(true);
    RING.set(Rc::into_inner(tracer).map(|tracer| tracer.ring));
    steps
}

fn all_of(mode: Mode, leaves_open: bool, pauses: bool) {
    let long = std::env::var_os("RINGMARK_LONG").is_some();
    let (mut schedules, every) = (0, if long { 1 } else { 3 });
    let counts: &[u32] = if leaves_open {
        &[1, 3]
    } else {
        &[1, 2, 4, 5, 13]
    };
    for (filled, payload) in (0..17).flat_map(|f| [0, 1, 3, 5].map(|p| (f, p))) {
        for (&events, handler_payload) in counts.iter().flat_map(|e| [0, 1, 2].map(|p| (e, p))) {
            let plan = |first, second| Plan {
                mode,
                filled,
                payload,
                events,
                handler_payload,
                first,
                second,
                leaves_open,
                paused_before: if pauses { filled } else { u32::MAX },
            };
            let mut first = 0;
            while run(plan(first, u32::MAX)) > first {
                for second in (first + 1..first + 12).step_by(every) {
                    run(plan(first, second));
                    schedules += 1;
                }
                first += 1;
            }
        }
    }
    println!("{schedules} schedules");
}

#[test]
fn a_handler_at_every_step_in_overwrite_mode() {
    all_of(Mode::Overwrite, false, false);
}

#[test]
fn a_handler_at_every_step_in_discard_mode() {
    all_of(Mode::Discard, false, false);
}

#[test]
fn a_reservation_left_open_at_every_step_in_overwrite_mode() {
    all_of(Mode::Overwrite, true, false);
}

#[test]
fn a_reservation_left_open_at_every_step_in_discard_mode() {
    all_of(Mode::Discard, true, false);
}

#[test]
fn a_handler_at_every_step_in_an_old_page() {
    all_of(Mode::Overwrite, false, true);
    all_of(Mode::Discard, false, true);
}

#[test]
fn a_reservation_left_open_at_every_step_in_an_old_page() {
    all_of(Mode::Overwrite, true, true);
    all_of(Mode::Discard, true, true);
}
