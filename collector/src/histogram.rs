//! How long calls took, as a histogram for monitoring.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Upper bounds of the buckets, as Prometheus reads them, and in µs. A last one has what took longer.
const BOUNDS: [(&str, u64); 11] = [
    ("0.0001", 100),
    ("0.0005", 500),
    ("0.001", 1_000),
    ("0.005", 5_000),
    ("0.01", 10_000),
    ("0.05", 50_000),
    ("0.1", 100_000),
    ("0.5", 500_000),
    ("1", 1_000_000),
    ("5", 5_000_000),
    ("10", 10_000_000),
];

/// Times that were counted.
#[derive(Debug, Default)]
pub(crate) struct Histogram {
    /// How many were in each bucket, and in none before.
    buckets: [AtomicU64; BOUNDS.len() + 1],
    sum_us: AtomicU64,
}

impl Histogram {
    /// Counts a time.
    pub(crate) fn count(&self, took: Duration) {
        let us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let at = BOUNDS.partition_point(|(_, bound)| *bound < us);
        if let Some(bucket) = self.buckets.get(at) {
            bucket.fetch_add(1, Relaxed);
            self.sum_us.fetch_add(us, Relaxed);
        }
    }

    /// How many there were.
    pub(crate) fn total(&self) -> u64 {
        self.buckets.iter().map(|bucket| bucket.load(Relaxed)).sum()
    }

    /// All of them together, in s.
    pub(crate) fn sum_seconds(&self) -> f64 {
        Duration::from_micros(self.sum_us.load(Relaxed)).as_secs_f64()
    }

    /// It in Prometheus' text format.
    pub(crate) fn text(&self, name: &str, help: &str) -> String {
        let mut text = format!("# HELP {name} {help}\n# TYPE {name} histogram\n");
        let bounds = BOUNDS.iter().map(|(bound, _)| *bound).chain(["+Inf"]);
        let mut count = 0;
        for (bound, bucket) in bounds.zip(&self.buckets) {
            count += bucket.load(Relaxed);
            let _ = writeln!(text, "{name}_bucket{{le=\"{bound}\"}} {count}");
        }
        let sum = self.sum_seconds();
        // The same number as in the last bucket, whatever was counted meanwhile.
        let _ = writeln!(text, "{name}_sum {sum}\n{name}_count {count}");
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_counts_in_all_buckets_from_its_own_on() {
        let times = Histogram::default();
        for us in [0, 100, 101, 7_000, 10_000_001] {
            times.count(Duration::from_micros(us));
        }
        let text = times.text("a_seconds", "Times.");
        for line in [
            "# TYPE a_seconds histogram",
            "a_seconds_bucket{le=\"0.0001\"} 2",
            "a_seconds_bucket{le=\"0.0005\"} 3",
            "a_seconds_bucket{le=\"0.005\"} 3",
            "a_seconds_bucket{le=\"0.01\"} 4",
            "a_seconds_bucket{le=\"10\"} 4",
            "a_seconds_bucket{le=\"+Inf\"} 5",
            "a_seconds_sum 10.007202",
            "a_seconds_count 5",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        assert_eq!(times.total(), 5);
    }

    #[test]
    fn bounds_are_what_they_are_called() {
        for (bound, us) in BOUNDS {
            let seconds: f64 = bound.parse().unwrap();
            assert_eq!((seconds * 1e6).round() as u64, us, "{bound}");
        }
    }
}
