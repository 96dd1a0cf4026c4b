//! What each thread did last, and what it is in.
//!
//! Only the end of each ring is read, from its last page back, and only the last claim of its slot: a
//! thread whose slot another one has taken since did nothing at the end. A thread with rings in
//! several sessions of its process is one thread. Where pages are missing, or the last thing that a
//! thread did was lost, what is shown is the last that is known.
//!
//! Times count back from one moment for all threads of a process. While it runs, that is the moment
//! of the copy. After its end it is that end, if a reader saw it, or else the last event of any thread.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use ringmark_format::schema::Shape;

use crate::blocks::page::Page;
use crate::events::event::Event;
use crate::events::payload::Payload;
use crate::sums::open_spans::OpenThread;
use crate::trace_file::dump::Dump;
use crate::trace_file::schema::EventType;
use crate::trace_file::session::{Session, Slot};

/// Most events of a thread.
const EVENTS_MAX: usize = 3;
/// Most pages of a ring that are looked through for them, the last one first.
const PAGES_MAX: usize = 8;

/// A thread, with what it did last.
#[derive(Debug)]
pub struct LastWords<'a> {
    /// The session of what it did last.
    pub session: &'a Session,
    /// Its thread id, in its process's own pid namespace; 0: not known.
    pub tid: u32,
    /// Name of the thread when it attached, at most 16 bytes, or empty.
    pub comm: &'a [u8],
    /// Its last events, the latest one last: at most three. Records that only tell of entering and
    /// leaving a span, or of its fields, are left out.
    pub events: Vec<Event<'a>>,
    /// The spans that it has open, by session.
    pub open: Vec<OpenThread<'a>>,
    /// When it did what it did last, in ns since the session's start.
    pub last_ns: u64,
    /// What times are counted back from, in ns since the session's start.
    pub until_ns: u64,
    /// What that moment is.
    pub until: Moment,
}

/// What the times of a process are counted back from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// The copy of a process that runs.
    Copy,
    /// The end of the process, as a reader saw it.
    End,
    /// The last event of a process that has ended: it may have lived longer.
    LastEvent,
}

impl Dump {
    /// What the last thread of each ring did last: threads with open spans first, then the others, and
    /// the latest first of both. Threads of whose rings nothing is here are missing.
    ///
    /// ```
    /// use ringmark_decoder::DumpBuilder;
    ///
    /// let dump = DumpBuilder::new().finish();
    /// for thread in dump.last_words() {
    ///     println!("{} events of {}", thread.events.len(), thread.tid);
    /// }
    /// ```
    #[must_use]
    pub fn last_words(&self) -> Vec<LastWords<'_>> {
        let mut threads: BTreeMap<(usize, u32), LastWords<'_>> = BTreeMap::new();
        for session in &self.sessions {
            let until = self.until(session.process);
            for slot in &session.slots {
                let events = last_events(session, slot);
                let Some(page) = slot.pages.last().filter(|_| !events.is_empty()) else {
                    continue;
                };
                let key = key(session, page.header.tid, slot.index.0);
                let thread = threads.entry(key).or_insert_with(|| {
                    let (tid, comm) = (page.header.tid, page.thread_name());
                    LastWords::new(session, tid, comm, until)
                });
                thread.events.extend(events);
            }
        }
        for open in self.open_spans() {
            let key = key(open.session, open.tid, 0);
            let until = self.until(open.session.process);
            let new = || LastWords::new(open.session, open.tid, open.comm, until);
            let thread = threads.entry(key).or_insert_with(new);
            thread.open.push(open);
        }
        let mut threads: Vec<_> = threads.into_values().map(LastWords::finish).collect();
        threads.sort_by_key(|thread| (thread.open.is_empty(), Reverse(thread.last_ns)));
        name_ended(&mut threads);
        threads
    }

    /// When the trace ends, in ns since 1970: when the last of its processes ended, was copied while it ran, or had
    /// its last event, if its end was not seen. `None`: no time is known.
    ///
    /// ```
    /// use ringmark_decoder::DumpBuilder;
    ///
    /// assert_eq!(DumpBuilder::new().finish().end_ns(), None);
    /// ```
    #[must_use]
    pub fn end_ns(&self) -> Option<u64> {
        let sessions = self.sessions.iter().filter(|session| session.has_times());
        let ends = sessions.filter_map(|session| {
            let clock = &session.clock;
            let tick = Some(end_tick(session)).filter(|tick| *tick != 0)?;
            Some(clock.wall_ns(clock.t_ns(tick)))
        });
        ends.max()
    }

    /// What the times of a process are counted back from, and when that was.
    fn until(&self, process: usize) -> (Moment, u64) {
        let sessions = || self.sessions.iter().filter(|s| s.process == process);
        let ends = sessions().map(|session| session.clock.t_ns(end_tick(session)));
        let moment = match sessions().any(|session| session.ending.is_some()) {
            _ if sessions().any(|session| session.dead_tick != 0) => Moment::End,
            true => Moment::LastEvent,
            false => Moment::Copy,
        };
        (moment, ends.max().unwrap_or(0))
    }
}

/// The tick up to which the session is known: that of its copy while its process runs.
fn end_tick(session: &Session) -> u64 {
    let counted = session.counters.as_ref().map(|c| c.header.sample_tick);
    let now = counted.filter(|_| session.ending.is_none());
    session.last_tick().max(now.unwrap_or(0))
}

/// A thread within its dump. One whose id is not known is of one ring alone.
fn key(session: &Session, tid: u32, slot: u32) -> (usize, u32) {
    match tid {
        0 => (usize::MAX - session.number, slot),
        _ => (session.process, tid),
    }
}

impl<'a> LastWords<'a> {
    /// Name of the thread, or of its process where it has none.
    #[must_use]
    pub fn name(&self) -> &'a [u8] {
        match self.comm {
            [] => self.session.process_name(),
            name => name,
        }
    }

    fn new(
        session: &'a Session,
        tid: u32,
        comm: &'a [u8],
        (until, until_ns): (Moment, u64),
    ) -> Self {
        Self {
            session,
            tid,
            comm,
            events: Vec::new(),
            open: Vec::new(),
            last_ns: 0,
            until_ns,
            until,
        }
    }

    /// Keeps the latest events, of whichever ring.
    fn finish(mut self) -> Self {
        self.events.sort_by_key(|event| (event.t_ns, event.seq));
        let before = self.events.len().saturating_sub(EVENTS_MAX);
        self.events.drain(..before);
        let open = self.open.iter().flat_map(|thread| &thread.spans);
        let begun = open.map(|span| span.since_ns);
        let last = self.events.last().map(|event| event.t_ns);
        self.last_ns = begun.chain(last).max().unwrap_or(0);
        self
    }
}

/// The last events of the thread that wrote to a slot last.
fn last_events<'a>(session: &'a Session, slot: &'a Slot) -> Vec<Event<'a>> {
    let Some(ring) = slot.pages.last().map(|page| page.ring) else {
        return Vec::new();
    };
    let pages = slot.pages.iter().rev();
    let pages = pages.take_while(|page| page.ring == ring).take(PAGES_MAX);
    let mut found = Vec::new();
    for page in pages {
        let mut events = last_of_page(session, page);
        events.append(&mut found);
        found = events;
        if found.len() >= EVENTS_MAX {
            break;
        }
    }
    found
}

fn last_of_page<'a>(session: &'a Session, page: &'a Page) -> Vec<Event<'a>> {
    let mut events: Vec<Event<'a>> = Vec::new();
    let bytes = page.load();
    for record in page.records(&bytes) {
        let Some(ty) = session.schema.find(record.type_id).filter(|ty| says(ty)) else {
            continue;
        };
        // Twice as many: records may step back in time.
        if events.len() == 2 * EVENTS_MAX {
            events.remove(0);
        }
        events.push(Event {
            session,
            page,
            ty,
            payload: Payload::copy(record.payload(&bytes)),
            seq: page.header.first_event.wrapping_add(record.index),
            tick: record.tick,
            t_ns: session.clock.t_ns(record.tick),
            span: None,
            parent: None,
            span_type: None,
            around: 0,
        });
    }
    events
}

/// Whether a person is told of an event of this type: it is no bookkeeping of a span, but for the
/// span's end.
fn says(ty: &EventType) -> bool {
    ty.shape == Some(Shape::SpanClose) || !ty.is_bookkeeping()
}

/// Finds the types of the spans whose end is among the events: such a record has only the id.
fn name_ended(threads: &mut [LastWords<'_>]) {
    let mut wanted: HashMap<(usize, u64), Option<&EventType>> = HashMap::new();
    let ended = threads.iter().flat_map(|thread| &thread.events);
    wanted.extend(ended.filter_map(|event| Some((ended_span(event)?, None))));
    let mut sessions: Vec<_> = threads.iter().map(|thread| thread.session).collect();
    sessions.dedup_by_key(|session| session.number);
    let mut bytes = Vec::new();
    for session in sessions {
        let is_wanted = wanted.keys().any(|(number, _)| *number == session.number);
        let pages = session.slots.iter().flat_map(|slot| &slot.pages);
        for page in pages.filter(|_| is_wanted) {
            page.load_into(&mut bytes);
            for record in page.records(&bytes) {
                if let Some(ty) = session.schema.find(record.type_id)
                    && ty.shape == Some(Shape::SpanNew)
                    && let Some(id) = span_id(ty, record.payload(&bytes))
                    && let Some(made) = wanted.get_mut(&(session.number, id))
                {
                    *made = Some(ty);
                }
            }
        }
    }
    for event in threads.iter_mut().flat_map(|thread| &mut thread.events) {
        if let Some(span) = ended_span(event) {
            event.span = Some(span.1);
            event.span_type = wanted.get(&span).copied().flatten();
        }
    }
}

/// The span that an event ends, by session and id, if it only names it by its id.
fn ended_span(event: &Event<'_>) -> Option<(usize, u64)> {
    let id = span_id(event.ty, &event.payload)?;
    (event.ty.shape == Some(Shape::SpanClose)).then_some((event.session.number, id))
}

fn span_id(ty: &EventType, payload: &[u8]) -> Option<u64> {
    ty.fields[usize::from(ty.span_id?)].number(payload)
}
