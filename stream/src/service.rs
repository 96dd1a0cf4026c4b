//! What the service manager hears of a command that runs on: that it is ready, alive, and about to
//! end. Without a service manager nothing is sent.

use std::time::{Duration, Instant};

use sd_notify::NotifyState;

/// The service manager's view of this process.
#[derive(Debug)]
pub(crate) struct Service {
    /// After so long without a sign of life the service manager ends us; `None`: it does not watch.
    watchdog: Option<Duration>,
    next: Instant,
}

impl Service {
    /// A service that was started, and is not ready.
    pub(crate) fn started() -> Self {
        Self {
            watchdog: sd_notify::watchdog_enabled(),
            next: Instant::now(),
        }
    }

    /// Reports that it is ready.
    pub(crate) fn ready(&self) {
        tell(&[NotifyState::Ready]);
    }

    /// Reports that it is about to end.
    pub(crate) fn stopping(&self) {
        tell(&[NotifyState::Stopping]);
    }

    /// Reports that it is alive, if that is due and `longest` is short: the time for which the
    /// oldest call to the disk has not returned.
    pub(crate) fn alive(&mut self, longest: Duration) {
        let Some(watchdog) = self.watchdog else {
            return;
        };
        let now = Instant::now();
        if now >= self.next && longest < watchdog / 2 {
            self.next = now + watchdog / 4;
            tell(&[NotifyState::Watchdog]);
        }
    }
}

/// A service manager that does not hear cannot be helped.
fn tell(state: &[NotifyState<'_>]) {
    let _ = sd_notify::notify(state);
}
