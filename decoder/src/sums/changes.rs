//! Spans and functions in two traces, compared by name.

use std::collections::HashMap;

use crate::sums::call_figures::CallTimes;
use crate::sums::figures::Figures;
use crate::sums::function_times::FunctionTimes;
use crate::sums::span_times::SpanTimes;

/// What a [`Change`] compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Compared {
    /// Spans of one name: native ones and those of `tracing`.
    Spans,
    /// Calls of one function.
    Calls,
}

/// The spans of one name, or the calls of one function, in one of two traces.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Side {
    /// How many there are.
    pub count: u64,
    /// Those of `count` without a beginning in the trace; they are not in the times.
    pub no_start: u64,
    /// Those of `count` without an end in the trace; they are not in the times.
    pub no_end: u64,
    /// Time in them without the spans and calls inside, in ns; `None`: of none it is known.
    pub own_ns: Option<u64>,
    /// How long they took; `None`: of none a duration is known.
    pub times: Option<CallTimes>,
}

impl Side {
    fn of_spans(spans: &SpanTimes) -> Self {
        Self {
            count: spans.spans(),
            no_start: spans.no_start,
            no_end: spans.no_end,
            own_ns: spans.own_ns(),
            times: spans.times(),
        }
    }

    fn of_calls(function: &FunctionTimes) -> Self {
        let times = function.times();
        Self {
            count: function.calls,
            no_start: function.no_start,
            no_end: function.no_end,
            own_ns: function.own_ns(),
            times,
        }
    }

    /// The figure; `None`: it is not known. The times of what a trace does not have are 0.
    #[must_use]
    pub fn figure(&self, figure: Figure) -> Option<u64> {
        if figure == Figure::Count {
            return Some(self.count);
        }
        if self.count == 0 {
            return Some(0);
        }
        if figure == Figure::Own {
            return self.own_ns;
        }
        self.times.map(|times| match figure {
            Figure::Count => self.count,
            Figure::Total => times.total,
            Figure::Own => times.own,
            Figure::Mean => times.mean,
            Figure::Median => times.median,
            Figure::P99 => times.p99,
            Figure::Max => times.longest,
        })
    }
}

/// A figure whose change is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Figure {
    /// How many there are.
    Count,
    /// The sum of their durations.
    Total,
    /// Time without the spans and calls inside.
    Own,
    /// The mean of their durations.
    Mean,
    /// The duration that half of them do not exceed.
    Median,
    /// The duration that 99 % of them do not exceed.
    P99,
    /// The longest.
    Max,
}

/// A name in two traces, the first one in front; one of them may lack it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// What has the name.
    pub of: Compared,
    /// The name; that of a function is demangled.
    pub name: Vec<u8>,
    /// Target of the spans, or file name of the function's module: those of the first trace, where the
    /// second one has another.
    pub target: Vec<u8>,
    /// What each trace has of it.
    pub sides: [Side; 2],
}

/// Joins what only the first trace has with what only the second one has, if each has the name in one
/// target alone: programs and modules may be called differently.
fn join(changes: &mut Vec<Change>) {
    let mut alone: HashMap<(Compared, &[u8]), [Vec<usize>; 2]> = HashMap::new();
    for (place, change) in changes.iter().enumerate() {
        let places = alone.entry((change.of, &change.name)).or_default();
        match (change.is_gone(), change.is_new()) {
            (true, false) => places[0].push(place),
            (false, true) => places[1].push(place),
            // In both: another target is another thing of this name.
            _ => places.iter_mut().for_each(|side| side.push(place)),
        }
    }
    let pairs: Vec<_> = alone
        .into_values()
        .filter_map(|places| match places.each_ref().map(Vec::as_slice) {
            [[first], [second]] if first != second => Some((*first, *second)),
            _ => None,
        })
        .collect();
    for (first, second) in pairs {
        changes[first].sides[1] = std::mem::take(&mut changes[second].sides[1]);
    }
    changes.retain(|change| change.sides.iter().any(|side| side.count > 0));
}

impl Change {
    /// The names of both traces, the largest change of this figure first; those of which it is not
    /// known come last.
    #[must_use]
    pub fn between(first: &Figures<'_>, second: &Figures<'_>, figure: Figure) -> Vec<Self> {
        let mut changes = Changes::default();
        for (side, figures) in [first, second].into_iter().enumerate() {
            for spans in &figures.spans {
                let key = (Compared::Spans, &spans.target[..], &spans.name[..]);
                changes.set(key, side, Side::of_spans(spans));
            }
            for function in &figures.functions {
                let key = (Compared::Calls, &function.module[..], &function.name[..]);
                changes.set(key, side, Side::of_calls(function));
            }
        }
        let mut found = changes.found;
        join(&mut found);
        let size = |change: &Self| change.of_figure(figure).map(i128::unsigned_abs);
        found.sort_by(|a, b| (size(b), &a.name, &a.target).cmp(&(size(a), &b.name, &b.target)));
        found
    }

    /// How much larger the figure is in the second trace; `None`: it is not known of one of them.
    #[must_use]
    pub fn of_figure(&self, figure: Figure) -> Option<i128> {
        let [first, second] = self.sides.map(|side| side.figure(figure));
        Some(i128::from(second?) - i128::from(first?))
    }

    /// The same in per cent of the first trace; `None` also where that has 0.
    #[must_use]
    pub fn percent(&self, figure: Figure) -> Option<f64> {
        let first = self.sides[0].figure(figure).filter(|first| *first > 0)?;
        Some(self.of_figure(figure)? as f64 / first as f64 * 100.0)
    }

    /// Whether only the second trace has it.
    #[must_use]
    pub const fn is_new(&self) -> bool {
        self.sides[0].count == 0
    }

    /// Whether only the first trace has it.
    #[must_use]
    pub const fn is_gone(&self) -> bool {
        self.sides[1].count == 0
    }
}

/// What is compared, its target, its name.
type Key<'f> = (Compared, &'f [u8], &'f [u8]);

#[derive(Default)]
struct Changes<'f> {
    found: Vec<Change>,
    places: HashMap<Key<'f>, usize>,
}

impl<'f> Changes<'f> {
    fn set(&mut self, key: Key<'f>, side: usize, figures: Side) {
        let found = &mut self.found;
        let place = *self.places.entry(key).or_insert_with(|| {
            let (of, target, name) = key;
            found.push(Change {
                of,
                name: name.to_vec(),
                target: target.to_vec(),
                sides: [Side::default(); 2],
            });
            found.len() - 1
        });
        found[place].sides[side] = figures;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sums::durations::Durations;
    use crate::trace_file::dump::Dump;

    fn durations(times: &[u64]) -> Durations {
        let mut durations = Durations::default();
        times.iter().for_each(|ns| durations.add(*ns));
        durations
    }

    fn function(name: &str, times: &[u64]) -> FunctionTimes {
        FunctionTimes {
            name: name.into(),
            calls: times.len().max(1) as u64,
            no_end: u64::from(times.is_empty()),
            total_ns: times.iter().sum(),
            self_ns: times.iter().sum(),
            durations: durations(times),
            ..FunctionTimes::default()
        }
    }

    fn spans(name: &str, times: &[u64]) -> SpanTimes {
        SpanTimes {
            name: name.into(),
            total_ns: times.iter().sum(),
            durations: durations(times),
            ..SpanTimes::default()
        }
    }

    fn figures(dump: &Dump, spans: Vec<SpanTimes>, functions: Vec<FunctionTimes>) -> Figures<'_> {
        Figures {
            spans,
            functions,
            ..dump.figures(crate::sums::figures::Counted::default())
        }
    }

    fn names(changes: &[Change]) -> Vec<(Compared, &str)> {
        let name = |change| str::from_utf8(change).unwrap();
        changes.iter().map(|c| (c.of, name(&c.name))).collect()
    }

    #[test]
    fn the_largest_change_comes_first() {
        let dump = Dump::default();
        let first = figures(
            &dump,
            vec![spans("same", &[5, 5]), spans("gone", &[3])],
            vec![function("same", &[100])],
        );
        let second = figures(
            &dump,
            vec![spans("new", &[30]), spans("same", &[10])],
            vec![function("same", &[10])],
        );
        let changes = Change::between(&first, &second, Figure::Total);
        let (of_spans, of_calls) = (Compared::Spans, Compared::Calls);
        let expected = [
            (of_calls, "same"),
            (of_spans, "new"),
            (of_spans, "gone"),
            (of_spans, "same"),
        ];
        assert_eq!(names(&changes), expected);
        let of = |at: usize, figure| (changes[at].of_figure(figure), changes[at].percent(figure));
        assert_eq!(of(0, Figure::Total), (Some(-90), Some(-90.0)));
        assert_eq!(of(1, Figure::Total), (Some(30), None));
        assert_eq!(of(2, Figure::P99), (Some(-3), Some(-100.0)));
        assert_eq!(of(3, Figure::Total), (Some(0), Some(0.0)));
        assert_eq!(of(3, Figure::Mean), (Some(5), Some(100.0)));
        assert_eq!(of(3, Figure::Count), (Some(-1), Some(-50.0)));
        assert!(changes[1].is_new() && changes[2].is_gone());
        assert!(!changes[3].is_new() && !changes[3].is_gone());
        let by_count = Change::between(&first, &second, Figure::Count);
        assert_eq!(names(&by_count)[3], (of_calls, "same"), "no change is last");
    }

    #[test]
    fn programs_may_be_called_differently() {
        let dump = Dump::default();
        let of = |module: &str, names: &[&str]| {
            let in_module = |name: &&str| FunctionTimes {
                module: module.into(),
                ..function(name, &[5])
            };
            names.iter().map(in_module).collect::<Vec<_>>()
        };
        let libc = || of("libc.so", &["free"]);
        let first = [of("app-1", &["main", "old", "free"]), libc()].concat();
        let second = [of("app-2", &["main", "new", "free"]), libc()].concat();
        let (first, second) = (
            figures(&dump, vec![], first),
            figures(&dump, vec![], second),
        );
        let mut changes = Change::between(&first, &second, Figure::Total);
        changes.sort_by(|a, b| (&a.name, &a.target).cmp(&(&b.name, &b.target)));
        let found: Vec<_> = changes
            .iter()
            .map(|c| {
                (
                    names(std::slice::from_ref(c))[0].1,
                    c.target.as_slice(),
                    c.sides.map(|s| s.count),
                )
            })
            .collect();
        // `free` is in several modules: which of them is the other's is not known.
        let expected: [(&str, &[u8], [u64; 2]); 6] = [
            ("free", b"app-1", [1, 0]),
            ("free", b"app-2", [0, 1]),
            ("free", b"libc.so", [1, 1]),
            ("main", b"app-1", [1, 1]),
            ("new", b"app-2", [0, 1]),
            ("old", b"app-1", [1, 0]),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_side_without_durations_is_not_known_and_comes_last() {
        let dump = Dump::default();
        let first = figures(&dump, vec![], vec![function("f", &[]), function("g", &[1])]);
        let second = figures(
            &dump,
            vec![],
            vec![function("f", &[7]), function("g", &[1])],
        );
        let changes = Change::between(&first, &second, Figure::Total);
        assert_eq!(names(&changes)[1], (Compared::Calls, "f"));
        assert_eq!(changes[1].of_figure(Figure::Total), None);
        assert_eq!(changes[1].of_figure(Figure::Count), Some(0));
        assert_eq!(changes[1].sides[1].figure(Figure::Total), Some(7));
        assert_eq!(
            (changes[1].sides[0].no_end, changes[1].is_new()),
            (1, false)
        );
    }
}
