//! When a streamer does what it does from time to time.

use std::time::Duration;

use crate::interval::{COUNTERS_EVERY, Interval, SCAN_EVERY};

/// How often the status of each session's stream is written.
const STATUS_EVERY: Duration = Duration::from_secs(1);

/// When each of these things was done last.
pub(super) struct Schedule {
    scans: Interval,
    status: Interval,
    counts: Interval,
}

/// Whether the streamer looks for sessions now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scan {
    /// No scan is due yet.
    NotYet,
    /// The first scan is due.
    First,
    /// A later scan is due.
    Again,
}

impl Schedule {
    /// Nothing was done yet; counters are due after their interval.
    pub(super) fn new() -> Self {
        Self {
            scans: Interval::due(),
            status: Interval::due(),
            counts: Interval::begun(),
        }
    }

    /// Whether to look for new sessions, which then counts as done.
    pub(super) fn scan(&mut self) -> Scan {
        let is_first = !self.scans.was_done();
        match self.scans.take_due(SCAN_EVERY) {
            true if is_first => Scan::First,
            true => Scan::Again,
            false => Scan::NotYet,
        }
    }

    /// Whether to write the status of each session, which then counts as done.
    pub(super) fn is_status_due(&mut self) -> bool {
        self.status.take_due(STATUS_EVERY)
    }

    /// Whether to send counters, which then counts as done.
    pub(super) fn are_counters_due(&mut self) -> bool {
        self.counts.take_due(COUNTERS_EVERY)
    }
}
