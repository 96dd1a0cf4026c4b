//! What passes a choice, one by one: events, spans of every kind, calls of functions. What sums a
//! trace up and what makes rows of it choose by the same rules.

use ringmark_format::schema::Shape;

use crate::events::event::{Event, Lost, Output};
use crate::events::filter::Filter;
use crate::events::span::Span;
use crate::events::span_pairs::{Paired, SpanPairs};
use crate::sums::calls::{Call, Calls, Step};
use crate::sums::function_times::NoEnd;
use crate::trace_file::functions::Function;

/// A call whose end no record says.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Begun {
    /// Why.
    pub why: NoEnd,
    /// Number of open calls around it.
    pub depth: u32,
}

/// What takes the things that pass, in the order of the events that end them.
pub(crate) trait Picks<'d> {
    /// An event that is no part of a span; or a native span, unless [`Self::span`] takes those.
    fn event(&mut self, event: &Event<'d>);

    /// A native span with its own time, where [`Self::span`] does not take those.
    fn native(&mut self, event: &Event<'d>, _own_ns: Option<u64>) {
        self.event(event);
    }

    /// A span that has ended.
    fn span(&mut self, span: Span<'d>);

    /// The end of a span over several records whose beginning is not here.
    fn end(&mut self, _end: &Event<'d>) {}

    /// A call that has ended, with the event at which it was left.
    fn call(&mut self, call: &Call<'d>, end: &Event<'d>);

    /// The entry of a call whose end no record says.
    fn entry(&mut self, entry: &Event<'d>, function: &'d Function, begun: Begun);

    /// Events that are not there.
    fn lost(&mut self, _lost: &Lost<'d>) {}
}

/// Picks what passes.
pub(crate) struct Picker<'d> {
    /// Without names and conditions: what may say when a call began or ended.
    records: Filter,
    pub(crate) filter: Filter,
    has_conditions: bool,
    pub(crate) pairs: SpanPairs,
    pub(crate) calls: Calls<'d>,
    /// Native spans are given as spans, with the time of their own.
    is_own_needed: bool,
}

impl<'d> Picker<'d> {
    /// Picks from the first event on. `conditions`: `records`, with names and conditions.
    pub(crate) fn new(
        (records, conditions): (Filter, Option<Filter>),
        pairs: SpanPairs,
        tracers: Option<Vec<u64>>,
        is_own_needed: bool,
    ) -> Self {
        Self {
            has_conditions: conditions.is_some(),
            filter: conditions.unwrap_or_else(|| records.clone()),
            records,
            pairs,
            calls: Calls::new(tracers),
            is_own_needed,
        }
    }

    /// Takes the next item in the order of time.
    pub(crate) fn take(&mut self, item: &Output<'d>, to: &mut impl Picks<'d>) {
        match self.pairs.take(item) {
            Paired::Part => return self.part(item, to),
            Paired::Ended(span) => {
                if self.filter.passes_span(&span) {
                    to.span(*span);
                }
                return;
            }
            Paired::Alone => {}
        }
        let event = match item {
            Output::Event(event) => event,
            Output::Lost(lost) => {
                self.calls.lose(lost);
                if self.records.passes_lost(lost) {
                    to.lost(lost);
                }
                return;
            }
        };
        // A wait for the reader is no time of the call around it.
        self.call(event, to);
        if event.ty.function.is_none() {
            self.alone(event, to);
        }
    }

    /// The close of a span that is not open: it was made before the first record here.
    fn part(&self, item: &Output<'d>, to: &mut impl Picks<'d>) {
        if let Output::Event(event) = item
            && event.ty.shape == Some(Shape::SpanClose)
            && !self.has_conditions
            && self.records.passes(event)
        {
            to.end(event);
        }
    }

    /// An event that is no part of a span, or a native span.
    fn alone(&mut self, event: &Event<'d>, to: &mut impl Picks<'d>) {
        if self.is_own_needed {
            match self.pairs.whole(event) {
                Some(span) if self.filter.passes_span(&span) => to.span(span),
                None if self.filter.passes(event) => to.event(event),
                _ => {}
            }
            return;
        }
        let Some((_, own_ns)) = self.pairs.native(event) else {
            if self.filter.passes(event) {
                to.event(event);
            }
            return;
        };
        let passes = match self.has_conditions {
            true => Span::of_event(event).is_some_and(|span| self.filter.passes_span(&span)),
            false => self.filter.passes(event),
        };
        if passes {
            to.native(event, own_ns);
        }
    }

    /// What an event means for the calls of its thread.
    fn call(&mut self, event: &Event<'d>, to: &mut impl Picks<'d>) {
        if !self.records.passes(event) {
            return;
        }
        let (filter, has_conditions) = (&self.filter, self.has_conditions);
        self.calls
            .take_with(&mut self.pairs, event, |step| match step {
                Step::Left(call) | Step::Whole(call) => {
                    let passes = !has_conditions
                        || match call.as_span(event) {
                            Some(span) => filter.passes_span(&span),
                            None => filter.passes_cut_call(call.target(), &call.function.name),
                        };
                    if passes {
                        to.call(&call, event);
                    }
                }
                Step::Entered {
                    function,
                    depth,
                    loose: true,
                    ..
                } => {
                    let tracers = event.ty.function.map_or(0, |meaning| meaning.tracers);
                    let why = match event.session.schema.functions().want_ends(tracers) {
                        true => NoEnd::NotSeen,
                        false => NoEnd::EntriesOnly,
                    };
                    if filter.passes_cut_call(event.target(), &function.name) {
                        to.entry(event, function, Begun { why, depth });
                    }
                }
                Step::Entered { .. } => {}
            });
    }
}
