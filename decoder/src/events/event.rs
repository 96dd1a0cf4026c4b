//! What the merge gives: events, and the losses between them.

use ringmark_format::schema::{Level, Shape};
use ringmark_format::{RingId, SlotIndex};

use crate::blocks::page::Page;
use crate::events::entered_spans::id_in;
use crate::events::payload::Payload;
use crate::trace_file::field::Field;
use crate::trace_file::finished_spans::{UNKNOWN, duration_ticks};
use crate::trace_file::function_words::FunctionWords;
use crate::trace_file::functions::Function;
use crate::trace_file::loss::Loss;
use crate::trace_file::schema::EventType;
use crate::trace_file::session::Session;
use crate::trace_file::thread_states::ThreadDoes;
use crate::trace_file::thread_times::ThreadTimes;
use crate::trace_file::time::NearClock;
use crate::trace_file::value::Value;

/// One event. Names are borrowed from the dump; it holds its payload.
///
/// Times come in three forms: `tick` of the session's clock, `t_ns` since the session's start, and
/// [`Self::wall_ns`] since 1970.
#[derive(Debug, Clone)]
pub struct Event<'a> {
    /// Its session.
    pub session: &'a Session,
    /// The page that holds it.
    pub page: &'a Page,
    /// Its type, which says how the payload is read.
    pub ty: &'a EventType,
    /// The bytes of its fields; a multiple of 8.
    pub payload: Payload,
    /// Its number in its slot, from 0: the reservations before it.
    pub seq: u64,
    /// Its tick on the session's clock; for a finished span the tick of the end.
    pub tick: u64,
    /// Time since the session's start, in ns; 0 for a tick before the start.
    pub t_ns: u64,
    /// Id of the span that it makes, ends or lies in.
    pub span: Option<u64>,
    /// Id of the span around the one that it makes or ends.
    pub parent: Option<u64>,
    /// The type that made the span, where the event only names the span by its id.
    pub span_type: Option<&'a EventType>,
    /// Id of the innermost finished span around it; 0: there is none; [`UNKNOWN`]: it is not known.
    pub(crate) around: u64,
}

impl<'a> Event<'a> {
    /// The same event, to be held for long: its payload is without the page around it.
    #[must_use]
    pub fn alone(&self) -> Self {
        Self {
            payload: self.payload.alone(),
            ..self.clone()
        }
    }

    /// The event that is made of these; `number` is its number in its page. What is around it is not
    /// known.
    #[must_use]
    pub fn remade(
        (session, page, number): (&'a Session, &'a Page, u32),
        (ty, tick, payload): (&'a EventType, u64, Payload),
        span: u64,
    ) -> Self {
        Self {
            session,
            page,
            ty,
            payload,
            seq: page.header.first_event.wrapping_add(number.into()),
            tick,
            t_ns: session.clock.t_ns(tick),
            span: Some(span),
            parent: None,
            span_type: None,
            around: 0,
        }
    }

    /// Whether it is not known what is around it, because the clock did not move between its beginning, its
    /// end and the beginning of another span.
    #[must_use]
    pub const fn is_unplaced(&self) -> bool {
        self.around == UNKNOWN && self.parent.is_none()
    }

    /// Id of the span that it makes, ends or lies in, if the record says it; [`NO_SPAN`]: it lies in none.
    ///
    /// [`NO_SPAN`]: ringmark_format::schema::NO_SPAN
    #[must_use]
    pub fn named_span(&self) -> Option<u64> {
        id_in(self.ty, &self.payload, self.ty.span_id)
    }

    /// Id of the span around it, if the program says it.
    #[must_use]
    pub fn named_parent(&self) -> Option<u64> {
        id_in(self.ty, &self.payload, self.ty.parent_id)
    }

    /// The ring id: which claim of the slot wrote it.
    #[must_use]
    pub const fn ring(&self) -> RingId {
        self.page.ring
    }

    /// The slot of the ring directory that its ring has; threads may share one in turn.
    #[must_use]
    pub const fn slot(&self) -> SlotIndex {
        SlotIndex(self.page.header.slot)
    }

    /// Wall time, in ns since 1970; UTC.
    #[inline]
    #[must_use]
    pub fn wall_ns(&self) -> u64 {
        self.session.clock.wall_of(self.tick, self.t_ns)
    }

    /// Process id, in the process's own pid namespace; 0: not known.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.session.pid()
    }

    /// Id of the thread that wrote it, in the process's own pid namespace.
    #[must_use]
    pub const fn tid(&self) -> u32 {
        self.page.header.tid
    }

    /// Number of its thread in the dump. The rings that one thread wrote, in all sessions of its
    /// process, share it; a later thread of the same id has another one.
    #[must_use]
    pub const fn thread(&self) -> u32 {
        self.page.thread
    }

    /// Name of the thread as it was known last, at most 16 bytes, or empty.
    #[must_use]
    pub fn comm(&self) -> &'a [u8] {
        self.page.thread_name()
    }

    /// The function that was entered or left; `None`: it is no function record.
    #[must_use]
    pub fn function(&self) -> Option<&'a Function> {
        let meaning = self.ty.function?;
        self.session.schema.functions().of_use(&meaning)
    }

    /// Its name: that of its function, of the type that made its span, or of its own type.
    #[must_use]
    pub fn name(&self) -> &'a [u8] {
        if let Some(function) = self.function() {
            return &function.name;
        }
        &self.span_type.unwrap_or(self.ty).name
    }

    /// Its message, if that is what it is called by; see [`EventType::message`].
    #[must_use]
    pub fn message(&self) -> Option<&[u8]> {
        let field = self.ty.fields.get(self.ty.message()?)?;
        match field.value(&self.payload) {
            Value::Str(message) => Some(message),
            _ => None,
        }
    }

    /// Its target: the module path, or the file name of a function's module, or empty.
    #[must_use]
    pub fn target(&self) -> &'a [u8] {
        if let Some(function) = self.function() {
            let module = self.session.schema.functions().module(function.module);
            return module.map_or(&[], |module| module.file_name());
        }
        &self.span_type.unwrap_or(self.ty).origin.target
    }

    /// Category of its type, or empty.
    #[must_use]
    pub fn category(&self) -> &'a [u8] {
        &self.ty.origin.category
    }

    /// Severity of its type, or of the type that made its span; `None`: not known.
    #[must_use]
    pub fn level(&self) -> Option<Level> {
        self.span_type.unwrap_or(self.ty).level
    }

    /// What kind of thing it says; `None`: a function record, or not known.
    #[must_use]
    pub const fn shape(&self) -> Option<Shape> {
        self.ty.shape
    }

    /// Duration of a finished span or of a call that was recorded as a whole, in ticks. `None` for any other event.
    #[inline]
    fn duration_ticks(&self) -> Option<u64> {
        match self.ty.function {
            Some(meaning) => FunctionWords::read(meaning, &self.payload).duration_ticks,
            None => duration_ticks(self.ty, &self.payload),
        }
    }

    /// The same in ns; `None`, too, if its session has no times.
    #[must_use]
    pub fn duration_ns(&self) -> Option<u64> {
        self.took_ns().filter(|_| self.session.has_times())
    }

    /// The same, for what is put in order by time: what it is in a session without times is not to be shown.
    pub(crate) fn took_ns(&self) -> Option<u64> {
        let ticks = self.duration_ticks()?;
        let start = self.session.clock.t_ns(self.tick.saturating_sub(ticks));
        Some(self.t_ns.saturating_sub(start))
    }

    /// What its thread did in a finished span or a call that was recorded as a whole; `None`: it is another event, or that
    /// is not known, as where no switches were recorded.
    #[must_use]
    pub fn did(&self) -> Option<ThreadTimes> {
        self.session.has_switches().then_some(())?;
        self.thread_times(self.duration_ns()?)
    }

    /// What its thread did in the last so many ns, which began with another of its records; `None`: it is not
    /// known, as where no switches were recorded, or the beginning is that of a call on a stack of its own, which
    /// any thread may have begun.
    pub(crate) fn thread_times(&self, took_ns: u64) -> Option<ThreadTimes> {
        let may_move = self.ty.function.is_some_and(|meaning| meaning.has_slot);
        if may_move || !self.session.has_switches() {
            return None;
        }
        let from_ns = self.t_ns.checked_sub(took_ns)?;
        self.session.thread_times(self.tid(), from_ns, self.t_ns)
    }

    /// Gives `each` when its thread had no processor since another one of its records, by time: what it did, and how many ns
    /// of that. `from_ns`: the time of that record.
    pub(crate) fn off_since(&self, from_ns: u64, each: impl FnMut(ThreadDoes, u64)) {
        self.session
            .off_between(self.tid(), (from_ns, self.t_ns), each);
    }

    /// Tick at which a finished span or whole call began; the tick of the event itself for any
    /// other.
    #[inline]
    #[must_use]
    pub fn start_tick(&self) -> u64 {
        let ticks = self.duration_ticks();
        self.tick.saturating_sub(ticks.unwrap_or(0))
    }

    /// [`Self::start_tick`], [`Self::start_ns`] and [`Self::duration_ns`]. `near`: the same one for event after event.
    #[inline]
    #[must_use]
    pub fn start(&self, near: &mut NearStart) -> Start {
        let ticks = self.duration_ticks();
        let tick = self.tick.saturating_sub(ticks.unwrap_or(0));
        let t_ns = match tick == self.tick {
            true => self.t_ns,
            false => self.t_ns.min(near.t_ns(self.session, tick)),
        };
        let dur_ns = ticks.map(|_| self.t_ns - t_ns);
        let dur_ns = dur_ns.filter(|_| self.session.has_times());
        Start { tick, t_ns, dur_ns }
    }

    /// Time at which a finished span or whole call began, in ns since the session's start; the time
    /// of the event itself for any other.
    #[must_use]
    pub fn start_ns(&self) -> u64 {
        self.t_ns.saturating_sub(self.took_ns().unwrap_or(0))
    }

    /// Its fields with their values, in order. Fields that carry structure are left out: duration,
    /// span id and parent id. A type without a description has no fields.
    pub fn args(&self) -> impl Iterator<Item = (&'a Field, Value<'_>)> + use<'_, 'a> {
        let (ty, payload) = (self.ty, &self.payload);
        let shown = ty.fields.iter().enumerate().filter(|(i, _)| ty.shows(*i));
        shown.map(move |(_, field)| (field, field.value(payload)))
    }
}

/// When a finished span or whole call began; any other event begins where it is.
#[derive(Debug, Clone, Copy)]
pub struct Start {
    /// The tick.
    pub tick: u64,
    /// Time since the session's start, in ns.
    pub t_ns: u64,
    /// How long the finished span or whole call took, in ns; `None`: it is any other event, or its session
    /// has no times.
    pub dur_ns: Option<u64>,
}

/// What the time of a beginning is found with, if those before it were near: a part of a session's
/// clock.
#[derive(Debug, Default)]
pub struct NearStart {
    /// Address of the session.
    session: usize,
    clock: NearClock,
}

impl NearStart {
    #[inline]
    fn t_ns(&mut self, session: &Session, tick: u64) -> u64 {
        let address = std::ptr::from_ref(session) as usize;
        if self.session != address {
            *self = Self {
                session: address,
                clock: NearClock::default(),
            };
        }
        self.clock.t_ns(&session.clock, tick)
    }
}

/// Events that are not there, at their place among the events.
#[derive(Debug, Clone, Copy)]
pub struct Lost<'a> {
    /// The session that they are missing from.
    pub session: &'a Session,
    /// The page after the loss, or the last one before it. `None`: no page of the ring is here.
    pub page: Option<&'a Page>,
    /// The ring; `None`: the loss belongs to the session as a whole.
    pub ring: Option<RingId>,
    /// Time in ns since the session's start that the loss is not later than; for a loss at the end
    /// the last known time.
    pub t_ns: u64,
    /// How many events, and why.
    pub loss: Loss,
}

impl Lost<'_> {
    /// Number of the thread that they are missing from, as [`Event::thread`] counts; `None`: not
    /// known.
    #[must_use]
    pub fn thread(&self) -> Option<u32> {
        self.page.map(|page| page.thread)
    }
}

/// One item of the output, in the order of time.
#[derive(Debug, Clone)]
pub enum Output<'a> {
    /// An event.
    Event(Event<'a>),
    /// A loss.
    Lost(Lost<'a>),
}
