//! Puts the records of a span's life together: made, entered, left, closed become one [`Span`].
//!
//! The records of one span may lie in the rings of many threads; they come in the order of time.
//! A span is known by its id from the record that makes it to the one that closes it, so an id
//! that is given again later is another span. Memory is that of the spans that are open.

use std::collections::{HashMap, VecDeque};

use ringmark_format::schema::Shape;
use ringmark_format::{TypeId, Uuid};

use crate::events::event::{Event, Lost, Output};
use crate::events::filter::Filter;
use crate::events::gaps::Gaps;
use crate::events::nesting::{Ended, Nesting};
use crate::events::open_span::OpenSpan;
use crate::events::payload::Payload;
use crate::events::span::Span;
use crate::trace_file::dump::Dump;
use crate::trace_file::schema::EventType;
use crate::trace_file::session::Session;

/// Most spans that are followed at one time, over all sessions.
const OPEN_MAX: usize = 1 << 20;
/// Most bytes of their records.
const BYTES_MAX: usize = 256 << 20;
/// Deepest nesting of entered spans that is followed on a thread.
const DEPTH_MAX: usize = 4096;
/// Spans per session whose late records are known as theirs after they were closed.
const CLOSED_MAX: usize = 1 << 14;

/// What an item is, among the records of spans.
#[derive(Debug)]
pub enum Paired<'a> {
    /// It stands for itself: an event, a call, a native span or a loss.
    Alone,
    /// A part of a span that is not closed yet, or whose beginning is not known.
    Part,
    /// It closes this span.
    Ended(Box<Span<'a>>),
}

/// Spans of one type that the trace does not hold from beginning to end.
#[derive(Debug, Clone, Copy)]
pub struct CutSpans<'a> {
    /// Their session.
    pub session: &'a Session,
    /// The type that made them or recorded their fields; `None`: no record says.
    pub ty: Option<&'a EventType>,
    /// Spans whose beginning was not met. They may have an end.
    pub no_start: u64,
    /// Spans that began and whose end was not met.
    pub no_end: u64,
}

/// The spans of one session.
#[derive(Debug, Default)]
struct InSession {
    open: HashMap<u64, OpenSpan>,
    /// Ids of the spans that the thread of a ring is in, the innermost last.
    entered: HashMap<u64, Vec<u64>>,
    /// Losses so far.
    losses: u64,
    /// Spans that were closed lately, by id, with their number in `closed`.
    is_closed: HashMap<u64, u64>,
    closed: VecDeque<(u64, u64)>,
    closed_count: u64,
}

/// The open spans of all sessions.
#[derive(Debug, Default)]
pub struct SpanPairs {
    sessions: HashMap<Uuid, InSession>,
    gaps: Gaps,
    /// Records of calls that do not pass are not met; `None`: all are.
    calls: Option<Filter>,
    /// What has ended in each thread. Calls are put in by [`crate::Calls::take_with`].
    pub(crate) nesting: Nesting,
    /// Beginnings and ends that were not met, of spans that are not open any more.
    cut: HashMap<(Uuid, Option<TypeId>), (u64, u64)>,
    open: usize,
    bytes: usize,
    left_out: u64,
}

impl SpanPairs {
    /// Without open spans, for the events of this dump. It is known where the dump has gaps.
    #[must_use]
    pub fn new(dump: &Dump) -> Self {
        Self {
            gaps: Gaps::of(dump),
            ..Self::default()
        }
    }

    /// The same for those who take the records of calls that pass `records` alone.
    #[must_use]
    pub fn of_part(dump: &Dump, records: &Filter) -> Self {
        let mut functions = dump
            .sessions
            .iter()
            .map(|session| session.schema.functions());
        let has_calls = functions.any(|functions| functions.len() > 0);
        Self {
            calls: has_calls.then(|| records.clone()),
            ..Self::new(dump)
        }
    }

    /// Spans that were not followed, because too many were open at one time: 1,048,576, or 256 MiB
    /// of fields.
    #[must_use]
    pub const fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Number of spans that are open now, those without a known beginning with them.
    #[must_use]
    pub const fn open(&self) -> usize {
        self.open
    }

    /// What is held of the record that made an open span: type, tick and fields. `None`: the span is
    /// not open, or not followed, or that record was not met.
    #[must_use]
    pub fn made<'a>(&self, session: &'a Session, id: u64) -> Option<(&'a EventType, u64, Payload)> {
        let span = self.sessions.get(&session.uuid)?.open.get(&id)?;
        let (ty, fields) = span.made()?;
        let ty = session.schema.find(ty)?;
        Some((ty, span.first_tick, Payload::copy(fields)))
    }

    /// Takes the next item in the order of time. A [`crate::Follower`]'s news are such items too.
    #[inline]
    pub fn take<'a>(&mut self, item: &Output<'a>) -> Paired<'a> {
        match item {
            Output::Event(event) if !event.ty.shape.is_some_and(Shape::is_part_of_span) => {
                Paired::Alone
            }
            Output::Event(event) => self.event(event),
            Output::Lost(lost) => {
                self.lose(lost);
                Paired::Alone
            }
        }
    }

    /// The native span that this event is, with its own time; `None`: it is something else. What is
    /// inside it must have come before, as it does in the order of time.
    pub fn whole<'a>(&mut self, event: &Event<'a>) -> Option<Span<'a>> {
        let (_, own_ns) = self.native(event)?;
        let mut span = Span::of_event(event)?;
        span.self_ns = own_ns;
        Some(span)
    }

    /// How long a native span took, in ns, and how much of that is its own; `None`: it is something else.
    pub(crate) fn native(&mut self, event: &Event<'_>) -> Option<(u64, Option<u64>)> {
        let took_ns = event.took_ns().filter(|_| event.ty.function.is_none())?;
        let ended = Ended {
            from: event.start_tick(),
            to: event.tick,
            part: took_ns,
        };
        let inside = self.nesting.end(event.thread(), ended);
        let own_ns = self.is_whole(event).then_some(took_ns - inside);
        Some((took_ns, own_ns))
    }

    /// Whether all records of its thread are here and met from the beginning of a native span, or of a call
    /// that one record describes, to its end: this record. Else its own time is not known.
    #[must_use]
    pub fn is_whole(&self, event: &Event<'_>) -> bool {
        self.has_all(event, event.start_tick())
    }

    /// The same for what began at a tick and ends with this record.
    pub(crate) fn has_all(&self, event: &Event<'_>, from: u64) -> bool {
        !self.gaps.in_thread(event.thread(), from, event.tick) && self.meets_calls(event, from)
    }

    /// Whether all calls are met that a thread made since this tick of the event's session.
    fn meets_calls(&self, event: &Event<'_>, since: u64) -> bool {
        let from = self.calls.as_ref().and_then(|calls| calls.from);
        from.is_none_or(|from| {
            let clock = &event.session.clock;
            let t_ns = clock.t_ns(since);
            !from.is_after(t_ns, clock.wall_ns(t_ns))
        })
    }

    /// The spans so far that were not met from beginning to end, those still open with them.
    #[must_use]
    pub fn cut<'a>(&self, dump: &'a Dump) -> Vec<CutSpans<'a>> {
        let mut all = self.cut.clone();
        for (uuid, of_session) in &self.sessions {
            for span in of_session.open.values() {
                count_cut(&mut all, *uuid, span);
            }
        }
        let mut found = Vec::new();
        for session in &dump.sessions {
            let mut of_session: Vec<_> = all.iter().filter(|(k, _)| k.0 == session.uuid).collect();
            of_session.sort_unstable_by_key(|((_, ty), _)| ty.map(|ty| ty.0));
            found.extend(of_session.into_iter().map(|((_, ty), counts)| CutSpans {
                session,
                ty: ty.and_then(|id| session.schema.find(id)),
                no_start: counts.0,
                no_end: counts.1,
            }));
        }
        found
    }

    fn event<'a>(&mut self, event: &Event<'a>) -> Paired<'a> {
        let is_part = event.ty.shape.is_some_and(Shape::is_part_of_span);
        let Some(id) = event.span.filter(|_| is_part) else {
            return Paired::Alone;
        };
        match event.ty.shape {
            Some(Shape::SpanFollows) => {}
            Some(Shape::SpanClose) => {
                if let Some(span) = self.close(event, id) {
                    return Paired::Ended(Box::new(span));
                }
            }
            _ => self.part(event, id),
        }
        Paired::Part
    }

    /// A record of a span that goes on.
    fn part(&mut self, event: &Event<'_>, id: u64) {
        let is_new = event.ty.shape == Some(Shape::SpanNew);
        let of_session = self.sessions.entry(event.session.uuid).or_default();
        if is_new {
            of_session.is_closed.remove(&id);
            // The one before has lost its close, unless records of this one came before this.
            let before = of_session.open.get(&id);
            if before.is_some_and(|b| b.made().is_some() || b.first_tick < event.tick) {
                self.drop_cut(event.session.uuid, id);
            }
        } else if of_session.is_closed.contains_key(&id) {
            return;
        }
        let of_session = self.sessions.entry(event.session.uuid).or_default();
        if !of_session.open.contains_key(&id) {
            if self.open >= OPEN_MAX || self.bytes >= BYTES_MAX {
                self.left_out += u64::from(is_new);
                return;
            }
            self.open += 1;
            let span = OpenSpan::new(event, of_session.losses);
            of_session.open.insert(id, span);
        }
        let Some(span) = of_session.open.get_mut(&id) else {
            return;
        };
        let bytes = span.bytes();
        match event.ty.shape {
            Some(Shape::SpanNew) => span.make(event),
            Some(Shape::SpanRecord) => span.record(event),
            Some(Shape::SpanEnter) => {
                span.enter(event);
                of_session.enter(event.ring().0, id);
            }
            _ => {
                if let Some((since, took)) = span.exit(event) {
                    let ended = Ended {
                        from: since,
                        to: event.tick,
                        part: took,
                    };
                    let inside = self.nesting.end(event.thread(), ended);
                    span.add_nested(inside);
                }
                of_session.exit(event.ring().0, id);
            }
        }
        let now = of_session.open.get(&id).map_or(0, OpenSpan::bytes);
        self.bytes = (self.bytes + now).saturating_sub(bytes);
    }

    fn close<'a>(&mut self, event: &Event<'a>, id: u64) -> Option<Span<'a>> {
        let uuid = event.session.uuid;
        let of_session = self.sessions.entry(uuid).or_default();
        let Some(span) = of_session.open.remove(&id) else {
            if of_session.remember_closed(id) {
                self.cut.entry((uuid, None)).or_default().0 += 1;
            }
            return None;
        };
        of_session.remember_closed(id);
        of_session.leave(&span, id);
        let losses = of_session.losses;
        self.open -= 1;
        self.bytes = self.bytes.saturating_sub(span.bytes());
        if span.made().is_none() {
            count_cut(&mut self.cut, uuid, &span);
        }
        let is_inner = of_session.has_around(&span);
        let gaps = &self.gaps;
        let has_gap = |uuid, from, to| gaps.in_session(uuid, from, to);
        let first_tick = span.first_tick;
        let mut span = span.close(event, (losses, has_gap))?;
        span.is_inner = is_inner;
        let tids = self.calls.as_ref().map_or(&[][..], |calls| &calls.tids);
        let are_met = tids.is_empty() || span.tids.iter().all(|tid| tids.contains(tid));
        if !are_met || !self.meets_calls(event, first_tick) {
            span.self_ns = None;
        }
        Some(span)
    }

    /// Gives up a span whose id is another one's now.
    fn drop_cut(&mut self, uuid: Uuid, id: u64) {
        let of_session = self.sessions.entry(uuid).or_default();
        if let Some(span) = of_session.open.remove(&id) {
            self.open -= 1;
            self.bytes = self.bytes.saturating_sub(span.bytes());
            count_cut(&mut self.cut, uuid, &span);
            of_session.leave(&span, id);
        }
    }

    /// Which spans the thread of this ring has entered and left is not known from here on.
    fn lose(&mut self, lost: &Lost<'_>) {
        let Some(of_session) = self.sessions.get_mut(&lost.session.uuid) else {
            return;
        };
        of_session.losses += 1;
        let Some(ring) = lost.ring else { return };
        for id in of_session.entered.remove(&ring.0).unwrap_or_default() {
            if let Some(span) = of_session.open.get_mut(&id) {
                span.lose(ring.0);
            }
        }
    }
}

/// Counts a span without a beginning, or one without an end.
fn count_cut(cut: &mut HashMap<(Uuid, Option<TypeId>), (u64, u64)>, uuid: Uuid, span: &OpenSpan) {
    match span.made() {
        Some((ty, _)) => cut.entry((uuid, Some(ty))).or_default().1 += 1,
        None => {
            let ty = span.later().first().map(|kept| kept.ty);
            cut.entry((uuid, ty)).or_default().0 += 1;
        }
    }
}

impl InSession {
    fn enter(&mut self, ring: u64, id: u64) {
        let entered = self.entered.entry(ring).or_default();
        if entered.len() < DEPTH_MAX {
            entered.push(id);
        }
    }

    /// The thread of this ring leaves a span.
    fn exit(&mut self, ring: u64, id: u64) {
        let Some(entered) = self.entered.get_mut(&ring) else {
            return;
        };
        let Some(place) = entered.iter().rposition(|inner| *inner == id) else {
            return;
        };
        entered.remove(place);
        if entered.is_empty() {
            self.entered.remove(&ring);
        }
    }

    /// Whether a span of the same type is around one, and open.
    fn has_around(&self, span: &OpenSpan) -> bool {
        let ty = span.made().map(|(ty, _)| ty);
        let around = |span: &OpenSpan| self.open.get(&span.parent());
        let all = std::iter::successors(around(span), |span| around(span));
        // Ids that a file makes up may go round in a circle.
        let mut all = all.take(DEPTH_MAX);
        ty.is_some() && all.any(|outer| outer.made().map(|(ty, _)| ty) == ty)
    }

    /// Remembers that a span was closed; `false`: it is remembered already.
    fn remember_closed(&mut self, id: u64) -> bool {
        if self.is_closed.contains_key(&id) {
            return false;
        }
        self.closed_count += 1;
        self.is_closed.insert(id, self.closed_count);
        self.closed.push_back((id, self.closed_count));
        if self.closed.len() > CLOSED_MAX
            && let Some((oldest, number)) = self.closed.pop_front()
            && self.is_closed.get(&oldest) == Some(&number)
        {
            self.is_closed.remove(&oldest);
        }
        true
    }

    /// No thread is in this span any more.
    fn leave(&mut self, span: &OpenSpan, id: u64) {
        for ring in span.rings() {
            if let Some(entered) = self.entered.get_mut(&ring) {
                entered.retain(|inner| *inner != id);
            }
        }
    }
}
