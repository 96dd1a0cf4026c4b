//! How long to wait between two passes: not at all while rings fill fast, 10 ms when all is quiet.
//!
//! Programs do not wake their readers, so a reader polls. The wait follows the fullest ring that a
//! pass found: a reader that comes when a fifth of a ring is sealed has four fifths of margin.

use std::time::Duration;

use crate::sessions::session::{Session, wait_for_end};
use crate::share::Share1024;

/// Longest wait: a reader notices everything within it.
const LONGEST: Duration = Duration::from_millis(10);
/// Shorter waits are not worth the wake-up from a system call: the reader only yields.
const SHORTEST: Duration = Duration::from_micros(60);
/// The part of the fullest ring that a pass should find sealed at most.
const TARGET: Share1024 = Share1024(192);

/// The wait before the next pass.
#[derive(Debug)]
pub(crate) struct Pace {
    wait: Duration,
    /// Largest part found sealed since the last wait.
    fullest: Share1024,
}

impl Pace {
    pub(crate) fn new() -> Self {
        Self {
            wait: Duration::from_millis(1),
            fullest: Share1024::default(),
        }
    }

    /// Takes note of the part of a session's fullest ring that a pass found sealed.
    pub(crate) fn saw(&mut self, sealed: Share1024) {
        self.fullest = self.fullest.max(sealed);
    }

    /// Waits before the next pass; a process of these sessions that ends, or a signal, ends the
    /// wait.
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
        let Share1024(fullest) = std::mem::take(&mut self.fullest);
        let Share1024(target) = TARGET;
        self.wait = match fullest {
            f if f > 2 * target => self.wait / 8,
            f if f > target => self.wait / 2,
            f if f > target / 2 => self.wait,
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
            pace.saw(Share1024(1024));
            pace.adapt();
        }
        assert!(pace.wait < SHORTEST);
        (0..20).for_each(|_| pace.adapt());
        assert_eq!(pace.wait, LONGEST);
    }
}
