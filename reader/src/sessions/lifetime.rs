//! Whether a session has ended, and whether it was read to its end.

use std::time::{Duration, Instant};

use crate::sessions::session::Session;

/// How often a process is looked at thoroughly: it may have become another program by `exec`.
const LIVENESS_EVERY: Duration = Duration::from_millis(200);
/// How long after its close a session must be quiet to count as read to its end.
const QUIET_AFTER_CLOSE: Duration = Duration::from_millis(5);

/// What a reader knows of the end of one session.
#[derive(Debug)]
pub(crate) struct Lifetime {
    closed_at: Option<Instant>,
    looked_at: Instant,
}

impl Lifetime {
    /// The lifetime of a session that was opened just now.
    pub(crate) fn new() -> Self {
        Self {
            closed_at: None,
            looked_at: Instant::now(),
        }
    }

    /// Whether no more events will come. It is to be asked before a pass, so that the pass sees all
    /// events. The last wait has found out whether the process ended, if it can be seen.
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

    /// Whether an ended session was read to its end by the pass that moved `pages`. After a close,
    /// threads may still be inside an event, so the session must have been quiet for a while.
    pub(crate) fn is_quiet(&self, session: &Session, pages: u64) -> bool {
        let settled = self
            .closed_at
            .is_some_and(|at| at.elapsed() >= QUIET_AFTER_CLOSE);
        session.process_ended() || (pages == 0 && settled)
    }
}
