//! Which finished span an event lies in.
//!
//! A finished span is one record, written at its end. The events inside the span were written
//! before it, in the same ring. So each ring is walked from its end, with a stack of the spans that
//! are still open. What is kept of that walk is the stack at the end of each page: the spans that
//! reach beyond it. With it the records of a page find their spans when the page is loaded.
//!
//! A thread with rings in several sessions is walked likewise, over all of them ([`shared_threads`]).
//!
//! [`shared_threads`]: crate::trace_file::shared_threads

use std::collections::HashMap;

use ringmark_format::RingId;
use ringmark_format::schema::Shape;

use crate::blocks::page::{Around, Page};
use crate::trace_file::finished_spans::ReachingSpans;
use crate::trace_file::schema::Schema;
use crate::trace_file::session::{Session, Slot};
use crate::trace_file::shared_threads::{PagePlace, SharedThread};

/// What finds the finished spans around the records of a page.
#[derive(Clone, Copy)]
pub(crate) struct SpanPlaces<'a> {
    pub(crate) sessions: &'a [Session],
    pub(crate) threads: &'a [SharedThread],
}

impl SpanPlaces<'_> {
    /// For each record of a page of this session, by its index, the id of the innermost finished span around
    /// it; 0, or no entry: there is none. `bytes`: those of the page, as they were loaded.
    pub(crate) fn around(self, session: &Session, page: &Page, bytes: &[u8]) -> Vec<u64> {
        if let Around::None = page.around {
            return Vec::new();
        }
        let ring = page.around.of_ring();
        let mut ids = (session.reaching).around(page, bytes, &session.schema, ring);
        if let Around::Thread(of) = &page.around
            && let Some(thread) = self.threads.get(of.thread as usize)
        {
            thread.put_around(self.sessions, of, (page, bytes), &mut ids);
        }
        ids
    }
}

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

/// Finds the finished spans around the records of all sessions. Returns the threads that [`SpanPlaces`] needs.
pub(crate) fn contain(sessions: &mut [Session]) -> Vec<SharedThread> {
    let threads = in_several(sessions);
    for session in sessions.iter_mut().filter(|s| s.schema.has(Shape::Span)) {
        let (slots, schema) = (&mut session.slots, &session.schema);
        let reaching = &mut session.reaching;
        *reaching = ReachingSpans::of(schema);
        slots
            .iter_mut()
            .for_each(|slot| contain_slot(reaching, slot, schema));
    }
    let has_spans = |(session, slot, place): &PagePlace| {
        let session = &sessions[*session];
        !session
            .reaching
            .none_ends_in(&session.slots[*slot].pages[*place])
    };
    let threads = threads.into_values();
    let threads: Vec<_> = threads
        .filter(|pages| pages.iter().any(has_spans))
        .collect();
    let threads = threads.iter().enumerate();
    threads
        .map(|(thread, pages)| SharedThread::join(sessions, thread, pages))
        .collect()
}

/// Whether records of the session may lie in spans, or be spans: those of functions do not.
fn has_events(session: &Session) -> bool {
    let types = session.schema.types().iter();
    let mut events = types.filter(|ty| ty.occurs && ty.function.is_none());
    events.next().is_some()
}

/// The pages of each thread that has rings in several sessions, one of which has finished spans.
fn in_several(sessions: &[Session]) -> HashMap<u32, Vec<PagePlace>> {
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
