//! What profile tracers have gathered: asked of a process, or found in a dump as events that say
//! so. Both have the same values.

use std::collections::BTreeMap;

use ringmark_decoder::{Dump, Event, JSON_VERSION, Output, Value};
use ringmark_format::function::TracerKind;
use ringmark_format::tracer_text::{AnswerLine, Count, Gathered, Histogram, RequestLine, Verb};

use crate::calls::CallOptions;
use crate::function_table;
use crate::output::{Failure, Table, printable};
use crate::tracing::target::Target;

/// Name and target of the events.
const EVENT: (&[u8], &[u8]) = (b"function_profile", b"ringmark");

/// What a tracer has gathered of a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Of(Gathered<'static>);

/// The functions of one tracer: those with the most time of their own first.
#[derive(Debug)]
pub(crate) struct Profile {
    tracer: String,
    functions: Vec<Of>,
    /// Calls for which the process had no memory.
    pub(crate) uncounted: u64,
}

impl Of {
    /// Of an event, with the name of its tracer.
    fn of_event(event: &Event<'_>) -> Option<(String, Self)> {
        if !is_profile(event.name(), event.target()) {
            return None;
        }
        let mut gathered = Gathered::default();
        let mut tracer = None;
        for (field, value) in event.args() {
            match (field.name.as_slice(), value) {
                (b"tracer", Value::Str(text)) => tracer = Some(lossy(text)),
                (b"function", Value::Str(text)) => gathered.function = lossy(text).into(),
                (b"module", Value::Str(text)) => gathered.module = lossy(text).into(),
                (b"histogram", Value::Str(text)) => {
                    gathered.histogram = Histogram::parse(&lossy(text));
                }
                (b"calls", Value::U64(n)) => gathered.calls = n,
                (b"open", Value::U64(n)) => gathered.open = n,
                (b"unwound", Value::U64(n)) => gathered.unwound = n,
                (b"total_ns", Value::U64(n)) => gathered.total = n,
                (b"self_ns", Value::U64(n)) => gathered.own = n,
                (b"sum_ns", Value::U64(n)) => gathered.sum = n,
                (b"min_ns", Value::U64(n)) => gathered.min = n,
                (b"max_ns", Value::U64(n)) => gathered.max = n,
                _ => {}
            }
        }
        Some((tracer?, Self(gathered)))
    }

    /// Calls whose duration is known.
    fn timed(&self) -> u64 {
        let calls = self.0.histogram.0.iter().map(|(_, calls)| *calls);
        calls.fold(0, u64::saturating_add)
    }

    /// Calls so far, and those of them without a known end: still open, on another stack or too deep.
    fn calls(&self) -> (u64, u64) {
        let calls = self.0.calls.saturating_add(self.0.open);
        (calls, calls.saturating_sub(self.timed()))
    }

    /// Total, own, mean, median, 99th percentile and longest, where any is known.
    fn times(&self) -> Option<[u64; 6]> {
        (self.timed() > 0).then(|| {
            [
                self.0.total,
                self.0.own,
                self.mean(),
                self.percentile(50),
                self.percentile(99),
                self.0.max,
            ]
        })
    }

    fn mean(&self) -> u64 {
        self.0.sum.checked_div(self.timed()).unwrap_or(0)
    }

    /// About what `percent` of the calls do not exceed: calls are taken to be spread evenly over
    /// their bucket.
    fn percentile(&self, percent: u32) -> u64 {
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

fn lossy(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}

impl Profile {
    fn new(tracer: String, mut functions: Vec<Of>, uncounted: u64) -> Self {
        functions.sort_by(|Of(a), Of(b)| {
            (b.own, b.calls, &a.function).cmp(&(a.own, a.calls, &b.function))
        });
        Self {
            tracer,
            functions,
            uncounted,
        }
    }

    /// Asks a process, part by part.
    ///
    /// # Errors
    /// No answer, or the tracer is no profile.
    pub(crate) fn ask(target: &Target, tracer: &str) -> anyhow::Result<Self> {
        let mut functions = Vec::new();
        let mut from = 0;
        loop {
            let lines = [RequestLine::Tracer(tracer), RequestLine::From(from)];
            let answer = target.ask(Verb::Profile, &lines)?;
            functions.extend(answer.lines().filter_map(|line| match line {
                AnswerLine::Gathered(function) => Some(Of(function.into_owned())),
                _ => None,
            }));
            let next = answer.count(Count::Next);
            if next <= from {
                let uncounted = answer.count(Count::Uncounted);
                return Ok(Self::new(tracer.to_owned(), functions, uncounted));
            }
            from = next;
        }
    }

    /// One row per function.
    pub(crate) fn table(&self) -> Table {
        let any_without_end = self.no_end() > 0;
        let headings = function_table::headings(
            any_without_end,
            &[
                ">TOTAL", ">SELF", ">AVG", ">~P50", ">~P99", ">MAX", "FUNCTION", "MODULE", "TRACER",
            ],
        );
        let mut table = Table::new(&headings);
        for f in &self.functions {
            let mut cells = function_table::cells(any_without_end, f.calls(), f.times());
            cells.extend([&f.0.function, &f.0.module, &self.tracer[..]].map(printable));
            table.row(cells);
        }
        table.foot(function_table::without_end(self.no_end()));
        table
    }

    /// Calls without a known end.
    fn no_end(&self) -> u64 {
        self.functions.iter().map(|f| f.calls().1).sum()
    }

    /// A JSON object per function.
    pub(crate) fn json(&self) -> impl Iterator<Item = serde_json::Value> {
        self.functions.iter().map(|f| {
            let times = f.times();
            let time = |place: usize| times.map(|times| times[place]);
            serde_json::json!({
                "v": JSON_VERSION,
                "kind": "function",
                "tracer": self.tracer,
                "name": f.0.function,
                "module": f.0.module,
                "calls": f.0.calls,
                "open": f.0.open,
                "not_returned": f.0.unwound,
                "no_end": f.0.calls.saturating_sub(f.timed()),
                "total_ns": time(0),
                "self_ns": time(1),
                "mean_ns": time(2),
                "min_ns": times.map(|_| f.0.min),
                "p50_ns": time(3),
                "p99_ns": time(4),
                "max_ns": time(5),
                "approximate": ["p50_ns", "p99_ns"],
                "histogram": f.0.histogram.0,
            })
        })
    }
}

/// Whether a type is that of the events that say what was gathered.
pub(crate) fn is_profile(name: &[u8], target: &[u8]) -> bool {
    (name, target) == EVENT
}

/// What the profile tracers of a process have gathered, or the one that is named.
///
/// # Errors
/// It does not answer.
pub(crate) fn of_process(target: &Target, options: &CallOptions) -> anyhow::Result<Vec<Profile>> {
    let status = target.ask(Verb::Status, &[])?;
    let kind = TracerKind::Profile.name();
    let profiles = status.tracers().filter(|tracer| tracer.kind == kind);
    let names = profiles.map(|tracer| tracer.name);
    names
        .filter(|name| options.names(name))
        .map(|name| Profile::ask(target, name))
        .collect()
}

/// The profiles in a dump: of each process, tracer and function what was said last at the meant
/// times.
///
/// # Errors
/// Text that is no time.
pub(crate) fn in_dump(dump: &Dump, options: &CallOptions) -> Result<Vec<Profile>, Failure> {
    let (times, mut last) = (options.times.build()?, BTreeMap::new());
    dump.events().for_each(|item| {
        let Output::Event(event) = item else { return };
        if !times.passes(&event) {
            return;
        }
        let Some((tracer, gathered)) = Of::of_event(&event) else {
            return;
        };
        if options.names(&tracer) {
            let key = (gathered.0.module.clone(), gathered.0.function.clone());
            let of_tracer: &mut BTreeMap<_, _> = last
                .entry((event.session.uuid.to_string(), tracer))
                .or_default();
            of_tracer.insert(key, gathered);
        }
    });
    let profiles = last.into_iter();
    Ok(profiles
        .map(|((_, tracer), functions)| Profile::new(tracer, functions.into_values().collect(), 0))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_off_a_histogram() {
        let line = "10 1 2 5000 4000 6000 100 3000 96:4,192:5,3072:1\tf(int, char)\tprogram";
        let of = |line| Of(Gathered::parse(line).unwrap().into_owned());
        let found = of(line);
        assert_eq!((found.calls(), found.mean()), ((11, 1), 600));
        assert_eq!(found.percentile(50), 192 + 192 / 5);
        assert_eq!(found.percentile(99), 3000, "not beyond the longest");
        assert_eq!(found.percentile(1), 120);
        let never = of("0 1 0 0 0 0 0 0 -\tmain\tm");
        assert_eq!((never.mean(), never.percentile(50)), (0, 0));
    }
}
