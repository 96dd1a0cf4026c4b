//! What a table says about the calls of one function, or the spans of one name, wherever the figures
//! come from.

use crate::sums::durations::Durations;

/// How many calls a function had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallCounts {
    /// All of them.
    pub all: u64,
    /// Those without a known end; part of `all`.
    pub without_end: u64,
}

/// How long the calls of a function, or the spans of a name, took, in ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallTimes {
    /// All calls together, with what they called; calls inside a call of the same function are not
    /// counted again.
    pub total: u64,
    /// All calls together, without the traced functions that they called.
    pub own: u64,
    /// The mean of the calls.
    pub mean: u64,
    /// The duration that half of the calls do not exceed.
    pub median: u64,
    /// The duration that 99 % of the calls do not exceed.
    pub p99: u64,
    /// The shortest call.
    pub shortest: u64,
    /// The longest call.
    pub longest: u64,
}

impl CallTimes {
    /// The times of these durations; `None`: there are none.
    pub(crate) fn of(durations: &Durations, total: u64, own: u64) -> Option<Self> {
        let [median, p99] = durations.percentiles_ns([50, 99]);
        (durations.count() > 0).then(|| Self {
            total,
            own,
            mean: durations.mean_ns(),
            median,
            p99,
            shortest: durations.min_ns(),
            longest: durations.max_ns(),
        })
    }

    /// The times in the order of a table's columns.
    #[must_use]
    pub const fn columns(&self) -> [u64; 6] {
        [
            self.total,
            self.own,
            self.mean,
            self.median,
            self.p99,
            self.longest,
        ]
    }
}
