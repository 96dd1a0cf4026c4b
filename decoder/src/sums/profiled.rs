//! What profile tracers have gathered in the program, and what a histogram says.
//!
//! A tracer of kind profile counts calls in memory. It writes the result as `function_profile`
//! events when it is stopped and when the program exits.

use std::collections::BTreeMap;

use ringmark_format::Uuid;
use ringmark_format::tracer_text::{self, ProfileEvent};

use crate::events::event::{Event, Output};
use crate::events::filter::Filter;
use crate::sums::call_figures::{CallCounts, CallTimes};
use crate::trace_file::dump::Dump;
use crate::trace_file::value::Value;

/// What a profile tracer has gathered of a function, with the sums that follow from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfiledFunction(pub tracer_text::Gathered<'static>);

impl ProfiledFunction {
    /// Whether events of this name and target are those of profile tracers.
    #[must_use]
    pub fn is_event(name: &[u8], target: &[u8]) -> bool {
        let names = [ProfileEvent::NAME, ProfileEvent::BEGIN, ProfileEvent::END];
        let is_one = names.iter().any(|one| name == one.as_bytes());
        is_one && target == ProfileEvent::TARGET.as_bytes()
    }

    /// Number of calls whose duration is known.
    #[must_use]
    pub fn timed(&self) -> u64 {
        let calls = self.0.histogram.0.iter().map(|(_, calls)| *calls);
        calls.fold(0, u64::saturating_add)
    }

    /// Number of calls, and of those without a known end: still open, on another stack, or too
    /// deep.
    #[must_use]
    pub fn call_counts(&self) -> CallCounts {
        let all = self.0.calls.saturating_add(self.0.open);
        CallCounts {
            all,
            without_end: all.saturating_sub(self.timed()),
        }
    }

    /// The times of its calls; `None`: no duration is known.
    #[must_use]
    pub fn times(&self) -> Option<CallTimes> {
        (self.timed() > 0).then(|| CallTimes {
            total: self.0.total,
            own: self.0.own,
            mean: self.mean(),
            median: self.percentile(50),
            p99: self.percentile(99),
            shortest: self.0.min,
            longest: self.0.max,
        })
    }

    /// Mean duration in ns; 0: none is known.
    #[must_use]
    pub fn mean(&self) -> u64 {
        self.0.sum.checked_div(self.timed()).unwrap_or(0)
    }

    /// The duration in ns that about `percent` of the calls do not exceed. Calls are taken to be
    /// spread evenly over their bucket of the histogram.
    #[must_use]
    pub fn percentile(&self, percent: u32) -> u64 {
        let rank = (u128::from(self.timed()) * u128::from(percent)).div_ceil(100);
        let mut rank = u64::try_from(rank).unwrap_or(u64::MAX);
        for (low, calls) in &self.0.histogram.0 {
            if rank <= *calls {
                let part = u128::from(*low) * u128::from(rank) / u128::from((*calls).max(1));
                let ns = u64::try_from(part).unwrap_or(u64::MAX).saturating_add(*low);
                return ns.clamp(self.0.min.min(self.0.max), self.0.max);
            }
            rank -= calls;
        }
        self.0.max
    }
}

/// What one profile tracer of one session has gathered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfiledByTracer {
    /// The session.
    pub session: Uuid,
    /// Name of the tracer.
    pub tracer: String,
    /// Its functions by module and name, each as its latest event says.
    pub functions: Vec<ProfiledFunction>,
}

/// What profile tracers have counted and is not in a trace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ProfileGaps {
    /// Number of times that a tracer began to count and did not write what it had counted.
    pub(crate) unwritten: u64,
    /// Calls of threads that could not count.
    pub(crate) uncounted: u64,
}

/// Reads an event of a profile tracer.
fn read(event: &Event<'_>) -> ProfileEvent {
    let mut found = ProfileEvent::default();
    for (field, value) in event.args() {
        match value {
            Value::U64(n) => found.take_number(&field.name, n),
            Value::Str(text) => found.take_text(&field.name, &String::from_utf8_lossy(text)),
            _ => {}
        }
    }
    found
}

/// By module and name.
fn in_order(mut functions: Vec<ProfiledFunction>) -> Vec<ProfiledFunction> {
    let key = |one: &ProfiledFunction| (one.0.module.clone(), one.0.function.clone());
    functions.sort_by_key(key);
    functions
}

impl Dump {
    /// What profile tracers have gathered, by session and tracer. A function has several events if
    /// its tracer was stopped several times; the latest that passes `filter` counts.
    #[must_use]
    pub fn gathered(&self, filter: &Filter) -> Vec<ProfiledByTracer> {
        let mut types = self.sessions.iter().flat_map(|s| s.schema.types());
        if !types.any(|ty| ty.occurs && ProfiledFunction::is_event(&ty.name, &ty.origin.target)) {
            return Vec::new();
        }
        let mut latest: BTreeMap<_, BTreeMap<_, _>> = BTreeMap::new();
        self.events().for_each(|item| {
            if let Output::Event(event) = item
                && ProfiledFunction::is_event(&event.ty.name, &event.ty.origin.target)
                && event.ty.name == ProfileEvent::NAME.as_bytes()
                && filter.passes(&event)
            {
                let found = read(&event);
                let tracer = found.tracer.unwrap_or_default();
                let tracer = latest.entry((event.session.uuid.0, tracer)).or_default();
                tracer.insert(found.id, ProfiledFunction(found.gathered));
            }
        });
        let latest = latest.into_iter();
        let tracers = latest.map(|((session, tracer), functions)| ProfiledByTracer {
            session: Uuid(session),
            tracer,
            functions: in_order(functions.into_values().collect()),
        });
        tracers.collect()
    }

    /// What profile tracers have counted and is not here.
    pub(crate) fn profile_gaps(&self) -> ProfileGaps {
        let is_meant = |name: &[u8], target: &[u8]| {
            ProfiledFunction::is_event(name, target) && name != ProfileEvent::NAME.as_bytes()
        };
        let mut types = self.sessions.iter().flat_map(|s| s.schema.types());
        if !types.any(|ty| ty.occurs && is_meant(&ty.name, &ty.origin.target)) {
            return ProfileGaps::default();
        }
        // By session and tracer: begins without an end. By session: calls that were not counted.
        let (mut begun, mut uncounted) = (BTreeMap::<_, u64>::new(), BTreeMap::<_, u64>::new());
        self.events().for_each(|item| {
            if let Output::Event(event) = item
                && is_meant(&event.ty.name, &event.ty.origin.target)
            {
                let (found, session) = (read(&event), event.session.uuid.0);
                let open = begun.entry((session, found.tracer)).or_default();
                if event.ty.name == ProfileEvent::END.as_bytes() {
                    *open = open.saturating_sub(1);
                    let known = uncounted.entry(session).or_default();
                    *known = found.uncounted.max(*known);
                } else {
                    *open += 1;
                }
            }
        });
        ProfileGaps {
            unwritten: begun.into_values().fold(0, u64::saturating_add),
            uncounted: uncounted.into_values().fold(0, u64::saturating_add),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_off_a_histogram() {
        let line = "10 1 2 5000 4000 6000 100 3000 96:4,192:5,3072:1\tf(int, char)\tprogram";
        let of = |line| ProfiledFunction(tracer_text::Gathered::parse(line).unwrap().into_owned());
        let found = of(line);
        let counts = CallCounts {
            all: 11,
            without_end: 1,
        };
        assert_eq!((found.call_counts(), found.mean()), (counts, 600));
        assert_eq!(found.percentile(50), 192 + 192 / 5);
        assert_eq!(found.percentile(99), 3000, "not beyond the longest");
        assert_eq!(found.percentile(1), 120);
        let never = of("0 1 0 0 0 0 0 0 -\tmain\tm");
        assert_eq!((never.mean(), never.percentile(50)), (0, 0));
    }
}
