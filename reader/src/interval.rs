//! Things that a pass does from time to time.

use std::time::{Duration, Instant};

/// How often a recorder or streamer looks for new sessions.
pub(crate) const SCAN_EVERY: Duration = Duration::from_millis(10);
/// How often it takes counters while sessions run: one that is killed leaves none older.
pub(crate) const COUNTERS_EVERY: Duration = Duration::from_secs(1);

/// When something was done last.
#[derive(Debug, Default)]
pub(crate) struct Interval(Option<Instant>);

impl Interval {
    /// An interval that is over: what it times is due at once.
    pub(crate) const fn due() -> Self {
        Self(None)
    }

    /// An interval that begins now.
    pub(crate) fn begun() -> Self {
        Self(Some(Instant::now()))
    }

    /// Whether it was done at least once.
    pub(crate) const fn was_done(&self) -> bool {
        self.0.is_some()
    }

    /// Whether it was not done for this long.
    pub(crate) fn is_due(&self, every: Duration) -> bool {
        self.0.is_none_or(|at| at.elapsed() >= every)
    }

    /// Notes that it is done now.
    pub(crate) fn done(&mut self) {
        self.0 = Some(Instant::now());
    }

    /// Whether to do it now, which then counts as done.
    pub(crate) fn take_due(&mut self, every: Duration) -> bool {
        let is_due = self.is_due(every);
        if is_due {
            self.done();
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_done_is_due_again_after_its_interval() {
        let hour = Duration::from_secs(3600);
        let mut interval = Interval::due();
        assert!(!interval.was_done() && interval.is_due(hour));
        assert!(interval.take_due(hour) && !interval.take_due(hour));
        assert!(interval.was_done() && interval.take_due(Duration::ZERO));
        assert!(!Interval::begun().is_due(hour));
    }
}
