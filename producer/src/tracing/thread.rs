//! What a thread has entered, and the time of its last record.

use core::cell::{Cell, RefCell};
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

use ringmark_format::schema::NO_SPAN;
use ringmark_ring::Writer;

use super::ids::SpanCell;
use crate::event::span_records;
use crate::ring::SpanPlace;
use crate::{session, thread_block};

/// Entered spans kept without an allocation; deeper ones take one.
const DEPTH: usize = 64;

/// What gives its spans and events to the recorder: a subscriber of ours, or one of the layers. Each knows
/// the spans that a thread has entered in it, and no others but native ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Source(u32);

/// Sources that were made.
static SOURCES: AtomicU32 = AtomicU32::new(0);
/// Whether one of them is the subscriber.
static HAS_SUBSCRIBER: AtomicBool = AtomicBool::new(false);

impl Source {
    /// The subscriber's: all of ours are one.
    pub(super) const SUBSCRIBER: Self = Self(0);

    /// Notes that there is a subscriber of ours.
    pub(super) fn note_subscriber() {
        if !HAS_SUBSCRIBER.swap(true, Relaxed) {
            SOURCES.fetch_add(1, Relaxed);
        }
    }

    /// That of a new layer.
    pub(super) fn of_layer() -> Self {
        Self(SOURCES.fetch_add(1, Relaxed) + 1)
    }
}

/// In which span a thread is, as its source knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Inside {
    /// The one that was entered last, of whatever source, or none.
    Last,
    /// This one; the last one is of another source. [`NO_SPAN`]: none.
    Of(u64),
}

/// An entered span.
#[derive(Clone, Copy)]
struct Entry {
    /// The span that was current before it; the current one is in `span_records`, which native
    /// spans share.
    below: u64,
    /// Its place among the open spans of the thread, which readers see.
    place: SpanPlace,
    source: Source,
}

const NOTHING: Entry = Entry {
    below: 0,
    place: SpanPlace::NONE,
    source: Source::SUBSCRIBER,
};

struct Thread {
    entered: [Cell<Entry>; DEPTH],
    depth: Cell<usize>,
    last: Cell<Last>,
}

/// What happened to a span, as a record holds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    New,
    Exit,
}

/// The last record about a span on this thread.
#[derive(Clone, Copy)]
struct Last {
    step: Step,
    id: u64,
    ticks: u64,
    /// Reservations of the thread's ring at that time.
    reservations: u64,
}

thread_local! {
    static THREAD: Thread = const {
        Thread {
            entered: [const { Cell::new(NOTHING) }; DEPTH],
            depth: Cell::new(0),
            last: Cell::new(Last { step: Step::New, id: 0, ticks: 0, reservations: 0 }),
        }
    };
    static DEEPER: RefCell<Vec<Entry>> = const { RefCell::new(Vec::new()) };
}

/// Makes `id` the span that this thread is in. `place`: where it stands among its open spans.
#[inline]
pub(super) fn push(source: Source, id: u64, place: SpanPlace) {
    let below = span_records::set_current(id);
    put(Entry {
        below,
        place,
        source,
    });
}

/// In which span this thread is, for something that comes from `source`.
#[inline(always)]
pub(super) fn inside(source: Source) -> Inside {
    match SOURCES.load(Relaxed) {
        0 | 1 => Inside::Last,
        _ => inside_of(source),
    }
}

#[inline(never)]
fn inside_of(source: Source) -> Inside {
    let last = span_records::current();
    let mut id = last;
    let found = find_entry(|entry| {
        let is_seen = is_native(id) || entry.source == source;
        let seen = is_seen.then_some(id);
        id = entry.below;
        seen
    });
    match found.or(Some(id).filter(|id| is_native(*id))) {
        Some(id) if id == last => Inside::Last,
        Some(id) => Inside::Of(id),
        None if last == 0 => Inside::Last,
        None => Inside::Of(NO_SPAN),
    }
}

/// Native spans have odd ids. They have no entry here.
const fn is_native(id: u64) -> bool {
    id % 2 == 1
}

#[inline(always)]
fn put(entry: Entry) {
    THREAD.with(|thread| {
        let depth = thread.depth.get();
        thread.depth.set(depth + 1);
        match thread.entered.get(depth) {
            Some(cell) => cell.set(entry),
            None => put_deeper(entry),
        }
    });
}

#[cold]
fn put_deeper(entry: Entry) {
    // Taken: this span's entry interrupts another one's, and so does its exit.
    let _ = DEEPER.try_with(|deeper| deeper.try_borrow_mut().map(|mut all| all.push(entry)));
}

/// Leaves `id`: mostly the span that the thread is in, else one that it entered before. Returns its
/// place among the open spans.
#[inline]
pub(super) fn pop(id: u64) -> SpanPlace {
    if span_records::current() != id {
        return remove(id);
    }
    let Some(entry) = pop_top() else {
        return SpanPlace::NONE;
    };
    span_records::set_current(entry.below);
    entry.place
}

#[inline]
fn pop_top() -> Option<Entry> {
    THREAD.with(|thread| {
        let depth = thread.depth.get().checked_sub(1)?;
        thread.depth.set(depth);
        match thread.entered.get(depth) {
            Some(cell) => Some(cell.get()),
            None => pop_deeper(),
        }
    })
}

#[cold]
fn pop_deeper() -> Option<Entry> {
    DEEPER
        .try_with(|deeper| deeper.try_borrow_mut().ok()?.pop())
        .ok()
        .flatten()
}

/// Takes `id` out from under the spans that were entered after it; returns its place.
#[cold]
fn remove(id: u64) -> SpanPlace {
    let (mut above, mut place) = (Vec::new(), SpanPlace::NONE);
    while let Some(entry) = pop_top() {
        if entry.below != id {
            above.push(entry);
            continue;
        }
        // What was entered next stands on what `id` stood on.
        let own = pop_top();
        place = own.map_or(SpanPlace::NONE, |own| own.place);
        let below = own.map_or(0, |own| own.below);
        above.push(Entry { below, ..entry });
        break;
    }
    above.into_iter().rev().for_each(put);
    place
}

/// The innermost span that this thread is in and for which `is_it` holds.
pub(super) fn innermost<T>(is_it: impl Fn(u64) -> Option<T>) -> Option<(u64, T)> {
    let current = span_records::current();
    if let Some(found) = is_it(current) {
        return Some((current, found));
    }
    find_entry(|entry| is_it(entry.below).map(|found| (entry.below, found)))
}

/// What `is_it` finds first among the entered spans, from the innermost on.
fn find_entry<T>(mut is_it: impl FnMut(Entry) -> Option<T>) -> Option<T> {
    THREAD.with(|thread| {
        let depth = thread.depth.get();
        if depth > DEPTH
            && let Some(found) = find_deeper(&mut is_it)
        {
            return Some(found);
        }
        let mut entered = thread.entered[..depth.min(DEPTH)].iter().rev();
        entered.find_map(|cell| is_it(cell.get()))
    })
}

#[cold]
fn find_deeper<T>(is_it: impl FnMut(Entry) -> Option<T>) -> Option<T> {
    let found = DEEPER.try_with(|deeper| {
        let deeper = deeper.try_borrow().ok()?;
        deeper.iter().rev().copied().find_map(is_it)
    });
    found.ok().flatten()
}

/// The tick of the last record, if it was this step of `id` and nothing was recorded since on this
/// thread, nor about `id` on any other; else the clock. Saves half of the clock readings of a span
/// that is entered as soon as it is made, and closed as soon as it is left. `cell`: that of `id`.
#[inline(always)]
pub(super) fn ticks_after(step: Step, id: u64, cell: &SpanCell) -> u64 {
    let last = THREAD.with(|thread| thread.last.get());
    let writer = thread_block::writer();
    if last.id == id
        && last.step == step
        && last.reservations == reservations(writer)
        && cell.last_ring() == ring(writer)
    {
        last.ticks
    } else {
        session::now()
    }
}

/// Remembers that the last record of this thread was this step of `id`.
#[inline(always)]
pub(super) fn set_last(step: Step, id: u64, cell: &SpanCell, ticks: u64) {
    let writer = thread_block::writer();
    let reservations = reservations(writer);
    let last = Last {
        step,
        id,
        ticks,
        reservations,
    };
    THREAD.with(|thread| thread.last.set(last));
    cell.set_last_ring(ring(writer));
}

/// Invalidates what other threads remember of the span in `cell` as the last record.
#[inline(always)]
pub(super) fn forget_last(cell: &SpanCell) {
    cell.set_last_ring(ring(thread_block::writer()));
}

#[inline(always)]
fn ring(writer: Option<&'static Writer>) -> usize {
    writer.map_or(0, |writer| ptr::from_ref(writer).addr())
}

#[inline(always)]
fn reservations(writer: Option<&'static Writer>) -> u64 {
    writer.map_or(0, Writer::reservations)
}
