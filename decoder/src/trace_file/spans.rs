//! Which finished span an event lies in.
//!
//! A finished span is one record, written at its end. The events inside the span were written
//! before it, in the same ring. So each ring is walked from its end, with a stack of the spans that
//! are still open. What is kept of that walk is the stack at the end of each page: the spans that
//! reach beyond it. With it the records of a page find their spans when the page is loaded.
//!
//! A thread with rings in several sessions is walked likewise, in the order of ticks, and the span
//! of each of its records is kept.

use std::collections::HashMap;

use ringmark_format::RingId;
use ringmark_format::schema::Shape;

use crate::blocks::page::{Around, Page};
use crate::blocks::walk::Record;
use crate::trace_file::schema::{EventType, Schema};
use crate::trace_file::session::{Session, Slot};

/// Marks span ids that no program gave: they are made of slot and number, unique within a process
/// of up to 8 sessions of 4096 slots, and below 2^53.
const MADE: u64 = 1 << 52;
/// Bits of the number of a record in its slot. Three more say which session of its process it is of.
const SEQ_BITS: u32 = 37;

/// The id of a finished span: the value of its field with semantic SPAN_ID, or an id that is made
/// of the record's session, slot and number.
pub(crate) fn finished_id(ty: &EventType, payload: &[u8], page: &Page, index: u64) -> u64 {
    let given = ty
        .span_id
        .and_then(|f| ty.fields[f].number(payload))
        .filter(|id| *id != 0);
    given.unwrap_or_else(|| {
        let seq = page.header.first_event.wrapping_add(index);
        let member = u64::from(page.member & 7) << SEQ_BITS;
        MADE | u64::from(page.header.slot & 0xFFF) << 40 | member | (seq & ((1 << SEQ_BITS) - 1))
    })
}

/// The duration of a finished span in ticks, if the type has one.
#[inline]
pub(crate) fn duration_ticks(ty: &EventType, payload: &[u8]) -> Option<u64> {
    ty.fields[ty.duration?].number(payload)
}

/// A finished span, on the way back from its end to its start.
#[derive(Debug, Clone, Copy)]
struct Reaching {
    start: u64,
    id: u64,
    /// Number of the span around it that reaches as far; 0: there is none.
    around: u32,
}

/// The finished spans of a session that reach from one page into an earlier one. Each names the one
/// around it, so that the stacks of all pages share what they have in common.
#[derive(Debug, Default)]
pub(crate) struct ReachingSpans(Vec<Reaching>);

/// The finished spans that are open at a place in a ring, which is walked from its end.
struct OpenSpans<'s> {
    /// Those that reach beyond the page at hand.
    reaching: &'s [Reaching],
    /// Number of the innermost of them that is still open; 0: none is.
    top: u32,
    /// Those that end in the page at hand.
    inner: Vec<(u64, u64)>,
}

impl<'s> OpenSpans<'s> {
    fn new(reaching: &'s [Reaching], top: u32) -> Self {
        Self {
            reaching,
            top,
            inner: Vec::new(),
        }
    }

    fn top(&self) -> Option<&'s Reaching> {
        self.reaching.get((self.top as usize).checked_sub(1)?)
    }

    /// Id of the innermost; 0: there is none.
    fn innermost(&self) -> u64 {
        let inner = self.inner.last().map(|span| span.1);
        inner.or(self.top().map(|span| span.id)).unwrap_or(0)
    }

    /// Drops the innermost spans that began after `start`: they overlap without nesting.
    fn drop_later(&mut self, start: u64) {
        while self.inner.pop_if(|span| span.0 > start).is_some() {}
        if self.inner.is_empty() {
            while let Some(span) = self.top().filter(|span| span.start > start) {
                self.top = span.around;
            }
        }
    }

    /// The innermost open span around a record with this tick; 0: there is none. `span`: start and id
    /// of the finished span that it is. That is put on the stack afterwards, so that it is not its own
    /// parent.
    fn around(&mut self, tick: u64, span: Option<(u64, u64)>) -> u64 {
        // A span that began after this record ended before what is still to be met.
        self.drop_later(tick);
        if let Some((start, _)) = span {
            self.drop_later(start);
        }
        let parent = self.innermost();
        self.inner.extend(span);
        parent
    }
}

impl ReachingSpans {
    /// Walks the ring of a slot from its end; tells each page which spans reach beyond it. A ring
    /// ends where its claim ends.
    fn take_slot(&mut self, slot: &mut Slot, schema: &Schema) {
        let mut top = 0;
        let mut ring: Option<RingId> = None;
        let mut bytes = Vec::new();
        for page in slot.pages.iter_mut().rev() {
            if ring.replace(page.ring) != Some(page.ring) {
                top = 0;
            }
            page.around = Around::Ring(top);
            page.load_into(&mut bytes);
            let mut open = OpenSpans::new(&self.0, top);
            let records: Vec<_> = page.records(&bytes).collect();
            for record in records.iter().rev() {
                let span = finished(record, record.payload(&bytes), page, schema);
                open.around(record.tick, span);
            }
            let (inner, outer) = (open.inner, open.top);
            top = self.push(inner, outer);
        }
    }

    /// Adds spans that reach into earlier pages, the innermost last; returns its number.
    fn push(&mut self, spans: Vec<(u64, u64)>, around: u32) -> u32 {
        spans.into_iter().fold(around, |around, (start, id)| {
            self.0.push(Reaching { start, id, around });
            self.0.len() as u32
        })
    }

    /// For each record of a page, by its index, the id of the innermost finished span around it; 0, or
    /// no entry: there is none. `bytes`: those of the page, as they were loaded.
    pub(crate) fn around(&self, page: &Page, bytes: &[u8], schema: &Schema) -> Vec<u64> {
        let top = match &page.around {
            Around::None => return Vec::new(),
            Around::Thread(ids) => return ids.clone(),
            Around::Ring(top) => *top,
        };
        let mut open = OpenSpans::new(&self.0, top);
        let mut ids = Vec::new();
        let records: Vec<_> = page.records(bytes).collect();
        for record in records.iter().rev() {
            let span = finished(record, record.payload(bytes), page, schema);
            let id = open.around(record.tick, span);
            put(&mut ids, page, record.index, id);
        }
        ids
    }
}

/// Start and id of the finished span that a record is.
fn finished(record: &Record, payload: &[u8], page: &Page, schema: &Schema) -> Option<(u64, u64)> {
    let ty = schema.find(record.type_id);
    let ty = ty.filter(|ty| ty.shape == Some(Shape::Span))?;
    let start = record.tick.saturating_sub(duration_ticks(ty, payload)?);
    Some((start, finished_id(ty, payload, page, record.index)))
}

/// Notes the id of the span around a record. A page without such ids has no list of them.
fn put(ids: &mut Vec<u64>, page: &Page, index: u64, id: u64) {
    if id != 0 {
        let reservations = page.summary.reservations() as usize;
        ids.resize(reservations.max(ids.len()), 0);
    }
    if let Some(place) = ids.get_mut(index as usize) {
        *place = id;
    }
}

/// Finds the finished spans around the records of all sessions.
pub(crate) fn contain(sessions: &mut [Session]) {
    let threads = shared_threads(sessions);
    for session in sessions.iter_mut().filter(|s| s.schema.has(Shape::Span)) {
        let (slots, schema) = (&mut session.slots, &session.schema);
        let reaching = &mut session.reaching;
        slots
            .iter_mut()
            .for_each(|slot| reaching.take_slot(slot, schema));
    }
    for pages in threads.values() {
        contain_thread(sessions, pages);
    }
}

/// Where a page is: session, slot, and place in the slot.
type PagePlace = (usize, usize, usize);

/// Whether records of the session may lie in spans, or be spans: those of functions do not.
fn has_events(session: &Session) -> bool {
    let types = session.schema.types().iter();
    let mut events = types.filter(|ty| ty.occurs && ty.function.is_none());
    events.next().is_some()
}

/// The pages of each thread that has rings in several sessions, one of which has finished spans.
fn shared_threads(sessions: &[Session]) -> HashMap<u32, Vec<PagePlace>> {
    let mut processes: HashMap<usize, (usize, bool)> = HashMap::new();
    for session in sessions.iter().filter(|session| has_events(session)) {
        let (number, has_spans) = processes.entry(session.process).or_default();
        *number += 1;
        *has_spans |= session.schema.has(Shape::Span);
    }
    let mut threads: HashMap<u32, Vec<PagePlace>> = HashMap::new();
    for (number, session) in sessions.iter().enumerate() {
        if !has_events(session) || !matches!(processes.get(&session.process), Some((2.., true))) {
            continue;
        }
        for (slot, found) in session.slots.iter().enumerate() {
            for (place, page) in found.pages.iter().enumerate() {
                let pages = threads.entry(page.thread).or_default();
                pages.push((number, slot, place));
            }
        }
    }
    let several = |pages: &Vec<PagePlace>| pages.iter().any(|page| page.0 != pages[0].0);
    threads.retain(|_, pages| several(pages));
    threads
}

/// A record of a thread with rings in several sessions, and the span that it is.
struct ThreadRecord {
    place: PagePlace,
    record: Record,
    /// Its start and id, if it is a finished span.
    span: Option<(u64, u64)>,
}

/// Finds the spans around the records of one thread in several sessions. Records of functions are
/// left out.
fn contain_thread(sessions: &mut [Session], places: &[PagePlace]) {
    let mut records = Vec::new();
    let mut of_rings = Vec::new();
    let mut bytes = Vec::new();
    for place in places {
        let session = &sessions[place.0];
        let page = &session.slots[place.1].pages[place.2];
        page.load_into(&mut bytes);
        of_rings.push(session.reaching.around(page, &bytes, &session.schema));
        for record in page.records(&bytes) {
            let ty = session.schema.find(record.type_id);
            if ty.is_none_or(|ty| ty.function.is_none()) {
                let span = finished(&record, record.payload(&bytes), page, &session.schema);
                records.push(ThreadRecord {
                    place: *place,
                    record,
                    span,
                });
            }
        }
    }
    for (place, ids) in places.iter().zip(of_rings) {
        sessions[place.0].slots[place.1].pages[place.2].around = Around::Thread(ids);
    }
    // Equal ticks of several sessions stay in the order of the sessions.
    records.sort_by_key(|found| found.record.tick);
    let mut open = OpenSpans::new(&[], 0);
    for found in records.iter().rev() {
        let id = open.around(found.record.tick, found.span);
        let (session, slot, place) = found.place;
        let page = &mut sessions[session].slots[slot].pages[place];
        if let Around::Thread(mut ids) = std::mem::take(&mut page.around) {
            put(&mut ids, page, found.record.index, id);
            page.around = Around::Thread(ids);
        }
    }
}
