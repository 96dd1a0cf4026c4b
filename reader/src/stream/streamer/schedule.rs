//! When a streamer does what it does from time to time.

use std::time::{Duration, Instant};

/// How often the streamer looks for new sessions.
pub(super) const SCAN_EVERY: Duration = Duration::from_millis(10);
/// How often the status of each session's stream is written.
const STATUS_EVERY: Duration = Duration::from_secs(1);
/// How often counters are sent.
const COUNTERS_EVERY: Duration = Duration::from_secs(1);

/// When each of these things was done last.
pub(super) struct Schedule {
    scanned_at: Option<Instant>,
    status_at: Option<Instant>,
    counted_at: Instant,
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
            scanned_at: None,
            status_at: None,
            counted_at: Instant::now(),
        }
    }

    /// Whether to look for new sessions, which then counts as done.
    pub(super) fn scan(&mut self) -> Scan {
        match self.scanned_at {
            Some(at) if at.elapsed() < SCAN_EVERY => Scan::NotYet,
            before => {
                self.scanned_at = Some(Instant::now());
                match before {
                    None => Scan::First,
                    Some(_) => Scan::Again,
                }
            }
        }
    }

    /// Whether to write the status of each session, which then counts as done.
    pub(super) fn is_status_due(&mut self) -> bool {
        let is_due = self.status_at.is_none_or(|at| at.elapsed() >= STATUS_EVERY);
        if is_due {
            self.status_at = Some(Instant::now());
        }
        is_due
    }

    /// Whether to send counters, which then counts as done.
    pub(super) fn are_counters_due(&mut self) -> bool {
        let is_due = self.counted_at.elapsed() >= COUNTERS_EVERY;
        if is_due {
            self.counted_at = Instant::now();
        }
        is_due
    }
}
