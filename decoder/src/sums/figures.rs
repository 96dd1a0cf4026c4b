//! What a trace sums up to, in one walk over its events: spans of every kind by name, calls by
//! function, events by type, and the slowest spans.

use crate::events::event::{Event, Output};
use crate::events::filter::Filter;
use crate::events::span::Span;
use crate::events::span_pairs::{Paired, SpanPairs};
use crate::events::stats::Stats;
use crate::sums::calls::{Calls, Step};
use crate::sums::function_times::{FunctionTimes, NoEnd, Profile};
use crate::sums::profiled::ProfiledFunction;
use crate::sums::slowest::Slowest;
use crate::sums::span_times::{SpanProfile, SpanTimes};
use crate::trace_file::dump::Dump;

/// What is counted. The default counts all.
#[derive(Debug, Clone, Default)]
pub struct Counted {
    /// Threads and times: which records may say when a call began or ended.
    pub records: Filter,
    /// `records`, with names and conditions of what is counted; `None`: there are none.
    pub conditions: Option<Filter>,
    /// Bits of the function tracers by session; see [`Calls::new`].
    pub tracers: Option<Vec<u64>>,
    /// Keep every duration, for exact percentiles.
    pub exact: bool,
    /// How many of the slowest spans and calls to keep.
    pub slowest: usize,
    /// Count the records of spans of `tracing` as they are.
    pub raw: bool,
}

/// The figures of a trace.
#[derive(Debug)]
pub struct Figures<'d> {
    /// Spans by name.
    pub spans: Vec<SpanTimes>,
    /// Calls by function.
    pub functions: Vec<FunctionTimes>,
    /// Counts of events that are no part of a span.
    pub events: Stats<'d>,
    /// The slowest spans and calls.
    pub slowest: Slowest<'d>,
    /// Spans without a name, because only records after their beginning are here.
    pub nameless: u64,
    /// Spans that were not followed, because too many were open at one time.
    pub left_out: u64,
}

impl Figures<'_> {
    /// Whether there are spans that no row counts.
    #[must_use]
    pub const fn has_notices(&self) -> bool {
        self.nameless > 0 || self.left_out > 0
    }

    /// Whether there is nothing to show.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let sums = self.spans.is_empty() && self.functions.is_empty();
        sums && self.events.types.is_empty() && self.slowest.is_empty()
    }
}

impl Dump {
    /// The figures of what is counted.
    #[must_use]
    pub fn figures(&self, counted: Counted) -> Figures<'_> {
        let mut walk = Walk::new(self, counted);
        self.events().for_each(|item| walk.take(&item));
        walk.finish(self)
    }
}

/// What is known while the events are walked.
struct Walk<'d> {
    /// Without names and conditions: what may say when a call began or ended.
    records: Filter,
    filter: Filter,
    has_conditions: bool,
    /// `None`: each record stands for itself.
    pairs: Option<SpanPairs>,
    calls: Calls<'d>,
    spans: SpanProfile,
    functions: Profile,
    events: Stats<'d>,
    slowest: Slowest<'d>,
}

impl<'d> Walk<'d> {
    fn new(dump: &'d Dump, counted: Counted) -> Self {
        let has_conditions = counted.conditions.is_some();
        Self {
            filter: counted
                .conditions
                .unwrap_or_else(|| counted.records.clone()),
            records: counted.records,
            has_conditions,
            pairs: (!counted.raw).then(|| SpanPairs::new(dump)),
            calls: Calls::new(counted.tracers),
            spans: SpanProfile::new(counted.exact),
            functions: Profile::new(counted.exact),
            events: Stats::default(),
            slowest: Slowest::new(counted.slowest),
        }
    }

    fn take(&mut self, item: &Output<'d>) {
        match self.pairs.as_mut().map(|pairs| pairs.take(item)) {
            Some(Paired::Part) => return,
            Some(Paired::Ended(span)) => return self.span(*span),
            Some(Paired::Alone) | None => {}
        }
        let event = match item {
            Output::Event(event) => event,
            Output::Lost(lost) => return self.calls.lose(lost),
        };
        // A wait for the reader is no time of the call around it.
        self.call(event);
        if event.ty.function.is_some() {
            return;
        }
        let span = match &mut self.pairs {
            Some(pairs) => pairs.whole(event),
            None => Span::of_event(event),
        };
        match span {
            Some(span) => self.span(span),
            None if ProfiledFunction::is_event(&event.ty.name, &event.ty.origin.target) => {}
            None if self.filter.passes(event) => self.events.add(item),
            None => {}
        }
    }

    fn span(&mut self, span: Span<'d>) {
        if self.filter.passes_span(&span) {
            self.spans.add(&span);
            self.slowest.offer(span.total_ns, || span);
        }
    }

    /// What an event means for the calls of its thread.
    fn call(&mut self, event: &Event<'d>) {
        if !self.records.passes(event) {
            return;
        }
        let (filter, functions) = (&self.filter, &mut self.functions);
        let (slowest, has_conditions) = (&mut self.slowest, self.has_conditions);
        self.calls.take(event, |step| match step {
            Step::Left(call) | Step::Whole(call) => {
                let span = || call.as_span(event);
                let passes = !has_conditions
                    || match span() {
                        Some(span) => filter.passes_span(&span),
                        None => filter.passes_cut_call(call.target(), &call.function.name),
                    };
                if !passes {
                    return;
                }
                functions.add(call.session, &call);
                if slowest.wants(call.duration_ns().unwrap_or(0))
                    && let Some(span) = span()
                {
                    slowest.offer(span.total_ns, || span);
                }
            }
            Step::Entered {
                function,
                loose: true,
                ..
            } => {
                let tracers = event.ty.function.map_or(0, |meaning| meaning.tracers);
                let why = match event.session.schema.functions().want_ends(tracers) {
                    true => NoEnd::NotSeen,
                    false => NoEnd::EntriesOnly,
                };
                if filter.passes_cut_call(event.target(), &function.name) {
                    functions.add_endless(event.session, function, why);
                }
            }
            Step::Entered { .. } => {}
        });
    }

    fn finish(mut self, dump: &'d Dump) -> Figures<'d> {
        let open = self.calls.open();
        for call in open.filter(|c| self.filter.passes_cut_call(c.target(), &c.function.name)) {
            self.functions
                .add_endless(call.session, call.function, NoEnd::NotSeen);
        }
        let mut left_out = 0;
        if let Some(pairs) = &self.pairs {
            left_out = pairs.left_out();
            let mut cut = pairs.cut(dump);
            cut.retain(|of_type| self.filter.passes_cut(of_type.ty));
            cut.iter().for_each(|of_type| self.spans.add_cut(of_type));
            let threads = dump.open_spans();
            let open = threads.iter().flat_map(|thread| &thread.spans);
            // The others are those that are entered and left: they have a record that made them.
            let native = open.filter(|span| span.ty.kind() == "span");
            native
                .filter(|span| self.filter.passes_cut(Some(span.ty)))
                .for_each(|span| self.spans.add_open(span.ty));
        }
        Figures {
            nameless: self.spans.nameless(),
            left_out,
            spans: self.spans.finish(),
            functions: self.functions.finish(),
            events: self.events,
            slowest: self.slowest,
        }
    }
}
