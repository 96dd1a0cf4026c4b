//! Functions in two traces, compared by name and module.

use std::cmp::Reverse;
use std::collections::HashMap;

use crate::sums::function_times::FunctionTimes;

/// One function in two traces; one of them may lack it. Pairs have the earlier trace first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FunctionChange {
    /// Name of the function, demangled.
    pub name: Vec<u8>,
    /// File name of its module.
    pub module: Vec<u8>,
    /// Number of calls.
    pub calls: [u64; 2],
    /// Time in it without the traced functions that it called, in ns; `None`: no call has a
    /// duration.
    pub self_ns: [Option<u64>; 2],
    /// Mean duration of its calls, in ns.
    pub mean_ns: [Option<u64>; 2],
}

impl FunctionChange {
    /// The functions of both traces, the largest change of own time first.
    #[must_use]
    pub fn between(before: &[FunctionTimes], after: &[FunctionTimes]) -> Vec<Self> {
        let mut places = HashMap::new();
        let mut changes: Vec<Self> = Vec::new();
        for (side, functions) in [before, after].into_iter().enumerate() {
            for function in functions {
                let key = (&function.module, &function.name);
                let place = *places.entry(key).or_insert_with(|| {
                    changes.push(Self::of(function));
                    changes.len() - 1
                });
                changes[place].set(side, function);
            }
        }
        changes.sort_by_key(|change| Reverse(change.own_difference()));
        changes
    }

    /// A function that neither trace has called.
    fn of(function: &FunctionTimes) -> Self {
        Self {
            name: function.name.clone(),
            module: function.module.clone(),
            calls: [0; 2],
            self_ns: [Some(0); 2],
            mean_ns: [Some(0); 2],
        }
    }

    fn set(&mut self, side: usize, function: &FunctionTimes) {
        let known = |ns: u64| function.is_timed().then_some(ns);
        self.calls[side] = function.calls;
        self.self_ns[side] = known(function.self_ns);
        self.mean_ns[side] = known(function.durations.mean_ns());
    }

    fn own_difference(&self) -> u64 {
        let [before, after] = self.self_ns.map(Option::unwrap_or_default);
        before.abs_diff(after)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sums::durations::Durations;

    fn function(name: &str, times: &[u64]) -> FunctionTimes {
        let mut durations = Durations::default();
        times.iter().for_each(|ns| durations.add(*ns));
        FunctionTimes {
            name: name.into(),
            calls: times.len().max(1) as u64,
            self_ns: times.iter().sum(),
            durations,
            ..FunctionTimes::default()
        }
    }

    #[test]
    fn the_largest_change_of_own_time_comes_first() {
        let before = [function("same", &[5, 5]), function("faster", &[100])];
        let after = [
            function("new", &[30]),
            function("same", &[10]),
            function("faster", &[10]),
        ];
        let changes = FunctionChange::between(&before, &after);
        let names: Vec<_> = changes
            .iter()
            .map(|change| change.name.as_slice())
            .collect();
        assert_eq!(names, [b"faster".as_slice(), b"new", b"same"]);
        assert_eq!(changes[0].self_ns, [Some(100), Some(10)]);
        assert_eq!((changes[1].calls, changes[1].mean_ns[0]), ([0, 1], Some(0)));
        assert_eq!(changes[2].mean_ns, [Some(5), Some(10)]);
    }

    #[test]
    fn a_side_with_calls_and_no_duration_is_not_known() {
        let changes = FunctionChange::between(&[function("f", &[])], &[function("f", &[7])]);
        assert_eq!(changes[0].calls, [1, 1]);
        assert_eq!(changes[0].self_ns, [None, Some(7)]);
    }
}
