//! What a trace sums up to, in one walk over its events: spans of every kind by name, calls by
//! function, events by type, and the slowest spans.

use std::collections::BTreeMap;

use crate::events::event::{Event, Output};
use crate::events::filter::Filter;
use crate::events::span::Span;
use crate::events::span_pairs::SpanPairs;
use crate::events::stats::Stats;
use crate::events::stay::Stay;
use crate::sums::calls::Call;
use crate::sums::function_times::{FunctionTimes, NoEnd, Profile};
use crate::sums::picker::{Begun, Picker, Picks};
use crate::sums::profiled::ProfiledFunction;
use crate::sums::ran_functions::{PickedTimes, RanFunctions};
use crate::sums::slowest::Slowest;
use crate::sums::span_times::{SpanProfile, SpanTimes};
use crate::trace_file::dump::Dump;
use crate::trace_file::functions::Function;

/// What is counted. The default counts all.
#[derive(Debug, Clone, Default)]
pub struct Counted {
    /// Threads and times: which records may say when a call began or ended.
    pub records: Filter,
    /// `records`, with names and conditions of what is counted; `None`: there are none.
    pub conditions: Option<Filter>,
    /// Bits of the function tracers by session; see `Calls::new`.
    pub tracers: Option<Vec<u64>>,
    /// How many of the slowest spans and calls to keep.
    pub slowest: usize,
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
    /// Switches of threads that had no room when they were recorded; `None`: none were recorded.
    pub switches_lost: Option<u64>,
    /// Functions that ran, by samples; with conditions those in the spans and calls that are counted. `None`: no samples were
    /// taken.
    pub ran: Option<RanFunctions>,
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
    /// Switches of threads that had no room when they were recorded, of all processes; `None`: none were recorded.
    fn switches_lost(&self) -> Option<u64> {
        let with = self.sessions.iter().filter(|one| one.has_switches());
        let by_process: BTreeMap<_, _> =
            with.map(|one| (one.process, one.switches_lost())).collect();
        let lost = by_process
            .values()
            .fold(0, |sum: u64, lost| sum.saturating_add(*lost));
        (!by_process.is_empty()).then_some(lost)
    }

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
    picker: Picker<'d>,
    sums: Sums<'d>,
}

/// What was picked so far, summed up.
struct Sums<'d> {
    spans: SpanProfile,
    functions: Profile,
    events: Stats<'d>,
    slowest: Slowest<'d>,
    /// When threads were in what was picked; `None`: all times count.
    picked: Option<PickedTimes<'d>>,
}

impl<'d> Picks<'d> for Sums<'d> {
    fn event(&mut self, event: &Event<'d>) {
        if !ProfiledFunction::is_event(&event.ty.name, &event.ty.origin.target) {
            self.events.add_event(event);
        }
    }

    fn span(&mut self, span: Span<'d>) {
        self.spans.add(&span);
        if let Some(picked) = &mut self.picked {
            let session = span.end.session;
            span.stays().for_each(|stay| picked.add(session, &stay));
        }
        self.offer(span);
    }

    fn call(&mut self, call: &Call<'d>, end: &Event<'d>) {
        let did = call.thread_times(end);
        self.functions.add(call.session, call, did);
        if let Some(picked) = &mut self.picked
            && let Some(took_ns) = call.took_ns().filter(|_| !call.is_elsewhere())
        {
            picked.add(call.session, &Stay::before(end, took_ns));
        }
        if self.slowest.wants(call.took_ns().unwrap_or(0))
            && let Some(span) = call.as_span(end)
        {
            self.offer(span);
        }
    }

    fn entry(&mut self, entry: &Event<'d>, function: &'d Function, begun: Begun) {
        self.functions
            .add_endless(entry.session, function, begun.why);
    }
}

impl<'d> Sums<'d> {
    fn offer(&mut self, span: Span<'d>) {
        if let Some(took_ns) = span.took_ns() {
            self.slowest.offer(took_ns, || span);
        }
    }
}

impl<'d> Walk<'d> {
    fn new(dump: &'d Dump, counted: Counted) -> Self {
        let pairs = SpanPairs::of_part(dump, &counted.records);
        let has_conditions = counted.conditions.is_some();
        let filters = (counted.records, counted.conditions);
        Self {
            picker: Picker::new(filters, pairs, counted.tracers, true),
            sums: Sums {
                spans: SpanProfile::default(),
                functions: Profile::default(),
                events: Stats::default(),
                slowest: Slowest::new(counted.slowest),
                picked: has_conditions.then(PickedTimes::default),
            },
        }
    }

    fn take(&mut self, item: &Output<'d>) {
        self.picker.take(item, &mut self.sums);
    }

    fn finish(self, dump: &'d Dump) -> Figures<'d> {
        let (picker, mut sums) = (self.picker, self.sums);
        let filter = &picker.filter;
        let open = picker.calls.open();
        for call in open.filter(|c| filter.passes_cut_call(c.target(), &c.function.name)) {
            sums.functions
                .add_endless(call.session, call.function, NoEnd::NotSeen);
        }
        let mut cut = picker.pairs.cut(dump);
        cut.retain(|of_type| filter.passes_cut(of_type.ty));
        cut.iter().for_each(|of_type| sums.spans.add_cut(of_type));
        let threads = dump.open_spans();
        let open = threads.iter().flat_map(|thread| &thread.spans);
        // The others are those that are entered and left: they have a record that made them.
        let native = open.filter(|span| span.ty.kind() == "span");
        native
            .filter(|span| filter.passes_cut(Some(span.ty)))
            .for_each(|span| sums.spans.add_open(span.ty));
        let ran = match sums.picked {
            Some(picked) => picked.ran(dump),
            None => RanFunctions::all(dump, filter),
        };
        Figures {
            ran,
            nameless: sums.spans.nameless(),
            left_out: picker.pairs.left_out(),
            switches_lost: dump.switches_lost(),
            spans: sums.spans.finish(),
            functions: sums.functions.finish(),
            events: sums.events,
            slowest: sums.slowest,
        }
    }
}
