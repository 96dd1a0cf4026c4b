//! Refusals by their reason.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use ringmark_format::stream::refusal;

/// Codes of refusals and the values of their label.
const REASONS: [(u32, &str); 6] = [
    (refusal::DENIED, "denied"),
    (refusal::VERSION, "version"),
    (refusal::PROTOCOL, "protocol"),
    (refusal::FOREIGN, "foreign"),
    (refusal::STORE, "store"),
    (refusal::BUSY, "busy"),
];

/// How often each reason was given.
#[derive(Debug, Default)]
pub(crate) struct Refusals([AtomicU64; REASONS.len()]);

impl Refusals {
    /// Counts a refusal with this code.
    pub(crate) fn count(&self, code: u32) {
        if let Some(index) = REASONS.iter().position(|(known, _)| *known == code) {
            self.0[index].fetch_add(1, Relaxed);
        }
    }

    /// All of them in Prometheus' text format.
    pub(crate) fn text(&self) -> String {
        let name = "ringmark_collector_refusals_total";
        let help = "Connections and sessions refused, by reason.";
        let mut text = format!("# HELP {name} {help}\n# TYPE {name} counter\n");
        for ((_, reason), count) in REASONS.iter().zip(&self.0) {
            let count = count.load(Relaxed);
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
        for code in [refusal::BUSY, refusal::BUSY, refusal::DENIED, 0, 99] {
            refusals.count(code);
        }
        let text = refusals.text();
        for line in [
            "ringmark_collector_refusals_total{reason=\"busy\"} 2",
            "ringmark_collector_refusals_total{reason=\"denied\"} 1",
            "ringmark_collector_refusals_total{reason=\"store\"} 0",
        ] {
            assert!(text.lines().any(|found| found == line), "{text}");
        }
    }
}
