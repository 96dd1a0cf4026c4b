//! Refusals by their reason.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::reason::Reason;

/// How often each reason was given.
#[derive(Debug, Default)]
pub(crate) struct Refusals([AtomicU64; Reason::ALL.len()]);

impl Refusals {
    /// Counts a refusal.
    pub(crate) fn count(&self, reason: Reason) {
        if let Some(count) = self.0.get(reason as usize) {
            count.fetch_add(1, Relaxed);
        }
    }

    /// How many there were, whatever the reason.
    pub(crate) fn total(&self) -> u64 {
        self.0.iter().map(|count| count.load(Relaxed)).sum()
    }

    /// All of them in Prometheus' text format.
    pub(crate) fn text(&self) -> String {
        let name = "ringmark_collector_refusals_total";
        let help = "Connections and sessions refused, by reason.";
        let mut text = format!("# HELP {name} {help}\n# TYPE {name} counter\n");
        for (reason, count) in Reason::ALL.iter().zip(&self.0) {
            let (reason, count) = (reason.name(), count.load(Relaxed));
            let _ = writeln!(text, "{name}{{reason=\"{reason}\"}} {count}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_is_counted_alone() {
        let refusals = Refusals::default();
        for reason in [Reason::Connections, Reason::Connections, Reason::NoToken] {
            refusals.count(reason);
        }
        let text = refusals.text();
        for line in [
            "ringmark_collector_refusals_total{reason=\"connections\"} 2",
            "ringmark_collector_refusals_total{reason=\"no_token\"} 1",
            "ringmark_collector_refusals_total{reason=\"store\"} 0",
        ] {
            assert!(text.lines().any(|found| found == line), "{text}");
        }
    }
}
