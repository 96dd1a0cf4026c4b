//! Events before the recorded window are left out.
//!
//! A WINDOW block says from when on the pages after it are shown. Earlier events are counted as
//! left out. What began earlier and reaches into the window stays: spans that were not closed,
//! entries that were not left, calls that have not returned.

use std::collections::HashSet;

use ringmark_format::RingId;
use ringmark_format::schema::Shape;

use crate::blocks::page::{Page, Record, Reservation};
use crate::trace_file::schema::Schema;
use crate::trace_file::session::Slot;
use crate::trace_file::time::SessionClock;

/// Where a record stands: slot, page in it, number in the page.
type RecordPlace = (usize, usize, u64);

/// What began before the window and may reach into it.
#[derive(Default)]
struct Begun {
    /// Records of spans, by the span's id.
    spans: Vec<(u64, RecordPlace)>,
    /// Spans that were closed before the window.
    closed: HashSet<u64>,
    /// What is entered in the ring at hand, by the span's id.
    entered: Vec<(u64, RecordPlace)>,
    /// Calls that are open in the ring at hand, by tracers and the function's id.
    calls: Vec<((u64, u32), RecordPlace)>,
    /// What stays.
    kept: Vec<RecordPlace>,
}

/// Leaves out the records that are earlier than the windows of their pages, and counts each page
/// again.
pub(crate) fn apply(slots: &mut [Slot], schema: &Schema, clock: &SessionClock) {
    let pages = || slots.iter().flat_map(|slot| &slot.pages);
    if pages().all(|page| page.from_mono_ns == 0) {
        return;
    }
    let mut begun = Begun::default();
    for page in slots.iter_mut().flat_map(|slot| &mut slot.pages) {
        page.from = clock.first_tick(page.from_mono_ns);
    }
    for (number, slot) in slots.iter().enumerate() {
        let mut ring: Option<RingId> = None;
        for (at, page) in slot.pages.iter().enumerate() {
            if ring.replace(page.ring) != Some(page.ring) {
                begun.end_ring();
            }
            begun.take_page(schema, page, number, at);
        }
        begun.end_ring();
    }
    for (number, at, index) in begun.kept() {
        slots[number].pages[at].kept.push(index);
    }
    for page in slots.iter_mut().flat_map(|slot| &mut slot.pages) {
        page.kept.sort_unstable();
        page.check(|_| ());
    }
}

impl Begun {
    fn take_page(&mut self, schema: &Schema, page: &Page, slot: usize, at: usize) {
        let mut walk = page.walk_all();
        while let Some(step) = walk.step() {
            if let Reservation::Event(record) = step
                && record.tick < page.from
            {
                self.take(schema, &record, (slot, at, record.index));
            }
        }
    }

    fn take(&mut self, schema: &Schema, record: &Record<'_>, place: RecordPlace) {
        let Some(ty) = schema.find(record.type_id) else {
            return;
        };
        if let Some(function) = ty.function {
            let call = (function.tracers, function.function);
            if function.exit {
                if let Some(at) = self.calls.iter().rposition(|c| c.0 == call) {
                    // What these tracers saw inside it has ended with it.
                    let inside = self.calls.split_off(at).into_iter();
                    let others = inside.filter(|c| c.0.0 != function.tracers);
                    self.calls.extend(others);
                }
            } else if !function.timed && !function.loose {
                self.calls.push((call, place));
            }
            return;
        }
        let id = ty.span_id.and_then(|f| ty.fields[f].number(record.payload));
        let Some(id) = id else { return };
        match ty.shape {
            Some(Shape::SpanNew | Shape::SpanRecord | Shape::SpanFollows) => {
                self.spans.push((id, place));
            }
            Some(Shape::SpanEnter) => self.entered.push((id, place)),
            Some(Shape::SpanExit) => {
                if let Some(at) = self.entered.iter().rposition(|e| e.0 == id) {
                    self.entered.remove(at);
                }
            }
            Some(Shape::SpanClose) => {
                self.closed.insert(id);
            }
            _ => {}
        }
    }

    /// What is open at the end of a ring's old records stays.
    fn end_ring(&mut self) {
        self.kept.extend(self.entered.drain(..).map(|e| e.1));
        self.kept.extend(self.calls.drain(..).map(|c| c.1));
    }

    fn kept(self) -> Vec<RecordPlace> {
        let open = self
            .spans
            .iter()
            .filter(|(id, _)| !self.closed.contains(id));
        let open: Vec<_> = open.map(|span| span.1).collect();
        [self.kept, open].concat()
    }
}
