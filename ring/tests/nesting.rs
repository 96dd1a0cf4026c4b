//! Signal handlers that emit inside an emit, at every moment that a test can reach from outside:
//! after the clock was read, while a page is about to be turned, between reserve and commit. Each
//! step of the real writer is compared with a naive one; each handler's start and end counts as a
//! kill, too: what was committed by then must be found.
#![cfg(not(loom))]

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use ringmark_format::counters::{CAUSES, Cause};
use ringmark_format::record::{self, Header};
use ringmark_format::session::Mode;
use ringmark_format::slot::state;
use ringmark_format::{PageNumber, RingId, TypeId};
use ringmark_ring::observe::{self, HEADER_WORDS};
use ringmark_ring::slot::SLOT_WORDS;
use ringmark_ring::writer::Ring;
use ringmark_ring::{ClockSample, PageRead, SlotGeometry, SlotView, Writer};

const ROOM: usize = 14;
const PAGE_WORDS: usize = HEADER_WORDS + ROOM;
const PAGES: usize = 2;

/// When a handler comes.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Moment {
    /// The clock was read, nothing else was done.
    ClockRead,
    /// The record does not fit; the next page is about to be turned.
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

/// A record as it should be found.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Found {
    fate: Fate,
    /// Event number, payload words and absolute tick, if it was committed.
    event: Option<(u32, u64, u64)>,
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
    pages: &'static [AtomicU64],
    slot: SlotView<'static>,
    writer: &'static Writer,
    naive: RefCell<Naive>,
    /// Events begun so far, which is also the clock.
    clock: RefCell<u32>,
    /// Reservations that are under way around the present context.
    around: RefCell<u32>,
}

/// Words and writer of a case, one after the other in the same place.
struct Place {
    words: &'static [AtomicU64],
    writer: *mut Writer,
}

impl Place {
    fn new() -> Self {
        let count = PAGES * PAGE_WORDS + SLOT_WORDS + 1;
        let words: Box<[AtomicU64]> = (0..count).map(|_| AtomicU64::new(0)).collect();
        Self {
            words: Box::leak(words),
            writer: Box::into_raw(Box::new(Writer::new())),
        }
    }

    fn tracer(&mut self, plan: Plan) -> Tracer {
        self.words.iter().for_each(|word| word.store(0, Relaxed));
        // SAFETY: the tracer of the case before is gone, and with it every use of the writer.
        unsafe { self.writer.write(Writer::new()) };
        // SAFETY: never freed; replaced only by the line above.
        let writer: &'static Writer = unsafe { &*self.writer };
        let (pages, rest) = self.words.split_at(PAGES * PAGE_WORDS);
        let slot = SlotView::new(rest, &rest[SLOT_WORDS]).unwrap();
        let geometry = SlotGeometry {
            pages_offset: 0,
            page_bytes: PAGE_WORDS as u32 * 8,
            pages: PAGES as u32,
        };
        assert!(slot.claim(state::FREE));
        slot.set_geometry(geometry);
        slot.set_owner(RingId(7), 42, [0; 16]);
        slot.publish_state(state::ACTIVE);
        let ring = Ring {
            pages,
            geometry,
            slot,
            slot_index: 0,
            mode: plan.mode,
            ring_id: 7,
            tid: 42,
            thread_name: [0; 16],
        };
        // SAFETY: the only user of this writer.
        unsafe { writer.attach(ring, 4) };
        Tracer {
            plan,
            pages,
            slot,
            writer,
            naive: RefCell::default(),
            clock: RefCell::new(1),
            around: RefCell::new(0),
        }
    }
}

impl Tracer {
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
        let type_id = TypeId(16 + event);
        let base = |tick| {
            interrupt(Moment::PageFull);
            ClockSample { tick, mono_ns: 0 }
        };
        let straight = self.writer.reserve(type_id, payload, now);
        let reserved = straight.or_else(|| self.writer.reserve_extended(type_id, payload, now));
        let reserved = match reserved {
            Some(reservation) => Ok(reservation),
            None => self.writer.reserve_cold(type_id, payload, now, &base),
        };
        let expected =
            self.naive
                .borrow_mut()
                .reserve(self.plan.mode, outer > 0, (event, payload, now));
        let verdict = reserved.as_ref().map(|_| ()).map_err(|cause| *cause);
        assert_eq!(verdict, expected, "event {event} of {:?}", self.plan);
        if let Ok(mut reservation) = reserved {
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

    /// A signal handler. While a reservation is under way around it, no page may be turned.
    fn handler(&self, level: usize) {
        let turned = self.slot.produced();
        self.check(level);
        for i in 0..self.plan.events {
            let interrupted = i == 0 || i + 1 == self.plan.events;
            self.emit(self.plan.payload, interrupted.then_some(level));
        }
        if *self.around.borrow() > 0 {
            assert_eq!(self.slot.produced(), turned, "turned in {:?}", self.plan);
        }
        self.check(level);
    }

    /// Compares what an observer finds with the naive writer. Deep inside, the ends suffice.
    fn check(&self, level: usize) {
        if level > 2 {
            return;
        }
        let naive = self.naive.borrow();
        let turned = naive.pages.len();
        assert_eq!(self.slot.produced(), turned as u64, "{:?}", self.plan);
        assert_eq!(self.slot.lost(), naive.lost, "{:?}", self.plan);
        let mut reservations = naive.pages[..turned.saturating_sub(PAGES)]
            .iter()
            .map(Vec::len)
            .sum::<usize>();
        for number in turned.saturating_sub(PAGES)..turned {
            let (first_event, found) = self.read(number);
            let expected = naive.pages[number].iter().map(Reserved::as_found);
            assert_eq!(
                first_event, reservations as u64,
                "page {number} of {:?}",
                self.plan
            );
            assert!(
                found.iter().copied().eq(expected),
                "page {number} of {:?}:\nfound {found:?}\nexpected {:?}",
                self.plan,
                naive.pages[number]
            );
            reservations += found.len();
        }
    }

    fn read(&self, number: usize) -> (u64, Vec<Found>) {
        let first = number % PAGES * PAGE_WORDS;
        let page = &self.pages[first..first + PAGE_WORDS];
        let mut copy = [0; PAGE_WORDS];
        let PageRead::Copied(kept) = observe::copy_open(page, PageNumber(number as u64), &mut copy)
        else {
            panic!("page {number} is not there: {:?}", self.plan);
        };
        assert!(!kept.damaged, "page {number}: {:?}", self.plan);
        let sealed = number as u64 + 1 < self.slot.produced();
        let closed =
            kept.words == PAGE_WORDS || copy[kept.words - 1] == pad(PAGE_WORDS - kept.words + 1);
        assert!(
            closed || !sealed,
            "page {number} is not closed: {:?}",
            self.plan
        );
        let found = walk(copy[2], &copy[HEADER_WORDS..kept.words]);
        assert_eq!(kept.records, Some(found.len() as u64), "{:?}", self.plan);
        (copy[4], found)
    }
}

impl Reserved {
    fn as_found(&self) -> Found {
        Found {
            fate: self.fate,
            event: (self.fate == Fate::Committed).then_some(self.event),
        }
    }
}

fn pad(words: usize) -> u64 {
    record::pack_span(record::PAD, words as u64)
}

fn word(event: u32, index: u64) -> u64 {
    u64::from(event) << 32 | index | 1 << 63
}

/// The records in the words of a page, payloads checked.
fn walk(base: u64, words: &[u64]) -> Vec<Found> {
    let mut found = Vec::new();
    let mut at = 0;
    let mut extension = None;
    while at < words.len() {
        let (fate, event, length) = match record::unpack(words[at]) {
            Header::Pad => break,
            Header::Busy(length) => (Fate::Open, None, length),
            Header::Cancelled(length) => (Fate::Cancelled, None, length),
            Header::Record { type_id, .. } if type_id.0 == record::TIME_EXTEND => {
                extension = Some(words[at + 1]);
                at += 2;
                continue;
            }
            Header::Record {
                ticks,
                type_id,
                payload_words: Some(payload),
            } => {
                let event = type_id.0 - 16;
                let tick = extension.take().unwrap_or(base) + u64::from(ticks);
                for i in 0..payload {
                    assert_eq!(words[at + 1 + i as usize], word(event, i), "payload");
                }
                (Fate::Committed, Some((event, payload, tick)), 1 + payload)
            }
            other => panic!("{other:?} at word {at}"),
        };
        found.push(Found { fate, event });
        at += length as usize;
    }
    found
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

fn run(place: &mut Place, plan: &Plan) {
    let tracer = place.tracer(plan.clone());
    (0..plan.filled).for_each(|_| tracer.emit(1, None));
    tracer.emit(plan.outer_payload, Some(0));
    tracer.check(0);
    tracer.emit(1, None);
    tracer.check(0);
}

fn all_at_depth(depth: usize, events: impl Iterator<Item = usize> + Clone) {
    let mut place = Place::new();
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
                run(&mut place, &plan);
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
