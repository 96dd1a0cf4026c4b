//! Sums number and time of the spans of each name, whichever library made them.

use std::collections::HashMap;

use crate::events::nesting::{Ended, Waiting};
use crate::events::span::Span;
use crate::events::span_pairs::CutSpans;
use crate::sums::call_figures::CallTimes;
use crate::sums::durations::Durations;
use crate::trace_file::schema::EventType;
use crate::trace_file::thread_times::ThreadTimes;

/// Most names, with their targets, that are summed up one by one.
const NAMES_MAX: usize = 1 << 16;
/// Stands for all other names.
const OTHERS: &[u8] = b"(other names)";

/// The spans of one name and target, over all sessions and threads.
#[derive(Debug, Clone, Default)]
pub struct SpanTimes {
    /// Their name.
    pub name: Vec<u8>,
    /// Their target, or empty.
    pub target: Vec<u8>,
    /// From beginning to end, of each span that has both.
    pub durations: Durations,
    /// Time in them, in ns: of those in `durations`. One inside a span of the same name is not counted again.
    pub total_ns: u64,
    /// Time in them without the spans and calls inside them, in ns: of those in `durations` but
    /// `unknown_self`.
    pub self_ns: u64,
    /// Spans in `durations` while which records were lost, so that their own time is not known.
    pub unknown_self: u64,
    /// What their threads did in `total_ns`, as far as it is known; of spans that are entered, while threads were in
    /// them.
    pub thread_times: ThreadTimes,
    /// Spans in `durations` of which it is not known what their threads did.
    pub unknown_times: u64,
    /// Bytes of the payloads of their records.
    pub payload_bytes: u64,
    /// Spans in sessions without times. They are not in `durations`.
    pub untimed: u64,
    /// Spans whose beginning is not in the trace. They are not in `durations`.
    pub no_start: u64,
    /// Spans whose end is not in the trace. They are not in `durations`.
    pub no_end: u64,
}

impl SpanTimes {
    /// All of them, those with a beginning and no end, or the other way round, too.
    #[must_use]
    pub const fn spans(&self) -> u64 {
        self.durations.count() + self.untimed + self.no_start + self.no_end
    }

    /// How long those took that have beginning and end; `None`: there are none.
    #[must_use]
    pub fn times(&self) -> Option<CallTimes> {
        CallTimes::of(&self.durations, self.total_ns, self.self_ns)
    }

    /// What their threads did; `None`: of none it is known.
    #[must_use]
    pub fn did(&self) -> Option<ThreadTimes> {
        (self.unknown_times < self.durations.count()).then_some(self.thread_times)
    }

    /// Time in them without the spans and calls inside them, in ns; `None`: of none it is known.
    #[must_use]
    pub fn own_ns(&self) -> Option<u64> {
        (self.unknown_self < self.durations.count()).then_some(self.self_ns)
    }
}

/// Collects the times of all spans, span by span, of up to 65,536 names; the others are summed up
/// together.
#[derive(Debug, Default)]
pub struct SpanProfile {
    spans: Vec<SpanTimes>,
    /// Places in `spans`, by target and name.
    places: HashMap<Vec<u8>, HashMap<Vec<u8>, usize>>,
    /// By thread and place in `spans`: native spans that have ended, and are in none of their name that has.
    outermost: HashMap<(u32, usize), Waiting>,
    /// The same of what their threads did.
    outermost_times: HashMap<(u32, usize), Waiting<ThreadTimes>>,
    /// Spans without a known type whose beginning is not in the trace.
    nameless: u64,
}

impl SpanProfile {
    /// Adds a span that has ended.
    pub fn add(&mut self, span: &Span<'_>) {
        let place = self.of(span.target, span.name);
        let inside = match (&span.entered, span.took_ns()) {
            (None, Some(ns)) => {
                let ended = self
                    .outermost
                    .entry((span.end.thread(), place))
                    .or_default();
                let ended_now = Ended {
                    from: span.end.start_tick(),
                    to: span.end.tick,
                    part: ns,
                };
                ended.end(ended_now).min(ns)
            }
            _ if span.is_inner => span.total_ns,
            _ => 0,
        };
        let did = self.outermost_of(span, place);
        let times = &mut self.spans[place];
        let bytes = span.payload_bytes() as u64;
        times.payload_bytes = times.payload_bytes.saturating_add(bytes);
        let Some(total_ns) = span.took_ns() else {
            times.untimed += 1;
            return;
        };
        times.durations.add(total_ns);
        times.total_ns = times.total_ns.saturating_add(total_ns - inside);
        match span.self_ns {
            Some(ns) => times.self_ns = times.self_ns.saturating_add(ns),
            None => times.unknown_self += 1,
        }
        match did {
            Some(did) => times.thread_times = times.thread_times.and(did),
            None => times.unknown_times += 1,
        }
    }

    /// What the threads of a span did, without what is counted of spans of its name inside it.
    fn outermost_of(&mut self, span: &Span<'_>, place: usize) -> Option<ThreadTimes> {
        let times = span.times?;
        if span.entered.is_some() {
            return Some(times).map(|times| match span.is_inner {
                true => ThreadTimes::default(),
                false => times,
            });
        }
        let key = (span.end.thread(), place);
        let ended = self.outermost_times.entry(key).or_default();
        let ended_now = Ended {
            from: span.end.start_tick(),
            to: span.end.tick,
            part: times,
        };
        Some(times.without(ended.end(ended_now)))
    }

    /// Adds spans that the trace does not hold from beginning to end.
    pub fn add_cut(&mut self, cut: &CutSpans<'_>) {
        let Some(ty) = cut.ty else {
            self.nameless += cut.no_start;
            return;
        };
        let place = self.of(&ty.origin.target, &ty.name);
        let times = &mut self.spans[place];
        times.no_start += cut.no_start;
        times.no_end += cut.no_end;
    }

    /// Adds a span of this type that is still open.
    pub fn add_open(&mut self, ty: &EventType) {
        let place = self.of(&ty.origin.target, &ty.name);
        self.spans[place].no_end += 1;
    }

    /// Spans of which only entries, exits or the end are in the trace, so that they have no name.
    #[must_use]
    pub const fn nameless(&self) -> u64 {
        self.nameless
    }

    /// The place of a name in `spans`.
    fn of(&mut self, target: &[u8], name: &[u8]) -> usize {
        let found = self.places.get(target).and_then(|names| names.get(name));
        match found {
            Some(place) => *place,
            None if self.spans.len() < NAMES_MAX => self.place(target, name),
            None => match self
                .places
                .get(&b""[..])
                .and_then(|names| names.get(OTHERS))
            {
                Some(place) => *place,
                None => self.place(b"", OTHERS),
            },
        }
    }

    /// A new place, for spans of this name.
    fn place(&mut self, target: &[u8], name: &[u8]) -> usize {
        let place = self.spans.len();
        self.spans.push(SpanTimes {
            name: name.to_vec(),
            target: target.to_vec(),
            ..SpanTimes::default()
        });
        let names = self.places.entry(target.to_vec()).or_default();
        names.insert(name.to_vec(), place);
        place
    }

    /// The spans by name, those with the most time first.
    #[must_use]
    pub fn finish(mut self) -> Vec<SpanTimes> {
        let key = |times: &SpanTimes| (times.total_ns, times.durations.count());
        self.spans
            .sort_by(|a, b| (key(b), &a.name).cmp(&(key(a), &b.name)));
        self.spans
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_beyond_the_limit_are_summed_up_together() {
        let mut profile = SpanProfile::default();
        let name = |n: usize| n.to_string().into_bytes();
        let mut add = |n| {
            let place = profile.of(b"target", &name(n));
            profile.spans[place].no_end += 1;
        };
        (0..NAMES_MAX + 10).for_each(&mut add);
        // A name that has its place keeps it.
        add(7);
        let found = profile.finish();
        assert_eq!(found.len(), NAMES_MAX + 1);
        let of = |name: &[u8]| found.iter().find(|spans| spans.name == name);
        assert_eq!(of(OTHERS).map(SpanTimes::spans), Some(10));
        assert_eq!(of(b"7").map(SpanTimes::spans), Some(2));
    }
}
