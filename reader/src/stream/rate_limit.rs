//! How fast a streamer may send.

use std::time::Instant;

/// A bound on the bytes that are sent in a second.
#[derive(Debug)]
pub struct RateLimit {
    /// `None`: there is no bound.
    bytes_per_second: Option<u64>,
    /// Bytes that may be sent now; less than 0: the last batch took more.
    left: f64,
    /// When that was known last.
    at: Instant,
    /// What the present connection had sent then.
    seen: u64,
}

impl RateLimit {
    /// Nothing was sent yet.
    pub(super) fn new(bytes_per_second: Option<u64>) -> Self {
        Self::new_at(bytes_per_second, Instant::now())
    }

    /// The same at this moment.
    #[must_use]
    pub fn new_at(bytes_per_second: Option<u64>, now: Instant) -> Self {
        Self {
            bytes_per_second,
            left: 0.0,
            at: now,
            seen: 0,
        }
    }

    /// Whether another batch may be sent on a connection over which this much was sent.
    pub(super) fn allows(&mut self, sent: u64) -> bool {
        self.allows_at(sent, Instant::now())
    }

    /// The same at this moment.
    pub fn allows_at(&mut self, sent: u64, now: Instant) -> bool {
        let Some(rate) = self.bytes_per_second else {
            return true;
        };
        let rate = rate as f64;
        // A new connection begins at 0.
        let new = sent.checked_sub(self.seen).unwrap_or(sent);
        let earned = rate * now.saturating_duration_since(self.at).as_secs_f64();
        // What was not used for long may be used in one second.
        self.left = (self.left - new as f64 + earned).min(rate);
        (self.seen, self.at) = (sent, now);
        self.left > 0.0
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn no_more_is_sent_than_may_be() {
        let mut limit = RateLimit::new(Some(1000));
        let begun = limit.at;
        let at = |ms: u64| begun + Duration::from_millis(ms);
        assert!(!limit.allows_at(0, at(0)), "nothing is earned yet");
        assert!(limit.allows_at(0, at(500)));
        assert!(!limit.allows_at(700, at(600)), "700 were sent, 600 earned");
        assert!(limit.allows_at(700, at(900)));
        assert!(!limit.allows_at(500, at(901)), "a new connection");
        assert!(limit.allows_at(500, at(100_000)));
        assert!(!limit.allows_at(1600, at(100_000)), "a second's worth");
        let mut free = RateLimit::new(None);
        assert!(free.allows_at(u64::MAX, begun));
    }
}
