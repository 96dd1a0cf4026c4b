//! Events before the recorded window are left out.
//!
//! A WINDOW block says from when on the pages after it are shown. Earlier events are counted as
//! left out. What began earlier and reaches into the window stays: spans that were not closed,
//! entries that were not left, calls that have not returned.

use std::collections::{HashMap, HashSet};

use ringmark_format::RingId;
use ringmark_format::schema::Shape;

use crate::blocks::page::Page;
use crate::blocks::walk::Record;
use crate::trace_file::function_words::FunctionWords;
use crate::trace_file::schema::Schema;
use crate::trace_file::session::Slot;
use crate::trace_file::time::SessionClock;

/// Where a record stands: slot, page in it, number in the page.
pub(crate) type RecordPlace = (usize, usize, u64);

/// Records of one span that are kept, beside the first.
const RECORDS_MAX: usize = 64;

/// An entry or exit of a call on another stack: tick, place, whose and where, whether it is an exit.
type Elsewhere = (u64, RecordPlace, (u64, u32, u64), bool);

/// What began before the window and may reach into it.
#[derive(Default)]
struct Begun {
    /// Records of the lives of spans, but for entries and exits: tick, place, the span's id, shape.
    lives: Vec<(u64, RecordPlace, u64, Shape)>,
    /// What is entered in the ring at hand, by the span's id.
    entered: Vec<(u64, RecordPlace)>,
    /// Calls that are open in the ring at hand, by tracers and the function's id.
    calls: Vec<((u64, u32), RecordPlace)>,
    /// Entries and exits of calls on other stacks, which may end in another thread.
    elsewhere: Vec<Elsewhere>,
    /// What stays.
    kept: Vec<RecordPlace>,
    inside: Inside,
}

/// Leaves out the records that are earlier than the windows of their pages, and counts each page
/// again.
pub(crate) fn apply(slots: &mut [Slot], schema: &Schema, clock: &SessionClock) {
    let pages = || slots.iter().flat_map(|slot| &slot.pages);
    if pages().all(|page| page.from_mono_ns == 0) {
        return;
    }
    for page in slots.iter_mut().flat_map(|slot| &mut slot.pages) {
        page.from = clock.first_tick(page.from_mono_ns);
    }
    for (number, at, index) in reaching(slots, schema, |page| page.from, Inside::Stays) {
        slots[number].pages[at].kept.push(index);
    }
    let mut bytes = Vec::new();
    for page in slots.iter_mut().flat_map(|slot| &mut slot.pages) {
        page.kept.sort_unstable();
        page.load_into(&mut bytes);
        page.check(&bytes, |_| ());
    }
}

/// What becomes of the calls of other tracers inside a call that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Inside {
    /// They may go on, for one of these tracers.
    #[default]
    Stays,
    /// They have ended with it.
    Ends,
}

/// The records before the window that begin what reaches into it. `from`: the tick at which the window
/// of a page begins.
pub(crate) fn reaching(
    slots: &[Slot],
    schema: &Schema,
    from: impl Fn(&Page) -> u64,
    inside: Inside,
) -> Vec<RecordPlace> {
    let (mut begun, mut bytes) = (Begun::default(), Vec::new());
    begun.inside = inside;
    for (number, slot) in slots.iter().enumerate() {
        let mut ring: Option<RingId> = None;
        for (at, page) in slot.pages.iter().enumerate() {
            if ring.replace(page.ring) != Some(page.ring) {
                begun.end_ring();
            }
            let from = from(page);
            if page.summary.ticks.is_none_or(|(low, _)| low >= from) && page.from == 0 {
                continue;
            }
            page.load_into(&mut bytes);
            let old = page.all_records(&bytes).filter(|record| record.tick < from);
            for record in old {
                let payload = record.payload(&bytes);
                begun.take(schema, &record, payload, (number, at, record.index));
            }
        }
        begun.end_ring();
    }
    begun.kept()
}

impl Begun {
    fn take(&mut self, schema: &Schema, record: &Record, payload: &[u8], place: RecordPlace) {
        let Some(ty) = schema.find(record.type_id) else {
            return;
        };
        if let Some(function) = ty.function {
            let tracers = match self.inside {
                Inside::Stays => function.tracers,
                Inside::Ends => 0,
            };
            let call = (tracers, function.function);
            if function.has_slot {
                let words = FunctionWords::read(function, payload);
                if let Some(slot) = words.slot.filter(|_| !function.timed) {
                    let key = (call.0, call.1, slot);
                    self.elsewhere
                        .push((record.tick, place, key, function.exit));
                }
            } else if function.exit {
                if let Some(at) = self.calls.iter().rposition(|c| c.0 == call) {
                    // What these tracers saw inside it has ended with it.
                    let inside = self.calls.split_off(at).into_iter();
                    let others = inside.filter(|c| c.0.0 != tracers);
                    self.calls.extend(others);
                }
            } else if !function.timed && !function.loose {
                self.calls.push((call, place));
            }
            return;
        }
        let id = ty
            .span_id
            .and_then(|f| ty.fields[usize::from(f)].number(payload));
        let Some(id) = id else { return };
        match ty.shape {
            Some(shape) if shape.is_part_of_span() && !is_poll(shape) => {
                self.lives.push((record.tick, place, id, shape));
            }
            Some(Shape::SpanEnter) => self.entered.push((id, place)),
            Some(Shape::SpanExit) => {
                if let Some(at) = self.entered.iter().rposition(|e| e.0 == id) {
                    self.entered.remove(at);
                }
            }
            _ => {}
        }
    }

    /// What is open at the end of a ring's old records stays.
    fn end_ring(&mut self) {
        self.kept.extend(self.entered.drain(..).map(|e| e.1));
        self.kept.extend(self.calls.drain(..).map(|c| c.1));
    }

    /// Follows the lives of spans in the order of time: an id may be given again after a close.
    fn kept(mut self) -> Vec<RecordPlace> {
        let mut elsewhere = HashMap::new();
        self.elsewhere.sort_unstable_by_key(|call| (call.0, call.1));
        for (_, place, key, is_exit) in self.elsewhere.drain(..) {
            match is_exit {
                true => elsewhere.remove(&key),
                false => elsewhere.insert(key, place),
            };
        }
        self.kept.extend(elsewhere.into_values());
        let (mut open, mut closed) = (HashMap::<u64, Life>::new(), HashSet::new());
        self.lives.sort_unstable_by_key(|life| (life.0, life.1));
        for (_, place, id, shape) in self.lives {
            match shape {
                Shape::SpanClose => {
                    open.remove(&id);
                    closed.insert(id);
                }
                Shape::SpanNew => {
                    closed.remove(&id);
                    open.insert(id, Life(vec![place]));
                }
                _ if closed.contains(&id) => {}
                _ => open.entry(id).or_default().push(place),
            }
        }
        self.kept.extend(open.into_values().flat_map(|life| life.0));
        self.kept
    }
}

/// The records of a span that was not closed.
#[derive(Default)]
struct Life(Vec<RecordPlace>);

impl Life {
    /// Adds a record with fields. The latest of very many are kept.
    fn push(&mut self, place: RecordPlace) {
        if self.0.len() > RECORDS_MAX {
            self.0.remove(1);
        }
        self.0.push(place);
    }
}

/// Whether a record of this shape says that a thread enters or leaves a span.
const fn is_poll(shape: Shape) -> bool {
    matches!(shape, Shape::SpanEnter | Shape::SpanExit)
}
