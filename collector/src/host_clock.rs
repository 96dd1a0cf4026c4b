//! The collector's own clock, and its estimates of a host's clock offset from PING/PONG round trips.

use std::collections::VecDeque;
use std::time::{Duration, Instant, SystemTime};

use ringmark_format::stream::{HOST_DRIFT_PPM, HostClock, PING_EVERY_MS, Ping, Pong};

/// PINGs whose PONG may still come.
const OPEN_MAX: usize = 16;
/// By how much our two clocks may part during a round trip.
const STEADY: Duration = Duration::from_millis(1);

/// `CLOCK_REALTIME` in ns since 1970.
pub(crate) fn now_ns() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    now.map_or(0, |now| u64::try_from(now.as_nanos()).unwrap_or(u64::MAX))
}

/// The PINGs of one connection.
#[derive(Debug, Default)]
pub(crate) struct Pings {
    said: u64,
    open: VecDeque<SentPing>,
}

#[derive(Debug, Clone, Copy)]
struct SentPing {
    ping: Ping,
    at: Instant,
}

impl Pings {
    /// The next PING, to be sent now.
    pub(crate) fn next(&mut self) -> Ping {
        self.said += 1;
        let ping = Ping {
            number: self.said,
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
    pub(crate) fn said(&self) -> u64 {
        self.said
    }

    /// How long to wait before the one after that: a new host's clock is soon known well.
    pub(crate) fn pause(&self) -> Duration {
        let early = 50u64 << (2 * self.said.saturating_sub(1)).min(16);
        Duration::from_millis(early.min(PING_EVERY_MS.into()))
    }

    /// Measures the host's clock by a PONG that comes now, if it answers a PING that is still open.
    /// What it says of the collector's clock is not used.
    ///
    /// # Errors
    /// No such PING was sent.
    pub(crate) fn answered(&mut self, pong: &Pong) -> Result<Option<HostClock>, &'static str> {
        if pong.number == 0 || pong.number > self.said {
            return Err("PONG answers no PING of ours");
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
            // Our own clock was moved meanwhile.
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

/// The measurements of a session: what is stored, and the best one since.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    last: Option<HostClock>,
    /// The best one since.
    best: Option<HostClock>,
    /// Events came since.
    wanted: bool,
}

/// Time between stored measurements while clocks agree.
const EVERY_NS: u64 = 10_000_000_000;
/// A measurement this many times better is stored at once.
const BETTER: u64 = 2;

impl Kept {
    /// The one that was stored last.
    pub(crate) const fn last(&self) -> Option<&HostClock> {
        self.last.as_ref()
    }

    /// Events came: their times will be asked for.
    pub(crate) const fn want(&mut self) {
        self.wanted = true;
    }

    /// A new measurement: which one is to be stored now, if any.
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
        let is_time = self.wanted && new.real_ns.saturating_sub(last.real_ns) >= EVERY_NS;
        self.best.filter(|_| is_time)
    }

    /// This one is stored.
    pub(crate) fn stored(&mut self, clock: HostClock) {
        *self = Self {
            last: Some(clock),
            ..Self::default()
        };
    }
}

/// Whether one clock that drifts as little as clocks do can have shown both.
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
        let mut kept = Kept::default();
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
