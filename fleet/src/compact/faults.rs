//! Where a test ends the process, and how wrong it has the clock.

use std::cell::Cell;

/// By how much a test has the clock of this machine ahead.
pub(super) fn clock_ahead_ns() -> i64 {
    let ahead = || {
        std::env::var("RINGMARK_FLEET_CLOCK_AHEAD_S")
            .ok()?
            .parse::<i64>()
            .ok()
    };
    let ahead = if cfg!(debug_assertions) {
        ahead()
    } else {
        None
    };
    ahead.map_or(0, |ahead| ahead.saturating_mul(1_000_000_000))
}

/// The step of a change at which a test ends the process, by count.
pub(super) struct Faults(Cell<Option<u64>>);

impl Faults {
    pub(super) fn of_environment() -> Self {
        let at = || std::env::var("RINGMARK_FLEET_ABORT_AT").ok()?.parse().ok();
        let at = if cfg!(debug_assertions) { at() } else { None };
        Self(Cell::new(at))
    }

    pub(super) fn pass(&self) {
        match self.0.get() {
            Some(0) => std::process::abort(),
            left => self.0.set(left.map(|left| left - 1)),
        }
    }
}
