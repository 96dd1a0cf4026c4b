//! Signal handlers that emit inside an emit, at every moment that a test can reach from outside:
//! after the clock was read, while a page is about to be switched, between reserve and commit. Each
//! step of the real writer is compared with a naive one; each handler's start and end counts as a
//! kill, too: what was committed by then must be found.
#![cfg(not(loom))]

use crate::heap;

use std::cell::RefCell;

use heap::{ALL_WAYS, FoundRecord, HeapRing, Request, Shape, base_at, word};
use ringmark_format::counters::{CAUSES, Cause};
use ringmark_format::session::Mode;
use ringmark_ring::observe::HEADER_WORDS;

const ROOM: usize = 14;
const PAGES: usize = 2;
const SHAPE: Shape = Shape {
    page_words: HEADER_WORDS + ROOM,
    pages: PAGES,
};

/// When a handler comes.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Moment {
    /// The clock was read, nothing else was done.
    ClockRead,
    /// The record does not fit; the next page is about to be opened.
    PageFull,
    /// The record is reserved.
    Reserved,
}

const MOMENTS: [Moment; 3] = [Moment::ClockRead, Moment::PageFull, Moment::Reserved];

/// One schedule.
#[derive(Debug, Clone)]
struct Plan {
    mode: Mode,
    /// Events emitted before, of two words each.
    filled: usize,
    /// Payload words of the event that is interrupted first.
    outer_payload: u64,
    /// When each level is interrupted; the handler's first and last event are interrupted again.
    moments: Vec<Moment>,
    /// Events of each handler.
    events: usize,
    /// Payload words of the handlers' events.
    payload: u64,
}

/// What became of a reservation.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fate {
    Open,
    Committed,
    Cancelled,
}

#[derive(Debug, Clone, Copy)]
struct Reserved {
    event: (u32, u64, u64),
    fate: Fate,
}

/// The naive writer: pages as lists of what was reserved in them, in order.
#[derive(Debug, Default)]
struct Naive {
    pages: Vec<Vec<Reserved>>,
    room: u64,
    base: u64,
    lost: [u64; CAUSES],
}

impl Naive {
    fn reserve(&mut self, mode: Mode, nested: bool, event: (u32, u64, u64)) -> Result<(), Cause> {
        let (_, payload, now) = event;
        loop {
            let extension = if now < self.base { 2 } else { 0 };
            let words = 1 + payload + extension;
            if words <= self.room {
                self.room -= words;
                let fate = Fate::Open;
                self.pages
                    .last_mut()
                    .unwrap()
                    .push(Reserved { event, fate });
                return Ok(());
            }
            if nested {
                return self.lose(Cause::Nested);
            }
            if mode == Mode::Discard && self.pages.len() == PAGES {
                self.room = 0;
                return self.lose(Cause::RingFull);
            }
            self.pages.push(Vec::new());
            self.room = ROOM as u64;
            self.base = now;
        }
    }

    fn lose(&mut self, cause: Cause) -> Result<(), Cause> {
        self.lost[cause as usize] += 1;
        Err(cause)
    }

    fn finish(&mut self, event: u32, fate: Fate) {
        let all = self.pages.iter_mut().flatten();
        let mut this = all.filter(|r| r.event.0 == event);
        this.next().unwrap().fate = fate;
    }
}

struct Tracer {
    plan: Plan,
    ring: HeapRing,
    naive: RefCell<Naive>,
    /// Events begun so far, which is also the clock.
    clock: RefCell<u32>,
    /// Reservations that are under way around the present context.
    around: RefCell<u32>,
}

impl Tracer {
    fn new(ring: HeapRing, plan: Plan) -> Self {
        Self {
            ring: ring.renewed(plan.mode),
            plan,
            naive: RefCell::default(),
            clock: RefCell::new(1),
            around: RefCell::new(0),
        }
    }

    /// One emit; `level` says which moment of the plan interrupts it, if any.
    fn emit(&self, payload: u64, level: Option<usize>) {
        let moment = level.and_then(|l| self.plan.moments.get(l).copied());
        let interrupt = |at: Moment| {
            if moment == Some(at) {
                self.handler(level.unwrap() + 1);
            }
        };
        let event = self.tick();
        let now = u64::from(event);
        interrupt(Moment::ClockRead);
        let outer = self.around.replace_with(|around| *around + 1);
        let base = |tick| {
            interrupt(Moment::PageFull);
            base_at(tick)
        };
        let request = Request {
            type_id: 16 + event,
            payload,
            now,
        };
        let reserved = self.ring.reserve(ALL_WAYS, request, &base);
        let expected =
            self.naive
                .borrow_mut()
                .reserve(self.plan.mode, outer > 0, (event, payload, now));
        let verdict = reserved.as_ref().map(|_| ()).map_err(|cause| *cause);
        assert_eq!(verdict, expected, "event {event} of {:?}", self.plan);
        if let Ok((_, mut reservation)) = reserved {
            (0..payload).for_each(|i| reservation.set_word(i as usize, word(event, i)));
            interrupt(Moment::Reserved);
            let fate = if event % 5 == 4 {
                drop(reservation);
                Fate::Cancelled
            } else {
                reservation.commit();
                Fate::Committed
            };
            self.naive.borrow_mut().finish(event, fate);
        }
        self.around.replace(outer);
    }

    fn tick(&self) -> u32 {
        self.clock.replace_with(|clock| *clock + 1)
    }

    /// A signal handler. While a reservation is under way around it, no page may be switched.
    fn handler(&self, level: usize) {
        let produced = self.ring.slot.produced();
        self.check(level);
        for i in 0..self.plan.events {
            let interrupted = i == 0 || i + 1 == self.plan.events;
            self.emit(self.plan.payload, interrupted.then_some(level));
        }
        if *self.around.borrow() > 0 {
            let now = self.ring.slot.produced();
            assert_eq!(now, produced, "switched in {:?}", self.plan);
        }
        self.check(level);
    }

    /// Compares what an observer finds with the naive writer. Deep inside, the ends suffice.
    fn check(&self, level: usize) {
        if level > 2 {
            return;
        }
        let naive = self.naive.borrow();
        let produced = naive.pages.len();
        assert_eq!(
            self.ring.slot.produced(),
            produced as u64,
            "{:?}",
            self.plan
        );
        assert_eq!(self.ring.slot.lost(), naive.lost, "{:?}", self.plan);
        let gone = produced.saturating_sub(PAGES);
        let mut reservations: usize = naive.pages[..gone].iter().map(Vec::len).sum();
        for number in gone..produced {
            self.check_page(number, reservations as u64, &naive.pages[number]);
            reservations += naive.pages[number].len();
        }
    }

    /// Compares one page with what was reserved in it.
    fn check_page(&self, number: usize, first_event: u64, expected: &[Reserved]) {
        let Some(page) = self.ring.copy(number as u64) else {
            panic!("page {number} is not there: {:?}", self.plan);
        };
        let sealed = number as u64 + 1 < self.ring.slot.produced();
        let closed = page.is_closed();
        assert!(closed || !sealed, "page {number} is open: {:?}", self.plan);
        assert_eq!(page.first_event(), first_event, "{number}: {:?}", self.plan);
        let records = expected.len() as u64;
        assert_eq!(
            page.kept.records,
            Some(records),
            "{number}: {:?}",
            self.plan
        );
        let mut found = page.records();
        for reserved in expected {
            let found = found.next();
            assert!(
                found.is_some_and(|found| reserved.is(found)),
                "page {number} of {:?}: found {found:?}, expected {reserved:?}",
                self.plan
            );
        }
        assert_eq!(found.next(), None, "page {number} of {:?}", self.plan);
    }
}

impl Reserved {
    /// Whether this is what became of it.
    fn is(&self, found: FoundRecord<'_>) -> bool {
        let (number, payload, now) = self.event;
        match found {
            FoundRecord::Open => self.fate == Fate::Open,
            FoundRecord::Cancelled => self.fate == Fate::Cancelled,
            FoundRecord::Committed(event) => {
                let words = (0..payload).map(|i| word(number, i));
                self.fate == Fate::Committed
                    && (event.type_id, event.tick) == (16 + number, now)
                    && event.payload.iter().copied().eq(words)
            }
        }
    }
}

fn schedules(depth: usize) -> Vec<Vec<Moment>> {
    let mut all = vec![Vec::new()];
    for _ in 0..depth {
        all = all
            .iter()
            .flat_map(|moments: &Vec<Moment>| MOMENTS.map(|m| [moments.as_slice(), &[m]].concat()))
            .collect();
    }
    all
}

/// Runs one schedule in a ring that is done with; returns that ring.
fn run(ring: HeapRing, plan: Plan) -> HeapRing {
    let filled = plan.filled;
    let outer_payload = plan.outer_payload;
    let tracer = Tracer::new(ring, plan);
    (0..filled).for_each(|_| tracer.emit(1, None));
    tracer.emit(outer_payload, Some(0));
    tracer.check(0);
    tracer.emit(1, None);
    tracer.check(0);
    tracer.ring
}

fn all_at_depth(depth: usize, events: impl Iterator<Item = usize> + Clone) {
    let mut ring = HeapRing::new(Mode::Discard, SHAPE);
    let fills = if cfg!(miri) { 6..8 } else { 0..16 };
    for (mode, moments) in [Mode::Discard, Mode::Overwrite]
        .into_iter()
        .flat_map(|mode| schedules(depth).into_iter().map(move |m| (mode, m)))
    {
        for (filled, events) in fills
            .clone()
            .flat_map(|filled| events.clone().map(move |events| (filled, events)))
        {
            for (outer_payload, payload) in [0, 1, 3, 6]
                .into_iter()
                .flat_map(|o| [(o, 0), (o, 1), (o, 2)])
            {
                let plan = Plan {
                    mode,
                    filled,
                    outer_payload,
                    moments: moments.clone(),
                    events,
                    payload,
                };
                ring = run(ring, plan);
            }
        }
    }
}

#[test]
fn one_handler() {
    all_at_depth(1, 1..14);
}

#[test]
fn a_handler_in_a_handler() {
    all_at_depth(2, [1, 2, 4, 5, 13].into_iter());
}

#[test]
fn a_handler_in_a_handler_in_a_handler() {
    all_at_depth(3, [1, 2, 5].into_iter());
}
