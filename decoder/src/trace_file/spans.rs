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

use crate::blocks::page::Around;
use crate::blocks::walk::Record;
use crate::trace_file::finished_spans::{OpenSpans, ReachingSpans, finished, put};
use crate::trace_file::schema::Schema;
use crate::trace_file::session::{Session, Slot};

/// Walks the rings of a slot from its end; tells each page which spans reach beyond it. A ring ends
/// where its claim ends.
fn contain_slot(reaching: &mut ReachingSpans, slot: &mut Slot, schema: &Schema) {
    let mut top = 0;
    let mut ring: Option<RingId> = None;
    let mut bytes = Vec::new();
    for page in slot.pages.iter_mut().rev() {
        if ring.replace(page.ring) != Some(page.ring) {
            top = 0;
        }
        page.around = Around::Ring(top);
        if reaching.none_ends_in(page) {
            top = reaching.passing(page, top);
            continue;
        }
        page.load_into(&mut bytes);
        top = reaching.take_page(page, &bytes, schema, top);
    }
}

/// Finds the finished spans around the records of all sessions.
pub(crate) fn contain(sessions: &mut [Session]) {
    let threads = shared_threads(sessions);
    for session in sessions.iter_mut().filter(|s| s.schema.has(Shape::Span)) {
        let (slots, schema) = (&mut session.slots, &session.schema);
        let reaching = &mut session.reaching;
        *reaching = ReachingSpans::of(schema);
        slots
            .iter_mut()
            .for_each(|slot| contain_slot(reaching, slot, schema));
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
