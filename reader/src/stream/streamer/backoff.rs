//! How long to wait before a collector is tried again.
//!
//! The wait doubles from attempt to attempt, and begins anew only once a collector has taken pages
//! for good. A greeting is no progress: a collector may greet each time, and then have no room.

use std::time::Duration;

/// Longest wait after a connection was lost, or not made.
const LOST_MAX: Duration = Duration::from_secs(5);
/// Longest wait after the collector refused for now.
const REFUSED_MAX: Duration = Duration::from_secs(60);
/// How many times longer a refusal is waited for than a loss, at first.
const REFUSED_TIMES: u32 = 10;

/// How the last connection, or the attempt to make one, ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// It was lost, or refused for good.
    Lost,
    /// The collector has no room or no time now.
    RefusedForNow,
}

impl Ended {
    /// The longest wait after such an end.
    pub const fn longest(self) -> Duration {
        match self {
            Self::Lost => LOST_MAX,
            Self::RefusedForNow => REFUSED_MAX,
        }
    }
}

/// The waits after losses and after refusals.
#[derive(Debug)]
pub struct Backoff {
    first: Duration,
    after_loss: Duration,
    after_refusal: Duration,
}

impl Backoff {
    /// A backoff that begins with `first`.
    pub fn new(first: Duration) -> Self {
        Self {
            first,
            after_loss: first,
            after_refusal: first * REFUSED_TIMES,
        }
    }

    /// The wait before the next attempt, without noise.
    pub fn next(&mut self, ended: Ended) -> Duration {
        let wait = match ended {
            Ended::Lost => &mut self.after_loss,
            Ended::RefusedForNow => &mut self.after_refusal,
        };
        let longer = (*wait * 2).min(ended.longest());
        std::mem::replace(wait, longer)
    }

    /// Begins anew: the collector has taken pages for good on a connection that has `lasted` so
    /// long. One that takes some and then refuses is tried no sooner.
    pub fn progressed(&mut self, lasted: Duration) {
        self.after_loss = self.first;
        if lasted >= REFUSED_MAX {
            self.after_refusal = self.first * REFUSED_TIMES;
        }
    }
}

/// Half to one and a half of `wait`, as this noise says.
#[must_use]
pub fn jittered(wait: Duration, noise: u64) -> Duration {
    let part = noise.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 54;
    wait / 2 + wait * part as u32 / 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(backoff: &mut Backoff, ended: Ended, times: usize) -> Vec<Duration> {
        (0..times).map(|_| backoff.next(ended)).collect()
    }

    #[test]
    fn waits_double_up_to_their_limits() {
        let mut backoff = Backoff::new(Duration::from_millis(100));
        let lost = waits(&mut backoff, Ended::Lost, 10);
        assert_eq!(lost[..3], [100, 200, 400].map(Duration::from_millis));
        assert_eq!(lost[9], LOST_MAX);
        let refused = waits(&mut backoff, Ended::RefusedForNow, 10);
        assert_eq!(refused[..3], [1, 2, 4].map(Duration::from_secs));
        assert_eq!(refused[9], REFUSED_MAX);
    }

    #[test]
    fn only_progress_begins_anew_and_after_refusals_only_if_it_lasts() {
        let first = Duration::from_millis(100);
        let mut backoff = Backoff::new(first);
        let _ = waits(&mut backoff, Ended::Lost, 10);
        let _ = waits(&mut backoff, Ended::RefusedForNow, 10);
        backoff.progressed(Duration::from_secs(1));
        assert_eq!(backoff.next(Ended::Lost), first);
        assert_eq!(backoff.next(Ended::RefusedForNow), REFUSED_MAX);
        backoff.progressed(REFUSED_MAX);
        assert_eq!(backoff.next(Ended::RefusedForNow), first * REFUSED_TIMES);
    }
}
