//! A clock that its user sets.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A clock that shows what it was set to last.
#[derive(Debug, Clone)]
pub struct SetClock {
    zero: Instant,
    nanoseconds: Arc<AtomicU64>,
}

impl SetClock {
    /// One that shows 0.
    #[must_use]
    pub fn new() -> Self {
        Self {
            zero: Instant::now(),
            nanoseconds: Arc::default(),
        }
    }

    /// What it shows.
    #[must_use]
    pub fn now(&self) -> Duration {
        // One thread uses it; no other memory depends on it.
        Duration::from_nanos(self.nanoseconds.load(Ordering::Relaxed))
    }

    /// Sets it.
    pub fn set(&self, now: Duration) {
        let nanoseconds = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
        self.nanoseconds.store(nanoseconds, Ordering::Relaxed);
    }

    /// The moment at which it shows this.
    #[must_use]
    pub fn at(&self, shown: Duration) -> Instant {
        self.zero + shown
    }

    /// What it shows at a moment.
    #[must_use]
    pub fn shown_at(&self, moment: Instant) -> Duration {
        moment.saturating_duration_since(self.zero)
    }
}

impl Default for SetClock {
    fn default() -> Self {
        Self::new()
    }
}
