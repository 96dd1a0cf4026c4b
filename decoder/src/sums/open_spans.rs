//! What each thread was in: the spans that were open when a session was copied, or when its process
//! died.
//!
//! A frame in the stack of a thread is an open span, unless its record is here as well: then the
//! program was stopped between the record and the end in the stack, or the pages were copied later.

use std::collections::{HashMap, HashSet};

use ringmark_format::open_span::{ENDED_SESSION, Frame, Head, MOVING};
use ringmark_format::schema::{Kind, Shape};
use ringmark_format::session::Clock;
use ringmark_format::{RingId, TypeId};

use crate::blocks::page::Page;
use crate::blocks::walk::Record;
use crate::trace_file::dump::Dump;
use crate::trace_file::field::Field;
use crate::trace_file::finished_spans::duration_ticks;
use crate::trace_file::open_spans::OpenStack;
use crate::trace_file::schema::EventType;
use crate::trace_file::session::Session;
use crate::trace_file::value::Value;

/// A thread that has spans open.
#[derive(Debug)]
pub struct OpenThread<'a> {
    /// Its session.
    pub session: &'a Session,
    /// Its ring.
    pub ring: RingId,
    /// Its thread id, in its process's own pid namespace.
    pub tid: u32,
    /// Name of the thread when it attached, at most 16 bytes, or empty.
    pub comm: &'a [u8],
    /// Its open spans, the outermost first.
    pub spans: Vec<OpenSpan<'a>>,
    /// Spans that are open beyond those, inside the last one: only their number is known.
    pub deeper: u64,
    /// The thread went on while its stack was copied: all these spans were open, others may be
    /// missing.
    pub moving: bool,
}

/// A span that is open.
#[derive(Debug)]
pub struct OpenSpan<'a> {
    /// Its type.
    pub ty: &'a EventType,
    /// Tick at which it began, or was entered.
    pub since: u64,
    /// The same in ns since the session's start.
    pub since_ns: u64,
    /// How long it had been open, ns: when the session was copied; of a process that has ended, at its
    /// end, or if no reader saw that, when its last event was recorded or its last span began.
    pub open_ns: u64,
    /// Id of a span that may change threads.
    pub span: Option<u64>,
    /// The beginning of its payload, as its type describes it.
    pub(crate) payload: Vec<u8>,
    /// Places of fields that were cut.
    cut: Vec<usize>,
}

/// What is known of an argument of an open span.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kept<'a> {
    /// All of it.
    Whole(Value<'a>),
    /// A text or bytes, of which the end is missing.
    Cut(Value<'a>),
    /// Nothing: there was no room for it, or it is only known at the end.
    Not,
}

impl OpenThread<'_> {
    /// Name of the thread, or of its process where it has none.
    #[must_use]
    pub fn name(&self) -> &[u8] {
        match self.comm {
            [] => self.session.process_name(),
            name => name,
        }
    }
}

impl OpenSpan<'_> {
    /// Its arguments as they were when it began. Fields that carry structure are left out, as in
    /// [`Event::args`](crate::Event::args).
    pub fn args(&self) -> impl Iterator<Item = (&Field, Kept<'_>)> {
        let fields = self.ty.fields.iter().enumerate();
        let shown = fields.filter(|(place, _)| self.ty.shows(*place));
        shown.map(|(place, field)| {
            let kept = match field.value(&self.payload) {
                Value::Missing => Kept::Not,
                value if self.cut.contains(&place) => Kept::Cut(value),
                value => Kept::Whole(value),
            };
            (field, kept)
        })
    }
}

impl Dump {
    /// The threads that have spans open, by session and slot.
    #[must_use]
    pub fn open_spans(&self) -> Vec<OpenThread<'_>> {
        let sessions = self.sessions.iter();
        sessions.flat_map(open_in).collect()
    }
}

fn open_in(session: &Session) -> Vec<OpenThread<'_>> {
    if session.open_stacks.is_empty() {
        return Vec::new();
    }
    let known = Known::of(session);
    let last = session.last_tick();
    let threads = session.open_stacks.iter();
    threads
        .map(|stack| open_of(session, stack, &known, last))
        .filter(|thread| !thread.spans.is_empty() || thread.deeper > 0)
        .collect()
}

fn open_of<'a>(
    session: &'a Session,
    stack: &'a OpenStack,
    known: &Known,
    last: u64,
) -> OpenThread<'a> {
    let header = &stack.header;
    let now = match header.tick {
        ENDED_SESSION => last,
        tick => tick,
    };
    let is_open = |frame: &&Frame| {
        Head::unpack(frame.head).is_some_and(|head| {
            let shape = session.schema.find(head.type_id).and_then(|ty| ty.shape);
            !known
                .finished
                .contains(&key(header.tid, head, shape, frame))
        })
    };
    let frames = stack.frames.iter().filter(is_open);
    let name = &header.thread_name;
    let end = name.iter().position(|byte| *byte == 0);
    OpenThread {
        session,
        ring: RingId(header.ring_id),
        tid: header.tid,
        comm: &name[..end.unwrap_or(name.len())],
        spans: frames
            .filter_map(|frame| open_span(session, frame, known, now))
            .collect(),
        deeper: header.over,
        moving: header.flags & MOVING != 0,
    }
}

fn open_span<'a>(
    session: &'a Session,
    frame: &Frame,
    known: &Known,
    now: u64,
) -> Option<OpenSpan<'a>> {
    let head = Head::unpack(frame.head)?;
    let ty = session.schema.find(head.type_id)?;
    let made = known.made.get(&frame.payload[0]).and_then(Option::as_ref);
    // The same span may have been made with values of other types.
    let (ty, mut payload) = match made.filter(|_| ty.shape == Some(Shape::SpanNew)) {
        Some((made, payload)) => (session.schema.find(*made)?, payload.clone()),
        None => (ty, kept(ty, head, frame)),
    };
    let cut = cut_texts(ty, &mut payload);
    let span = ty
        .span_id
        .and_then(|place| ty.fields[usize::from(place)].number(&payload));
    let since_ns = session.clock.t_ns(frame.tick);
    Some(OpenSpan {
        ty,
        since: frame.tick,
        since_ns,
        open_ns: session.clock.t_ns(now).saturating_sub(since_ns),
        span,
        payload,
        cut,
    })
}

/// Shortens the texts that reach beyond what was kept; returns which these are.
fn cut_texts(ty: &EventType, payload: &mut [u8]) -> Vec<usize> {
    let mut cut = Vec::new();
    for (place, field) in ty.fields.iter().enumerate() {
        let is_text = matches!(field.kind, Some(Kind::Str | Kind::Bytes));
        let at = field.offset as usize;
        let Some(pair) = payload.get(at..at.saturating_add(8)) else {
            continue;
        };
        let Some(pair) = pair.first_chunk() else {
            continue;
        };
        let pair = u64::from_le_bytes(*pair);
        let (start, bytes) = (pair as u32 as usize, (pair >> 32) as usize);
        let kept = payload.len().saturating_sub(start);
        if is_text && field.count == 0 && !field.optional && kept > 0 && bytes > kept {
            let shorter = start as u64 | (kept as u64) << 32;
            payload[at..at + 8].copy_from_slice(&shorter.to_le_bytes());
            cut.push(place);
        }
    }
    cut
}

/// Which span a frame is of: thread id, type, tick at which it began or was entered, and the id of
/// one that may change threads.
type Key = (u32, u32, u64, u64);

fn key(tid: u32, head: Head, shape: Option<Shape>, frame: &Frame) -> Key {
    let id = match shape {
        Some(Shape::SpanNew) => frame.payload[0],
        _ => 0,
    };
    (tid, head.type_id.0, frame.tick, id)
}

/// The beginning of a payload, as a frame has it.
fn kept(ty: &EventType, head: Head, frame: &Frame) -> Vec<u8> {
    let kept = frame.payload.iter().take(head.words as usize);
    let kept = kept.flat_map(|word| word.to_le_bytes());
    // The duration comes with the end.
    let lead = if ty.shape == Some(Shape::Span) { 8 } else { 0 };
    std::iter::repeat_n(0, lead).chain(kept).collect()
}

/// What the pages say about the spans that stand in frames.
#[derive(Debug, Default)]
struct Known {
    /// Those that have ended.
    finished: HashSet<Key>,
    /// Those that may change threads, by id, with type and payload of the record that made them: a
    /// frame has no room for it.
    made: HashMap<u64, Option<(TypeId, Vec<u8>)>>,
}

impl Known {
    fn of(session: &Session) -> Self {
        let mut known = Self::default();
        for frame in session.open_stacks.iter().flat_map(|stack| &stack.frames) {
            known.made.insert(frame.payload[0], None);
        }
        let mut bytes = Vec::new();
        for page in session.slots.iter().flat_map(|slot| &slot.pages) {
            if !known.may_tell(session, page) {
                continue;
            }
            page.load_into(&mut bytes);
            for record in page.records(&bytes) {
                known.take(session, page, &record, record.payload(&bytes));
            }
        }
        // The ticks of these clocks repeat: another span of the type may have begun at the same one.
        let clock = session
            .header
            .and_then(|header| Clock::from_u32(header.clock));
        if matches!(clock, Some(Clock::Coarse | Clock::None)) {
            known.finished.clear();
        }
        known
    }

    /// Whether the page may have a record that ends what a frame is of, or that made it. No span ends
    /// before it began; when one was made is not known.
    fn may_tell(&self, session: &Session, page: &Page) -> bool {
        let frames = session.open_stacks.iter().flat_map(|stack| &stack.frames);
        // A thread may be there for what else is said of it: its name, how long it waited for its ring.
        let Some(first) = frames.map(|frame| frame.tick).min() else {
            return false;
        };
        let last = page.summary.ticks.map(|(_, last)| last);
        session.schema.has(Shape::SpanNew) || last >= Some(first)
    }

    fn take(&mut self, session: &Session, page: &Page, record: &Record, payload: &[u8]) {
        let Some(ty) = session.schema.find(record.type_id) else {
            return;
        };
        let tid = page.header.tid;
        let of_thread = |stack: &&OpenStack| stack.header.tid == tid;
        let stacks = session.open_stacks.iter().filter(of_thread);
        let span = || {
            ty.span_id
                .and_then(|place| ty.fields[usize::from(place)].number(payload))
        };
        match ty.shape {
            Some(Shape::Span) => {
                let Some(ticks) = duration_ticks(ty, payload) else {
                    return;
                };
                let start = record.tick.wrapping_sub(ticks);
                let mut frames = stacks.flat_map(|stack| &stack.frames);
                if frames.any(|frame| frame.tick == start) {
                    self.finished.insert((tid, record.type_id.0, start, 0));
                }
            }
            Some(Shape::SpanNew) => {
                if let Some(made) = span().and_then(|id| self.made.get_mut(&id)) {
                    *made = Some((record.type_id, payload.to_vec()));
                }
            }
            // Left by the thread that had entered it.
            Some(Shape::SpanExit) => self.end(session, span(), record.tick, Some(tid)),
            // No thread is in it any more, whoever left it.
            Some(Shape::SpanClose) => self.end(session, span(), record.tick, None),
            _ => {}
        }
    }

    /// Notes that a span which may change threads ended at this tick: on this thread, or on all.
    fn end(&mut self, session: &Session, id: Option<u64>, tick: u64, tid: Option<u32>) {
        let meant = |stack: &&OpenStack| tid.is_none_or(|tid| stack.header.tid == tid);
        for stack in session.open_stacks.iter().filter(meant) {
            for frame in &stack.frames {
                if let Some(head) = Head::unpack(frame.head)
                    && let Some(entered) = session.schema.find(head.type_id)
                    && entered.shape == Some(Shape::SpanNew)
                    && Some(frame.payload[0]) == id
                    && frame.tick <= tick
                {
                    let key = key(stack.header.tid, head, entered.shape, frame);
                    self.finished.insert(key);
                }
            }
        }
    }
}
