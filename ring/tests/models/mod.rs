//! What the loom models share: a ring over loom's atomics that lives for one execution, and the
//! verdict on a model whose ordering was weakened.
#![allow(dead_code, unreachable_pub)] // Each test file uses its part.

use std::any::Any;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use loom::cell::UnsafeCell;
use loom::sync::atomic::AtomicU64;
use ringmark_format::counters::Cause;
use ringmark_format::record::{self, Header};
use ringmark_format::session::Mode;
use ringmark_format::slot::state;
use ringmark_format::{RingId, TypeId};
use ringmark_ring::observe::HEADER_WORDS;
use ringmark_ring::slot::SLOT_WORDS;
use ringmark_ring::span_stack::{STACK_WORDS, SpanStack};
use ringmark_ring::writer::Ring;
use ringmark_ring::{ClockSample, PageCopy, SlotGeometry, SlotView, Writer, order};

/// Words for records in a page: two records of one payload word, and one word to be closed.
pub const RECORD_AREA: usize = 5;
/// Words of a page.
pub const PAGE_WORDS: usize = HEADER_WORDS + RECORD_AREA;
/// Pages of the ring.
pub const PAGES: usize = 2;
/// Ring id of the claim.
pub const RING_ID: u64 = 7;
/// What every violated assertion of a model starts with.
pub const VIOLATED: &str = "protocol violated";

/// Words that live until the model's execution ends, for code that wants `'static`.
#[derive(Default)]
pub struct Memory {
    leaked: Vec<*mut [AtomicU64]>,
}

impl Memory {
    /// `count` zero words. They must not be used after the drop of this `Memory`.
    pub fn words(&mut self, count: usize) -> &'static [AtomicU64] {
        let words: Box<[AtomicU64]> = (0..count).map(|_| AtomicU64::new(0)).collect();
        let place = Box::into_raw(words);
        self.leaked.push(place);
        // SAFETY: a live box; given back only at the drop, after the model's threads ended.
        unsafe { &*place }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            for place in self.leaked.drain(..) {
                // SAFETY: from `Box::into_raw`, once; the model's threads have ended.
                drop(unsafe { Box::from_raw(place) });
            }
        }
    }
}

/// A ring of two tiny pages with its writer, its slot, and a shadow of each page's contents.
pub struct Model {
    /// The producer's side. One thread of the model uses it.
    pub writer: &'static Writer,
    /// The slot.
    pub slot: SlotView<'static>,
    /// All pages.
    pub pages: &'static [AtomicU64],
    /// The stack of open spans.
    pub stack: &'static SpanStack,
    /// One cell per page: loom reports who touches it without being ordered after the other.
    /// Atomics alone cannot show that a page was overwritten while its consumer still read it.
    pub shadow: [UnsafeCell<()>; PAGES],
    mode: Mode,
    writer_place: *mut Writer,
    memory: Memory,
}

// SAFETY: the cells exist for loom to judge; the rest is atomics and a writer of one thread.
unsafe impl Send for Model {}
// SAFETY: as above.
unsafe impl Sync for Model {}

impl Drop for Model {
    fn drop(&mut self) {
        // SAFETY: from `Box::into_raw`, once; the model's threads have ended.
        drop(unsafe { Box::from_raw(self.writer_place) });
    }
}

/// Geometry of the models' rings. The page size counts a whole page header.
pub fn geometry() -> SlotGeometry {
    SlotGeometry {
        pages_offset: 0,
        page_bytes: 96 + 8 * RECORD_AREA as u32,
        pages: PAGES as u32,
    }
}

impl Model {
    /// A claimed slot with an attached writer, nothing emitted.
    pub fn new(mode: Mode) -> Arc<Self> {
        let mut memory = Memory::default();
        let slot = SlotView::new(memory.words(SLOT_WORDS), &memory.words(1)[0]).unwrap();
        assert!(slot.claim(state::FREE));
        slot.set_geometry(geometry());
        slot.set_owner(RingId(RING_ID), 42, [0; 16]);
        slot.publish_state(state::ACTIVE);
        let pages = memory.words(PAGES * PAGE_WORDS);
        let stack = memory.words(STACK_WORDS).first_chunk().unwrap();
        let writer_place = Box::into_raw(Box::new(Writer::new()));
        // SAFETY: freed in `drop` only.
        let writer: &'static Writer = unsafe { &*writer_place };
        let model = Self {
            writer,
            slot,
            pages,
            stack,
            mode,
            shadow: [UnsafeCell::new(()), UnsafeCell::new(())],
            writer_place,
            memory,
        };
        model.attach();
        Arc::new(model)
    }

    /// Gives the slot's writer its ring, for the first owner or the next one.
    pub fn attach(&self) {
        let ring = Ring {
            pages: self.pages,
            geometry: geometry(),
            stack: Some(self.stack),
            slot: self.slot,
            slot_index: 0,
            mode: self.mode,
            ring_id: RING_ID,
            tid: 42,
            thread_name: [0; 16],
        };
        // SAFETY: the caller owns the slot's claim: the only user of this writer.
        unsafe { self.writer.attach(ring, 4) };
    }

    /// The words of the page with this number.
    pub fn page(&self, number: u64) -> &'static [AtomicU64] {
        let first = number as usize % PAGES * PAGE_WORDS;
        &self.pages[first..first + PAGE_WORDS]
    }

    /// Emits event `i`: time `10 i`, type `16 + i`, payload `100 + i`. Two fit into a page.
    pub fn emit(&self, i: u64) -> Result<(), Cause> {
        self.emit_at(i, 10 * i, &|tick| ClockSample { tick, mono_ns: 0 })
    }

    /// Emits event `i` at another time.
    pub fn emit_at(
        &self,
        i: u64,
        now: u64,
        base: &dyn Fn(u64) -> ClockSample,
    ) -> Result<(), Cause> {
        let type_id = TypeId(16 + i as u32);
        let straight = self.writer.reserve(type_id, 1, now);
        let reserved = straight.or_else(|| self.writer.reserve_extended(type_id, 1, now));
        let mut reservation = match reserved {
            Some(reservation) => reservation,
            None => self.writer.reserve_cold(type_id, 1, now, base)?,
        };
        reservation.set_word(0, 100 + i);
        reservation.commit();
        Ok(())
    }

    /// Emits events `0..count` before the model's threads start.
    pub fn fill(&self, count: u64) {
        (0..count).for_each(|i| self.emit(i).unwrap());
    }
}

/// Header word of event `i` as [`Model::emit`] commits it.
pub fn committed(i: u64) -> u64 {
    record::pack(10 * (i % 2) as u32, TypeId(16 + i as u32), 1)
}

/// Checks the page header in a copy of page `number`.
pub fn check_header(copy: &[u64], number: u64) {
    let expected = [number + 1, RING_ID, 20 * number];
    assert_eq!(
        copy[..HEADER_WORDS],
        expected,
        "{VIOLATED}: header of page {number}"
    );
}

/// Checks that a kept copy of page `number` holds that page's two events, or as many of them as
/// were reserved; returns how many were committed.
pub fn check_copy(copy: &[u64], kept: PageCopy, number: u64) -> usize {
    check_header(copy, number);
    assert!(!kept.damaged, "{VIOLATED}: page {number} reads as damaged");
    let mut found = 0;
    for k in 0..2 {
        let at = HEADER_WORDS + 2 * k;
        if at >= kept.words || copy[at] == 0 {
            break;
        }
        if record::unpack(copy[at]) == Header::Busy(2) {
            continue;
        }
        let event = 2 * number + k as u64;
        assert_eq!(
            copy[at],
            committed(event),
            "{VIOLATED}: header of event {event}"
        );
        assert_eq!(
            copy[at + 1],
            100 + event,
            "{VIOLATED}: payload of event {event}"
        );
        found += 1;
    }
    found
}

/// Checks that a copy holds all of sealed page `number`, down to the word that closes it.
pub fn check_sealed(copy: &[u64], kept: PageCopy, number: u64) {
    let found = check_copy(copy, kept, number);
    assert_eq!(
        found, 2,
        "{VIOLATED}: page {number} is sealed, but lacks records"
    );
    let last = copy[HEADER_WORDS + 4];
    assert_eq!(
        last,
        record::pack_span(record::PAD, 1),
        "{VIOLATED}: page {number} is not closed"
    );
}

/// `weaken` is global to the process.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Preemptions per execution where exploring all of them takes minutes.
pub const BOUND: Option<usize> = Some(3);

fn explore(model: fn(), preemptions: Option<usize>) -> usize {
    let executions = Arc::new(AtomicUsize::new(0));
    let counter = executions.clone();
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = preemptions;
    builder.max_branches = 50_000;
    builder.check(move || {
        counter.fetch_add(1, Relaxed);
        model();
    });
    executions.load(Relaxed)
}

/// No execution of the model violates the protocol.
pub fn holds(name: &str, model: fn()) {
    judge(None, name, model, None);
}

/// No execution of the model with at most [`BOUND`] preemptions violates the protocol.
pub fn holds_within_bound(name: &str, model: fn()) {
    judge(None, name, model, BOUND);
}

/// No execution of the model violates the protocol, although this ordering is weakened.
pub fn holds_without(label: &'static str, name: &str, model: fn()) {
    judge(Some(label), name, model, None);
}

fn judge(label: Option<&'static str>, name: &str, model: fn(), preemptions: Option<usize>) {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let start = Instant::now();
    order::weaken(label);
    let executions = explore(model, preemptions);
    order::weaken(None);
    println!("{name}: {executions} executions, {:?}", start.elapsed());
}

/// With this ordering weakened, loom finds an execution that violates the protocol.
pub fn caught(label: &'static str, model: fn()) {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    order::weaken(Some(label));
    let start = Instant::now();
    let verdict = std::thread::spawn(move || explore(model, BOUND)).join();
    order::weaken(None);
    let why = match verdict {
        Ok(executions) => panic!("{label} weakened: no violation in {executions} executions"),
        Err(panic) => message(&*panic),
    };
    let violation = why.contains(VIOLATED) || why.contains("Causality violation");
    assert!(
        violation,
        "{label} weakened: the model itself failed: {why}"
    );
    println!(
        "{label}: {} ({:?})",
        why.trim().replace('\n', " "),
        start.elapsed()
    );
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|s| (*s).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_default()
}
