//! What sending took, from its beginning to its end.

use std::time::{Duration, Instant};

use crate::thread_cpu_seconds;

/// What sending took.
#[derive(Debug, Clone, Copy)]
pub struct Sent {
    pub(super) time: Duration,
    /// CPU time of the thread that sent; none if another program did.
    pub(super) cpu_seconds: Option<f64>,
}

/// When sending began.
#[derive(Debug, Clone, Copy)]
pub(super) struct Begun {
    at: Instant,
    cpu_seconds: f64,
}

impl Begun {
    pub(super) fn now() -> Self {
        Self {
            at: Instant::now(),
            cpu_seconds: thread_cpu_seconds(),
        }
    }

    pub(super) fn ended(self) -> Sent {
        Sent {
            time: self.at.elapsed(),
            cpu_seconds: Some(thread_cpu_seconds() - self.cpu_seconds),
        }
    }
}
