//! Chooses events by time, thread, name, level and values of fields, as the command line has it.

use std::ops::RangeInclusive;

use ringmark_format::glob::matches as glob;
use ringmark_format::schema::Level;

use crate::events::condition::Condition;
use crate::events::event::{Event, Output};
use crate::events::filter_error::FilterError;
use crate::events::span::Span;
use crate::trace_file::schema::EventType;
use crate::words::duration::nanoseconds;
use crate::words::timestamp;

/// A choice of events. An event has to pass every part; several names, and several threads, are
/// alternatives. A new filter lets everything pass.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    pub(super) from: Option<Moment>,
    pub(super) to: Option<Moment>,
    /// A store is read from here on, in ns before its end.
    end_ns: Option<u64>,
    /// The same in ns after its start.
    since_ns: Option<u64>,
    pub(super) tids: Vec<u32>,
    names: Vec<String>,
    level: Option<Level>,
    conditions: Vec<Condition>,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Moment {
    /// ns since 1970.
    Wall(u64),
    /// ns since the session's start.
    SinceStart(u64),
}

const TIME: &str = "a time like 2026-11-21T01:42:03.5Z, or a time since the session's start \
                    like 1.5s, 200ms, 3us, 7ns";

impl Moment {
    fn parse(what: &'static str, text: &str) -> Result<Self, FilterError> {
        let wrong = || FilterError {
            what,
            text: text.to_owned(),
            at: None,
            expected: TIME,
        };
        if let Some(ns) = timestamp::parse(text) {
            return Ok(Self::Wall(ns));
        }
        let text = text.strip_prefix('+').unwrap_or(text);
        nanoseconds(text).map(Self::SinceStart).ok_or_else(wrong)
    }

    /// Whether a time lies before this moment: `t_ns` since the session's start, which is the same
    /// time as `wall_ns` since 1970.
    pub(super) const fn is_after(self, t_ns: u64, wall_ns: u64) -> bool {
        match self {
            Self::Wall(ns) => wall_ns < ns,
            Self::SinceStart(ns) => t_ns < ns,
        }
    }
}

impl Filter {
    /// A filter that lets everything pass.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether the filter has no part, so that everything passes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let times = self.from.is_none() && self.to.is_none();
        let names = self.tids.is_empty() && self.names.is_empty();
        times && names && self.level.is_none() && self.conditions.is_empty()
    }

    /// The filter without names and conditions: times, threads and level alone.
    #[must_use]
    pub fn without_choice(&self) -> Self {
        Self {
            names: Vec::new(),
            conditions: Vec::new(),
            ..self.clone()
        }
    }

    /// The filter without conditions on values.
    #[must_use]
    pub fn without_conditions(&self) -> Self {
        Self {
            conditions: Vec::new(),
            ..self.clone()
        }
    }

    /// The filter without times.
    #[must_use]
    pub fn without_times(&self) -> Self {
        Self {
            from: None,
            to: None,
            ..self.clone()
        }
    }

    /// Whether everything passes from some time on, or from the start.
    #[must_use]
    pub fn has_all_of_end(&self) -> bool {
        let from_start = Self {
            from: None,
            ..self.clone()
        };
        from_start.is_empty()
    }

    /// Whether the filter bounds the time.
    #[must_use]
    pub const fn has_time(&self) -> bool {
        self.from.is_some() || self.to.is_some()
    }

    /// Lets only events from this time on pass: a UTC time, or a time since the session's start
    /// (`1.5s`).
    ///
    /// # Errors
    /// Text that is no time.
    pub fn from(&mut self, text: &str) -> Result<&mut Self, FilterError> {
        self.from = Some(Moment::parse("time", text)?);
        Ok(self)
    }

    /// Lets only events from this time on pass, in ns since 1970.
    pub const fn from_wall_ns(&mut self, ns: u64) -> &mut Self {
        self.from = Some(Moment::Wall(ns));
        self
    }

    /// Lets only events from this time since their session's start on pass, in ns.
    pub const fn from_start_ns(&mut self, ns: u64) -> &mut Self {
        self.from = Some(Moment::SinceStart(ns));
        self
    }

    /// Lets only events before this time since their session's start pass, in ns.
    pub const fn to_start_ns(&mut self, ns: u64) -> &mut Self {
        self.to = Some(Moment::SinceStart(ns));
        self
    }

    /// Reads only those segments of a store that may reach into the last `ns` before its end. Every event of them
    /// passes: where the end is known, [`Self::from_wall_ns`] bounds them.
    pub const fn reads_end(&mut self, ns: u64) -> &mut Self {
        self.end_ns = Some(ns);
        self
    }

    /// This filter for segments of a store whose last event is at `last_ns` or later, since 1970.
    pub(crate) fn of_store(&self, last_ns: Option<u64>) -> Self {
        let mut filter = self.clone();
        if let (Some(end_ns), Some(last_ns), None, None) =
            (self.end_ns, last_ns, self.from, self.to)
        {
            filter.from_wall_ns(last_ns.saturating_sub(end_ns));
        }
        filter
    }

    /// Reads only those segments of a store that may reach beyond `ns` after the start of its first session, from which
    /// [`Self::to_start_ns`] then counts, too. Every event of them passes: where that start is known,
    /// [`Self::from_wall_ns`] bounds them.
    pub const fn reads_since(&mut self, ns: u64) -> &mut Self {
        self.since_ns = Some(ns);
        self
    }

    /// This filter for segments of a store whose first session began between these, in ns since 1970; if it may be one
    /// that is not chosen, not before the first of these.
    pub(crate) fn since(&self, start_ns: Option<RangeInclusive<u64>>, is_chosen: bool) -> Self {
        let mut filter = self.clone();
        let (Some(since_ns), Some(start_ns), None) = (self.since_ns, start_ns, self.from) else {
            return filter;
        };
        filter.from_wall_ns(start_ns.start().saturating_add(since_ns));
        if let Some(Moment::SinceStart(ns)) = self.to.filter(|_| is_chosen) {
            filter.to_wall_ns(start_ns.end().saturating_add(ns));
        }
        filter
    }

    /// Whether a store is read from so long after its start on.
    pub(crate) const fn is_since_start(&self) -> bool {
        self.since_ns.is_some()
    }

    /// Whether only the end of a store is read.
    pub(crate) const fn is_of_end(&self) -> bool {
        self.end_ns.is_some()
    }

    /// Lets only events before this time pass, in ns since 1970.
    pub const fn to_wall_ns(&mut self, ns: u64) -> &mut Self {
        self.to = Some(Moment::Wall(ns));
        self
    }

    /// Whether a span or call that one record describes begins in the filter's time. One that ends in
    /// it and began before passes, and not all that lay inside it does.
    #[must_use]
    pub fn has_start(&self, event: &Event<'_>) -> bool {
        let start_ns = event.start_ns();
        let is_late = |from: Moment| from.is_after(start_ns, event.session.clock.wall_ns(start_ns));
        !self.from.is_some_and(is_late)
    }

    /// Lets only events before this time pass; written as for [`Self::from`].
    ///
    /// # Errors
    /// Text that is no time.
    pub fn to(&mut self, text: &str) -> Result<&mut Self, FilterError> {
        self.to = Some(Moment::parse("time", text)?);
        Ok(self)
    }

    /// Lets events of this thread pass, next to the threads that were given before.
    ///
    /// # Errors
    /// Text that is no thread id.
    pub fn tid(&mut self, text: &str) -> Result<&mut Self, FilterError> {
        let tid = text.parse().map_err(|_| FilterError {
            what: "thread",
            text: text.to_owned(),
            at: None,
            expected: "a thread id, a number",
        })?;
        self.tids.push(tid);
        Ok(self)
    }

    /// Lets names pass that match the pattern, next to the patterns that were given before: `*` is
    /// any characters, `?` one. A pattern with `::` is matched against `target::name`, too: names of
    /// functions have `::` in them.
    pub fn name(&mut self, pattern: &str) -> &mut Self {
        self.names.push(pattern.to_owned());
        self
    }

    /// Lets this level and more severe ones pass, and events without a level.
    ///
    /// # Errors
    /// Text that is no level.
    pub fn level(&mut self, text: &str) -> Result<&mut Self, FilterError> {
        let lower = text.to_ascii_lowercase();
        let level = Level::ALL.iter().find(|l| l.name() == lower);
        self.level = Some(*level.ok_or_else(|| FilterError {
            what: "level",
            text: text.to_owned(),
            at: None,
            expected: "error, warn, info, debug or trace",
        })?);
        Ok(self)
    }

    /// Lets only events pass that have this field with such a value: `size>=1024`, `path=/tmp/*`,
    /// `ok!=true`. A number may have a unit of time, which makes it nanoseconds: `wait<20ms`.
    /// `took` is the duration of a span or a call, unless a field has that name.
    ///
    /// # Errors
    /// Text without a field name, a comparison or, for an order, a number.
    pub fn condition(&mut self, text: &str) -> Result<&mut Self, FilterError> {
        self.conditions.push(Condition::parse(text)?);
        Ok(self)
    }

    /// Whether this event passes every part.
    #[must_use]
    pub fn passes(&self, event: &Event<'_>) -> bool {
        self.is_empty() || self.passes_after(event, event.duration_ns())
    }

    /// As [`Self::passes`], for an event that ends something that took this many ns: the end of a
    /// call that was entered earlier.
    #[must_use]
    pub fn passes_after(&self, event: &Event<'_>, took_ns: Option<u64>) -> bool {
        self.time_passes(event.t_ns, event.wall_ns())
            && (self.tids.is_empty() || self.tids.contains(&event.tid()))
            && self.level_passes(event.level())
            && self.name_passes(event.target(), event.name())
            && self.conditions.iter().all(|c| c.passes(event, took_ns))
    }

    /// Whether a condition asks for the duration of a span or a call, or what its thread did in it.
    #[must_use]
    pub fn asks_duration(&self) -> bool {
        self.conditions.iter().any(Condition::asks_duration)
    }

    /// Whether this span passes every part. Time and thread are those of its end; a condition may
    /// name `took`, `busy`, `idle`, `polls`, `running`, `ready`, `waiting`, `waits` and `preempted`, unless a field has
    /// that name. What is not known passes none.
    #[must_use]
    pub fn passes_span(&self, span: &Span<'_>) -> bool {
        let end = &span.end;
        if self.is_empty() {
            return true;
        }
        self.time_passes(end.t_ns, end.wall_ns())
            && (self.tids.is_empty() || self.tids.contains(&end.tid()))
            && self.level_passes(span.ty.level)
            && self.name_passes(span.target, span.name)
            && self.conditions.iter().all(|c| c.passes_span(span))
    }

    /// Whether spans of this type can pass that the trace does not hold whole: conditions and a
    /// time ask for what such a span does not have.
    #[must_use]
    pub fn passes_cut(&self, ty: Option<&EventType>) -> bool {
        let asks = self.has_time() || !self.tids.is_empty() || !self.conditions.is_empty();
        !asks
            && match ty {
                Some(ty) => {
                    self.level_passes(ty.level) && self.name_passes(&ty.origin.target, &ty.name)
                }
                None => self.names.is_empty() && self.level.is_none(),
            }
    }

    /// Whether spans of this type pass that are open at the end of the trace. The time of one reaches to the end.
    #[must_use]
    pub fn passes_open(&self, ty: &EventType) -> bool {
        let asks = self.to.is_some() || !self.tids.is_empty() || !self.conditions.is_empty();
        !asks && self.level_passes(ty.level) && self.name_passes(&ty.origin.target, &ty.name)
    }

    /// Whether calls of this function can pass whose beginning or end is not known: conditions ask
    /// for what such a call does not have. Their thread and time passed with their records.
    #[must_use]
    pub fn passes_cut_call(&self, target: &[u8], name: &[u8]) -> bool {
        self.conditions.is_empty() && self.name_passes(target, name)
    }

    /// Whether this item passes, event or loss.
    #[must_use]
    pub fn passes_item(&self, item: &Output<'_>) -> bool {
        match item {
            Output::Event(event) => self.passes(event),
            Output::Lost(lost) => self.passes_lost(lost),
        }
    }

    /// Whether an event in this range of time can pass. Each pair is the first and the last time,
    /// in ns, since the session's start and since 1970.
    pub(crate) fn times_may_pass(&self, t_ns: (u64, u64), wall_ns: (u64, u64)) -> bool {
        self.from.is_none_or(|m| !m.is_after(t_ns.1, wall_ns.1))
            && self.to.is_none_or(|m| m.is_after(t_ns.0, wall_ns.0))
    }

    fn time_passes(&self, t_ns: u64, wall_ns: u64) -> bool {
        self.from.is_none_or(|m| !m.is_after(t_ns, wall_ns))
            && self.to.is_none_or(|m| m.is_after(t_ns, wall_ns))
    }

    fn level_passes(&self, level: Option<Level>) -> bool {
        self.level
            .is_none_or(|wanted| level.is_none_or(|level| level <= wanted))
    }

    /// Whether names are asked for.
    #[must_use]
    pub fn has_names(&self) -> bool {
        !self.names.is_empty()
    }

    /// Whether this name passes.
    pub(crate) fn name_passes(&self, target: &[u8], name: &[u8]) -> bool {
        let matches = |pattern: &String| {
            if glob(pattern.as_bytes(), name) {
                return true;
            }
            pattern.contains("::") && glob(pattern.as_bytes(), &[target, b"::", name].concat())
        };
        self.names.is_empty() || self.names.iter().any(matches)
    }
}
