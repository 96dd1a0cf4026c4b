//! Sums number and time of the spans of each name, whichever library made them.

use std::collections::HashMap;

use crate::events::span::Span;
use crate::events::span_pairs::CutSpans;
use crate::sums::durations::Durations;

/// The spans of one name and target, over all sessions and threads.
#[derive(Debug, Clone)]
pub struct SpanTimes {
    /// Their name.
    pub name: Vec<u8>,
    /// Their target, or empty.
    pub target: Vec<u8>,
    /// From beginning to end, of each span that has both.
    pub total: Durations,
    /// Time in them without the spans inside them, in ns: of those in `total` but `unknown_self`.
    pub self_ns: u64,
    /// Spans in `total` while which records were lost, so that their own time is not known.
    pub unknown_self: u64,
    /// Spans whose beginning is not in the trace. They are not in `total`.
    pub no_start: u64,
    /// Spans whose end is not in the trace. They are not in `total`.
    pub no_end: u64,
}

/// Collects the times of all spans, span by span.
#[derive(Debug, Default)]
pub struct SpanProfile {
    spans: Vec<SpanTimes>,
    /// Places in `spans`, by target and name.
    places: HashMap<(Vec<u8>, Vec<u8>), usize>,
    /// Spans without a known type whose beginning is not in the trace.
    nameless: u64,
    keeps_all: bool,
}

impl SpanProfile {
    /// Without spans. `is_exact`: percentiles are exact, at 8 bytes for each span.
    #[must_use]
    pub fn new(is_exact: bool) -> Self {
        Self {
            keeps_all: is_exact,
            ..Self::default()
        }
    }

    /// Adds a span that has ended.
    pub fn add(&mut self, span: &Span<'_>) {
        let times = self.of(&span.ty.target, &span.ty.name);
        times.total.add(span.total_ns);
        match span.self_ns {
            Some(ns) => times.self_ns = times.self_ns.saturating_add(ns),
            None => times.unknown_self += 1,
        }
    }

    /// Adds spans that the trace does not hold from beginning to end.
    pub fn add_cut(&mut self, cut: &CutSpans<'_>) {
        let Some(ty) = cut.ty else {
            self.nameless += cut.no_start;
            return;
        };
        let times = self.of(&ty.target, &ty.name);
        times.no_start += cut.no_start;
        times.no_end += cut.no_end;
    }

    /// Spans of which only entries, exits or the end are in the trace, so that they have no name.
    #[must_use]
    pub const fn nameless(&self) -> u64 {
        self.nameless
    }

    fn of(&mut self, target: &[u8], name: &[u8]) -> &mut SpanTimes {
        let key = (target.to_vec(), name.to_vec());
        let keeps_all = self.keeps_all;
        let place = *self.places.entry(key).or_insert_with_key(|(target, name)| {
            self.spans.push(SpanTimes {
                name: name.clone(),
                target: target.clone(),
                total: match keeps_all {
                    true => Durations::exact(),
                    false => Durations::new(),
                },
                self_ns: 0,
                unknown_self: 0,
                no_start: 0,
                no_end: 0,
            });
            self.spans.len() - 1
        });
        &mut self.spans[place]
    }

    /// The spans by name, those with the most time first.
    #[must_use]
    pub fn finish(mut self) -> Vec<SpanTimes> {
        let key = |times: &SpanTimes| (times.total.sum_ns(), times.total.count());
        self.spans
            .sort_by(|a, b| (key(b), &a.name).cmp(&(key(a), &b.name)));
        self.spans
    }
}
