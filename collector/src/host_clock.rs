//! Estimates a host's clock offset from PING/PONG round trips.
//!
//! The host's clock was read some time between PING and PONG: half the round trip is the error of
//! the estimate. Only the collector's own clock and counters are believed; a host can at most lie
//! about its own time.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use ringmark_format::stream::{HOST_DRIFT_PPM, HostClock, PING_EVERY_MS, Ping, Pong};

use crate::clock::now_ns;

/// Most PINGs whose PONG is waited for.
const OPEN_MAX: usize = 16;
/// By how much our wall clock may differ from the steady clock during a round trip: it was set if
/// it does by more.
const STEADY: Duration = Duration::from_millis(1);

/// A PONG with a number that no PING had.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("PONG answers no PING of ours")]
pub(crate) struct UnknownPong;

/// The PINGs of one connection.
#[derive(Debug, Default)]
pub(crate) struct Pings {
    /// Number of the last PING.
    sent: u64,
    /// Those whose PONG has not come, the oldest first.
    open: VecDeque<SentPing>,
}

#[derive(Debug, Clone, Copy)]
struct SentPing {
    ping: Ping,
    at: Instant,
}

impl Pings {
    /// The next PING. It is to be sent at once: its round trip begins here.
    pub(crate) fn next(&mut self) -> Ping {
        self.sent += 1;
        let ping = Ping {
            number: self.sent,
            real_ns: now_ns(),
        };
        let at = Instant::now();
        self.open.push_back(SentPing { ping, at });
        if self.open.len() > OPEN_MAX {
            self.open.pop_front();
        }
        ping
    }

    /// Number of PINGs that were sent.
    pub(crate) fn sent(&self) -> u64 {
        self.sent
    }

    /// How long to wait before the next PING: short at first, so that a new host's clock is soon
    /// known well.
    pub(crate) fn pause(&self) -> Duration {
        let early = 50u64 << (2 * self.sent.saturating_sub(1)).min(16);
        Duration::from_millis(early.min(PING_EVERY_MS.into()))
    }

    /// Measures the host's clock by a PONG that has come now. `None`: its PING is no longer waited
    /// for, or our own clock was set in between. What the PONG says about our clock is not used.
    ///
    /// # Errors
    /// No such PING was sent.
    pub(crate) fn answered(&mut self, pong: &Pong) -> Result<Option<HostClock>, UnknownPong> {
        if pong.number == 0 || pong.number > self.sent {
            return Err(UnknownPong);
        }
        while let Some(sent) = self.open.pop_front() {
            if sent.ping.number == pong.number {
                return Ok(sent.measured(pong, now_ns()));
            }
            if sent.ping.number > pong.number {
                self.open.push_front(sent);
                break;
            }
        }
        Ok(None)
    }
}

impl SentPing {
    fn measured(&self, pong: &Pong, now: u64) -> Option<HostClock> {
        let took = self.at.elapsed();
        let by_wall = Duration::from_nanos(now.checked_sub(self.ping.real_ns)?);
        if by_wall.abs_diff(took) > STEADY {
            // Our own clock was set during the round trip.
            return None;
        }
        let half = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX) / 2;
        let middle = self.ping.real_ns.saturating_add(half);
        Some(HostClock {
            real_ns: middle,
            offset_ns: (pong.real_ns as i64).wrapping_sub(middle as i64),
            error_ns: half + 1,
            mono_ns: pong.mono_ns,
        })
    }
}

/// Time between stored measurements while the clocks agree, in ns.
const STORE_EVERY_NS: u64 = 10_000_000_000;
/// How many times smaller an error must be for a measurement to be stored at once.
const BETTER: u64 = 2;

/// Which measurements of a host's clock are stored with a session.
#[derive(Debug, Default)]
pub(crate) struct ClockHistory {
    /// The one that was stored last.
    last: Option<HostClock>,
    /// The one with the smallest error since.
    best: Option<HostClock>,
    /// Events came since.
    wanted: bool,
}

impl ClockHistory {
    /// The measurement that was stored last.
    pub(crate) const fn last(&self) -> Option<&HostClock> {
        self.last.as_ref()
    }

    /// Notes that events came: decoders will want the host's clock at their time.
    pub(crate) const fn want(&mut self) {
        self.wanted = true;
    }

    /// Takes note of a new measurement; returns the one that is to be stored now, if any.
    ///
    /// The first is stored, and one that is much better or contradicts the last. Otherwise the best
    /// of some time is, if events came in it.
    pub(crate) fn due(&mut self, new: HostClock) -> Option<HostClock> {
        let Some(last) = &self.last else {
            return Some(new);
        };
        if new.error_ns < last.error_ns / BETTER || !agree(last, &new) {
            return Some(new);
        }
        if self.best.is_none_or(|best| new.error_ns <= best.error_ns) {
            self.best = Some(new);
        }
        let is_time = self.wanted && new.real_ns.saturating_sub(last.real_ns) >= STORE_EVERY_NS;
        self.best.filter(|_| is_time)
    }

    /// Notes that a measurement was stored.
    pub(crate) fn stored(&mut self, clock: HostClock) {
        *self = Self {
            last: Some(clock),
            ..Self::default()
        };
    }
}

/// Whether one clock that drifts no more than real clocks do can have shown both.
fn agree(old: &HostClock, new: &HostClock) -> bool {
    let passed = new.real_ns.abs_diff(old.real_ns);
    let possible = (passed / 1_000_000 + 1)
        .saturating_mul(HOST_DRIFT_PPM.into())
        .saturating_add(old.error_ns)
        .saturating_add(new.error_ns);
    let mono = new.mono_ns.abs_diff(old.mono_ns).abs_diff(passed);
    mono <= possible && new.offset_ns.abs_diff(old.offset_ns) <= possible
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    fn clock(at_s: u64, error_ns: u64) -> HostClock {
        HostClock {
            real_ns: at_s * S,
            offset_ns: 0,
            error_ns,
            mono_ns: 7 * S + at_s * S,
        }
    }

    #[test]
    fn a_pong_is_measured_by_our_own_clock() {
        let mut pings = Pings::default();
        let pong = |number| Pong {
            number,
            // A lie about when we asked changes nothing.
            ping_real_ns: u64::MAX,
            real_ns: now_ns() + 10 * S,
            mono_ns: 5,
        };
        assert!(pings.answered(&pong(1)).is_err() && pings.answered(&pong(0)).is_err());
        let before = now_ns();
        assert_eq!((pings.next().number, pings.next().number), (1, 2));
        std::thread::sleep(Duration::from_millis(20));
        let Some(found) = pings.answered(&pong(2)).unwrap() else {
            // Our clock was moved, or the machine was too busy to tell.
            return;
        };
        assert!(found.error_ns >= 10_000_000 && found.mono_ns == 5);
        assert!(before < found.real_ns && found.real_ns < now_ns());
        assert!(found.offset_ns.abs_diff(10 * S as i64) <= found.error_ns);
        // Answered already, and one that came before it.
        assert!(pings.answered(&pong(2)).unwrap().is_none());
        assert!(pings.answered(&pong(1)).unwrap().is_none());
    }

    #[test]
    fn pings_that_nobody_answers_take_no_memory() {
        let mut pings = Pings::default();
        (0..1000).for_each(|_| _ = pings.next());
        assert_eq!(pings.open.len(), OPEN_MAX);
        assert_eq!(pings.pause(), Duration::from_millis(PING_EVERY_MS.into()));
    }

    #[test]
    fn stored_are_the_first_the_better_the_contradicting_and_one_in_ten_seconds() {
        let mut kept = ClockHistory::default();
        let mut take = |clock, wanted| {
            if wanted {
                kept.want();
            }
            let due = kept.due(clock);
            due.inspect(|due| kept.stored(*due))
        };
        assert_eq!(take(clock(1, 100), false), Some(clock(1, 100)));
        assert_eq!(take(clock(2, 90), true), None);
        assert_eq!(take(clock(3, 40), true), Some(clock(3, 40)));
        let mut moved = clock(4, 100);
        moved.offset_ns += 5_000_000;
        assert_eq!(take(moved, true), Some(moved));
        assert_eq!(take(clock(5, 100), false), Some(clock(5, 100)));
        // Without events none is needed; with events it is the best one.
        assert_eq!(take(clock(16, 80), false), None);
        assert_eq!(take(clock(17, 90), true), Some(clock(16, 80)));
    }
}
