//! What profile tracers have gathered: asked of a process, or found in a dump as events that say
//! so. Both have the same values.

use std::collections::BTreeMap;

use ringmark_decoder::{Dump, Event, Output, Value};

use crate::calls::CallOptions;
use crate::function_table;
use crate::output::{Failure, Table, printable};
use crate::tracing::target::Target;

/// Name and target of the events.
const EVENT: (&[u8], &[u8]) = (b"function_profile", b"ringmark");

/// What a tracer has gathered of a function, in ns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Gathered {
    function: String,
    module: String,
    calls: u64,
    open: u64,
    unwound: u64,
    total: u64,
    own: u64,
    sum: u64,
    min: u64,
    max: u64,
    /// Calls of so many ns up to twice as many.
    histogram: Vec<(u64, u64)>,
}

/// The functions of one tracer: those with the most time of their own first.
#[derive(Debug)]
pub(crate) struct Profile {
    tracer: String,
    functions: Vec<Gathered>,
    /// Calls for which the process had no memory.
    pub(crate) uncounted: u64,
}

fn histogram(text: &str) -> Vec<(u64, u64)> {
    let pairs = text.split(',').filter_map(|pair| pair.split_once(':'));
    pairs
        .filter_map(|(low, calls)| Some((low.parse().ok()?, calls.parse().ok()?)))
        .collect()
}

impl Gathered {
    /// `CALLS OPEN UNWOUND TOTAL SELF SUM MIN MAX HISTOGRAM`, then function and module behind tabs.
    fn of_line(line: &str) -> Option<Self> {
        let mut parts = line.split('\t');
        let mut words = parts.next()?.split(' ');
        let mut number = || words.next()?.parse().ok();
        let mut gathered = Self {
            calls: number()?,
            open: number()?,
            unwound: number()?,
            total: number()?,
            own: number()?,
            sum: number()?,
            min: number()?,
            max: number()?,
            ..Self::default()
        };
        gathered.histogram = histogram(words.next()?);
        gathered.function = parts.next()?.to_owned();
        gathered.module = parts.next()?.to_owned();
        Some(gathered)
    }

    /// Of an event, with the name of its tracer.
    fn of_event(event: &Event<'_>) -> Option<(String, Self)> {
        if !is_profile(event.name(), event.target()) {
            return None;
        }
        let mut gathered = Self::default();
        let mut tracer = None;
        for (field, value) in event.args() {
            match (field.name.as_slice(), value) {
                (b"tracer", Value::Str(text)) => tracer = Some(lossy(text)),
                (b"function", Value::Str(text)) => gathered.function = lossy(text),
                (b"module", Value::Str(text)) => gathered.module = lossy(text),
                (b"histogram", Value::Str(text)) => gathered.histogram = histogram(&lossy(text)),
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
        Some((tracer?, gathered))
    }

    /// Calls whose duration is known.
    fn timed(&self) -> u64 {
        let calls = self.histogram.iter().map(|(_, calls)| *calls);
        calls.fold(0, u64::saturating_add)
    }

    /// Calls so far, and those of them without a known end: still open, on another stack or too deep.
    fn calls(&self) -> (u64, u64) {
        let calls = self.calls.saturating_add(self.open);
        (calls, calls.saturating_sub(self.timed()))
    }

    /// Total, own, mean, median, 99th percentile and longest, where any is known.
    fn times(&self) -> Option<[u64; 6]> {
        (self.timed() > 0).then(|| {
            [
                self.total,
                self.own,
                self.mean(),
                self.percentile(50),
                self.percentile(99),
                self.max,
            ]
        })
    }

    fn mean(&self) -> u64 {
        self.sum.checked_div(self.timed()).unwrap_or(0)
    }

    /// About what `percent` of the calls do not exceed: calls are taken to be spread evenly over
    /// their bucket.
    fn percentile(&self, percent: u32) -> u64 {
        let rank = (u128::from(self.timed()) * u128::from(percent)).div_ceil(100);
        let mut rank = u64::try_from(rank).unwrap_or(u64::MAX);
        for (low, calls) in &self.histogram {
            if rank <= *calls {
                let part = u128::from(*low) * u128::from(rank) / u128::from((*calls).max(1));
                let ns = u64::try_from(part).unwrap_or(u64::MAX).saturating_add(*low);
                return ns.clamp(self.min.min(self.max), self.max);
            }
            rank -= calls;
        }
        self.max
    }
}

fn lossy(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}

impl Profile {
    fn new(tracer: String, mut functions: Vec<Gathered>, uncounted: u64) -> Self {
        functions.sort_by(|a, b| (b.own, b.calls, &a.function).cmp(&(a.own, a.calls, &b.function)));
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
            let answer = target.ask("profile", &format!("tracer={tracer}\nfrom={from}\n"))?;
            functions.extend(answer.values("function").filter_map(Gathered::of_line));
            let next = answer.number("next");
            if next <= from {
                let uncounted = answer.number("uncounted");
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
            cells.extend([&f.function, &f.module, &self.tracer].map(|text| printable(text)));
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
                "v": ringmark_decoder::JSON_VERSION,
                "kind": "function",
                "tracer": self.tracer,
                "name": f.function,
                "module": f.module,
                "calls": f.calls,
                "open": f.open,
                "not_returned": f.unwound,
                "no_end": f.calls.saturating_sub(f.timed()),
                "total_ns": time(0),
                "self_ns": time(1),
                "mean_ns": time(2),
                "min_ns": times.map(|_| f.min),
                "p50_ns": time(3),
                "p99_ns": time(4),
                "max_ns": time(5),
                "approximate": ["p50_ns", "p99_ns"],
                "histogram": f.histogram,
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
    let status = target.ask("status", "")?;
    let profiles = status.values("tracer").filter(|line| {
        let (words, _) = line.split_once(" filter=").unwrap_or((line, ""));
        words.split(' ').any(|word| word == "kind=profile")
    });
    let names = profiles.filter_map(|line| line.split(' ').next());
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
        let Some((tracer, gathered)) = Gathered::of_event(&event) else {
            return;
        };
        if options.names(&tracer) {
            let key = (gathered.module.clone(), gathered.function.clone());
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
    fn a_line_of_an_answer() {
        let line = "10 1 2 5000 4000 6000 100 3000 96:4,192:5,3072:1\tf(int, char)\tprogram";
        let found = Gathered::of_line(line).unwrap();
        assert_eq!((found.calls, found.open, found.unwound), (10, 1, 2));
        assert_eq!((found.min, found.max, found.mean()), (100, 3000, 600));
        assert_eq!(found.function, "f(int, char)");
        assert_eq!(found.percentile(50), 192 + 192 / 5);
        assert_eq!(found.percentile(99), 3000, "not beyond the longest");
        assert_eq!(found.percentile(1), 120);
        assert_eq!(Gathered::of_line("1 2 3\tf\tm"), None);
        let never = Gathered::of_line("0 1 0 0 0 0 0 0 -\tmain\tm").unwrap();
        assert_eq!((never.mean(), never.percentile(50)), (0, 0));
    }
}
