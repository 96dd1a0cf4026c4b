//! Our own clock: whether what it says of ages can be believed.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use crate::host_clock::now_ns;

/// By how much it may move between two looks.
const MOVED_MAX: Duration = Duration::from_secs(60);
/// How long it must have stood still: this part of the age that is asked for, and no longer than
/// this.
const STEADY: (u32, Duration) = (10, Duration::from_secs(3600));

/// A moment, by two clocks: one that people set, and one that cannot be set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    /// `CLOCK_REALTIME`, ns since 1970.
    pub real_ns: u64,
    /// `CLOCK_BOOTTIME`, ns.
    pub boot_ns: u64,
}

impl Now {
    /// This moment.
    #[must_use]
    pub fn read() -> Self {
        let boot = clock_gettime(ClockId::Boottime);
        let ns = i128::from(boot.tv_sec) * 1_000_000_000 + i128::from(boot.tv_nsec);
        Self {
            real_ns: now_ns(),
            boot_ns: u64::try_from(ns).unwrap_or(0),
        }
    }

    /// How the first is ahead of the second.
    fn ahead(self) -> i128 {
        i128::from(self.real_ns) - i128::from(self.boot_ns)
    }
}

/// What was seen of the clock.
#[derive(Debug, Default)]
pub(super) struct Steady {
    last: Option<Now>,
    /// Since when it has not been set, ns of `CLOCK_BOOTTIME`.
    since_ns: u64,
    /// Told that it was.
    is_told: bool,
}

impl Steady {
    /// Whether an age can be told from it now; what people should know of it.
    pub(super) fn look(&mut self, now: Now, age: Duration) -> (bool, Option<String>) {
        let (part, most) = STEADY;
        let wait = (age / part).min(most);
        let Some(last) = self.last.replace(now) else {
            self.since_ns = now.boot_ns;
            return (false, None);
        };
        let moved = u64::try_from((now.ahead() - last.ahead()).unsigned_abs());
        let moved = Duration::from_nanos(moved.unwrap_or(u64::MAX));
        if moved > MOVED_MAX {
            self.since_ns = now.boot_ns;
            let is_told = std::mem::replace(&mut self.is_told, true);
            let text = || {
                format!(
                    "the wall clock was set: it moved by {} s; nothing is removed for its age \
                     (--keep-age) before it has been steady for {} s",
                    moved.as_secs(),
                    wait.as_secs_f64()
                )
            };
            return (false, (!is_told).then(text));
        }
        let is_steady = Duration::from_nanos(now.boot_ns.saturating_sub(self.since_ns)) >= wait;
        self.is_told &= !is_steady;
        (is_steady, None)
    }
}
