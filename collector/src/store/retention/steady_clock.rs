//! Whether our own wall clock can be believed when it says how old events are.
//!
//! A clock that jumps a year ahead would make everything too old, and retention would empty the
//! store. So after a jump nothing is removed for its age until the clock has been steady for a
//! while.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use crate::clock::now_ns;

/// By how much the wall clock may move against the boot clock between two looks.
const MOVED_MAX: Duration = Duration::from_secs(60);
/// How long it must be steady, as a part of the configured age.
const STEADY_PART: u32 = 10;
/// Longest time for which it must be steady, whatever age is configured.
const STEADY_MAX: Duration = Duration::from_secs(3600);

/// A moment by two clocks: one that can be set, and one that cannot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    /// `CLOCK_REALTIME`, in ns since 1970.
    pub real_ns: u64,
    /// `CLOCK_BOOTTIME`, in ns since the start of the machine.
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

    /// How far the first clock is ahead of the second, in ns; constant while it is not set.
    fn ahead(self) -> i128 {
        i128::from(self.real_ns) - i128::from(self.boot_ns)
    }
}

/// What earlier looks at the clock found.
#[derive(Debug, Default)]
pub(super) struct SteadyClock {
    last: Option<Now>,
    /// Since when it has not been set, in ns of `CLOCK_BOOTTIME`.
    since_ns: u64,
    /// The notice that it was set was made.
    is_reported: bool,
}

/// What a look at the clock found.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ClockLook {
    /// Whether ages can be computed from it now.
    pub(super) is_steady: bool,
    /// A notice for the operator.
    pub(super) notice: Option<String>,
}

impl SteadyClock {
    /// Looks whether the clock was set since the last look, and whether it has been steady for long
    /// enough to remove what is `age` old.
    pub(super) fn look(&mut self, now: Now, age: Duration) -> ClockLook {
        let wait = (age / STEADY_PART).min(STEADY_MAX);
        let Some(last) = self.last.replace(now) else {
            self.since_ns = now.boot_ns;
            return ClockLook {
                is_steady: false,
                notice: None,
            };
        };
        let moved = u64::try_from((now.ahead() - last.ahead()).unsigned_abs());
        let moved = Duration::from_nanos(moved.unwrap_or(u64::MAX));
        if moved > MOVED_MAX {
            self.since_ns = now.boot_ns;
            let is_reported = std::mem::replace(&mut self.is_reported, true);
            let text = || {
                format!(
                    "the wall clock was set: it moved by {} s; nothing is removed for its age \
                     (--keep-age) before it has been steady for {} s",
                    moved.as_secs(),
                    wait.as_secs_f64()
                )
            };
            return ClockLook {
                is_steady: false,
                notice: (!is_reported).then(text),
            };
        }
        let is_steady = Duration::from_nanos(now.boot_ns.saturating_sub(self.since_ns)) >= wait;
        self.is_reported &= !is_steady;
        ClockLook {
            is_steady,
            notice: None,
        }
    }
}
