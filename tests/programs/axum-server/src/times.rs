//! Between which sums the durations of spans lie, as the server measures them itself.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// The spans of a name.
pub(crate) struct Times {
    name: &'static str,
    count: AtomicU64,
    least_ns: AtomicU64,
    most_ns: AtomicU64,
}

pub(crate) static QUERIES: Times = Times::of("query");
pub(crate) static RESIZES: Times = Times::of("resize");

impl Times {
    const fn of(name: &'static str) -> Self {
        Self {
            name,
            count: AtomicU64::new(0),
            least_ns: AtomicU64::new(0),
            most_ns: AtomicU64::new(0),
        }
    }

    /// Adds a span that was made after `before` and has just ended. `least`: how long its work took.
    pub(crate) fn add(&self, before: Instant, least: Duration) {
        let most = before.elapsed();
        self.count.fetch_add(1, Relaxed);
        self.least_ns.fetch_add(least.as_nanos() as u64, Relaxed);
        self.most_ns.fetch_add(most.as_nanos() as u64, Relaxed);
    }

    /// Prints name, number, and both sums in ns.
    pub(crate) fn print(&self) {
        let [count, least, most] =
            [&self.count, &self.least_ns, &self.most_ns].map(|of| of.load(Relaxed));
        println!("{} {count} {least} {most}", self.name);
    }
}
