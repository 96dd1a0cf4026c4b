//! Whether a session that is read has ended, and whether it was read to its end.

use std::time::{Duration, Instant};

use crate::sessions::session::Session;

/// How often a quiet session's process is looked at thoroughly (has it become another program?).
const LIVENESS_EVERY: Duration = Duration::from_millis(200);
/// How long a closed session must be quiet before it counts as read to its end.
const QUIET_AFTER_CLOSE: Duration = Duration::from_millis(5);

/// What a reader knows of the end of one session.
#[derive(Debug)]
pub(crate) struct Lifetime {
    closed_at: Option<Instant>,
    looked_at: Instant,
}

impl Lifetime {
    pub(crate) fn new() -> Self {
        Self {
            closed_at: None,
            looked_at: Instant::now(),
        }
    }

    /// Whether no more events will come. Asked before a pass, so that the pass sees all of them.
    /// Whether a process ended is known from the wait before, where it can be seen.
    pub(crate) fn has_ended(&mut self, session: &Session) -> bool {
        if session.ring().closed() && self.closed_at.is_none() {
            self.closed_at = Some(Instant::now());
        }
        if self.looked_at.elapsed() >= LIVENESS_EVERY {
            self.looked_at = Instant::now();
            session.look_thoroughly();
        }
        session.has_ended_by_now()
    }

    /// Whether an ended session was read to its end by the pass that moved `pages`: threads of a
    /// closed session may still be inside an event.
    pub(crate) fn is_quiet(&self, session: &Session, pages: u64) -> bool {
        let settled = self
            .closed_at
            .is_some_and(|at| at.elapsed() >= QUIET_AFTER_CLOSE);
        session.process_ended() || (pages == 0 && settled)
    }
}
