//! The collector's own clock, or in models one that is set.

use std::time::{Instant, SystemTime};

#[cfg(feature = "models")]
use crate::set_clock::SetClock;

/// `CLOCK_REALTIME` in ns since 1970.
pub(crate) fn now_ns() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    now.map_or(0, |now| u64::try_from(now.as_nanos()).unwrap_or(u64::MAX))
}

/// Where time comes from.
#[derive(Debug, Clone, Default)]
pub(crate) enum Ticking {
    /// The clock of the machine.
    #[default]
    Real,
    /// A clock that is set.
    #[cfg(feature = "models")]
    Set(SetClock),
}

impl Ticking {
    pub(crate) fn now(&self) -> Instant {
        match self {
            Self::Real => Instant::now(),
            #[cfg(feature = "models")]
            Self::Set(clock) => clock.at(clock.now()),
        }
    }
}
