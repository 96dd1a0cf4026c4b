//! How much CPU time looking at events may take.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Part of a core, in thousandths.
const SHARE: u32 = 10;
/// Bytes of sealed pages that the first sample takes.
const FIRST_BYTES: u64 = 256 << 10;
/// Bytes that a sample takes at most.
const BYTES_MAX: u64 = 32 << 20;

/// What may be spent, and how many bytes that has been enough for.
#[derive(Debug)]
pub(crate) struct Budget {
    /// What was saved, in ns; below 0 the last sample took more than its share.
    spare_ns: i64,
    bytes: u64,
}

impl Budget {
    /// A budget that allows a sample at once.
    pub(crate) const fn new() -> Self {
        Self {
            spare_ns: 0,
            bytes: FIRST_BYTES,
        }
    }

    /// Bytes that the next sample may take, after this time has passed since the last call; `None`:
    /// none, an earlier sample is not paid for.
    pub(crate) fn after(&mut self, passed: Duration) -> Option<u64> {
        let share_ns = share_ns(passed);
        self.spare_ns = self.spare_ns.saturating_add(share_ns).min(share_ns);
        (self.spare_ns >= 0).then_some(self.bytes)
    }

    /// Takes what a sample has cost, and lets the next one take more or less.
    pub(crate) fn spend(&mut self, cost: Duration) {
        let cost_ns = i64::try_from(cost.as_nanos()).unwrap_or(i64::MAX);
        let share_ns = self.spare_ns;
        self.bytes = match cost_ns {
            _ if cost_ns > share_ns => self.bytes / 2,
            _ if cost_ns < share_ns / 2 => (self.bytes * 2).clamp(4096, BYTES_MAX),
            _ => self.bytes,
        };
        self.spare_ns = self.spare_ns.saturating_sub(cost_ns);
    }
}

fn share_ns(passed: Duration) -> i64 {
    i64::try_from((passed * SHARE / 1000).as_nanos()).unwrap_or(i64::MAX)
}

/// CPU time of this thread.
pub(crate) fn cpu_time() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn what_costs_too_much_is_done_less_often_and_with_less() {
        let mut budget = Budget::new();
        assert_eq!(budget.after(SECOND), Some(FIRST_BYTES));
        budget.spend(Duration::from_millis(35));
        assert_eq!(budget.after(SECOND), None, "25 ms are owed");
        assert_eq!(budget.after(SECOND), None);
        assert_eq!(budget.after(SECOND), Some(FIRST_BYTES / 2));
    }

    #[test]
    fn what_costs_little_grows_to_its_limit() {
        let mut budget = Budget::new();
        for _ in 0..20 {
            let _ = budget.after(SECOND);
            budget.spend(Duration::from_micros(10));
        }
        assert_eq!(budget.after(SECOND), Some(BYTES_MAX));
        // Nothing is saved up for one long sample.
        for _ in 0..100 {
            let _ = budget.after(SECOND);
        }
        budget.spend(Duration::from_millis(12));
        assert_eq!(budget.after(Duration::ZERO), None);
    }

    #[test]
    fn this_thread_has_used_some_time() {
        let begin = cpu_time();
        while cpu_time() == begin {}
        assert!(cpu_time() > begin);
    }
}
