//! How long to wait between two passes: not at all while rings fill fast, 10 ms when all is quiet.

use std::time::Duration;

use crate::sessions::session::{Session, wait_for_end};

/// Longest wait; a reader notices everything within it.
const LONGEST: Duration = Duration::from_millis(10);
/// Below this a wait is not worth a system call's wake-up.
const SHORTEST: Duration = Duration::from_micros(60);
/// Part of a ring, in 1/1024, that should be found sealed at most.
const AIM: u32 = 192;

/// The wait before the next pass.
#[derive(Debug)]
pub(crate) struct Pace {
    wait: Duration,
    fullest: u32,
}

impl Pace {
    pub(crate) fn new() -> Self {
        Self {
            wait: Duration::from_millis(1),
            fullest: 0,
        }
    }

    /// This part of the pages of a session's fullest ring was found sealed, in 1/1024.
    pub(crate) fn saw(&mut self, fill: u32) {
        self.fullest = self.fullest.max(fill);
    }

    /// Waits, at most until a process of these sessions ends or a signal arrives.
    pub(crate) fn wait<'a>(&mut self, sessions: impl Iterator<Item = &'a Session>) {
        self.adapt();
        let mut wait = self.wait;
        if wait < SHORTEST {
            std::thread::yield_now();
            wait = Duration::ZERO;
        }
        wait_for_end(sessions, wait);
    }

    fn adapt(&mut self) {
        let fullest = std::mem::take(&mut self.fullest);
        self.wait = match fullest {
            f if f > 2 * AIM => self.wait / 8,
            f if f > AIM => self.wait / 2,
            f if f > AIM / 2 => self.wait,
            _ => (self.wait * 2 + SHORTEST / 4).min(LONGEST),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_rings_end_the_waiting_and_quiet_ones_lengthen_it() {
        let mut pace = Pace::new();
        for _ in 0..3 {
            pace.saw(1024);
            pace.adapt();
        }
        assert!(pace.wait < SHORTEST);
        (0..20).for_each(|_| pace.adapt());
        assert_eq!(pace.wait, LONGEST);
    }
}
