//! Where a test ends the process.

use std::cell::Cell;

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
