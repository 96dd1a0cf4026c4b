//! Maps a host's monotonic clock to the collector's wall clock, with a bound of the error.
//!
//! The collector measures each host's clocks from time to time. A measurement is kept unless an
//! earlier or a later one knows its time better. Between two measurements the map is linear, so it
//! is monotone and the order of events stays.

use ringmark_format::stream::{HOST_DRIFT_PPM, HostClock};

/// The error of a measurement by a collector whose own clock may be wrong by anything.
pub(crate) const UNKNOWN: u64 = u64::MAX;

/// One measurement: at `mono` of the host the collector's clock showed `real`, with an error of at
/// most `error`. All in ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Point {
    mono: u64,
    real: u64,
    error: u64,
}

/// The measurements that count, by ascending time on both clocks; at least one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HostMap {
    points: Vec<Point>,
}

/// How far two clocks may drift apart in `ns`.
const fn drift(ns: u64) -> u64 {
    // Divided first: a little too much, and no overflow.
    (ns / 1_000_000 + 1) * HOST_DRIFT_PPM as u64
}

impl HostMap {
    /// `zero`: the session's start on the monotonic and the wall clock of the host. `shares_mono`:
    /// the measured monotonic clock is the session's. `None`: there is no measurement.
    pub(crate) fn new(clocks: &[HostClock], zero: (u64, u64), shares_mono: bool) -> Option<Self> {
        let mut points: Vec<_> = clocks
            .iter()
            .map(|clock| Point {
                mono: match clock.mono_ns {
                    mono if mono != 0 && shares_mono => mono,
                    _ => since(zero, clock),
                },
                real: clock.real_ns,
                error: clock.error_ns,
            })
            .collect();
        points.sort_unstable();
        points.dedup();
        // An error is bounded by earlier measurements and by later ones.
        let mut points = without_worse(points.into_iter());
        points.reverse();
        let mut points = without_worse(points.into_iter());
        points.reverse();
        (!points.is_empty()).then_some(Self { points })
    }

    /// The points around `mono`: the last one at or before it, and the first one after it.
    fn around(&self, mono: u64) -> (Option<Point>, Option<Point>) {
        let behind = self.points.partition_point(|p| p.mono <= mono);
        let before = behind.checked_sub(1);
        (
            before.and_then(|i| self.points.get(i)).copied(),
            self.points.get(behind).copied(),
        )
    }

    /// The collector's clock, ns since 1970, at `mono` of the host.
    pub(crate) fn real_ns(&self, mono: u64) -> u64 {
        match self.around(mono) {
            (Some(a), Some(b)) => {
                let passed = u128::from(mono - a.mono) * u128::from(b.real - a.real);
                a.real + (passed / u128::from(b.mono - a.mono)) as u64
            }
            (Some(a), None) => a.real.saturating_add(mono - a.mono),
            (None, Some(b)) => b.real.saturating_sub(b.mono - mono),
            (None, None) => mono,
        }
    }

    /// Bound of the error of [`Self::real_ns`], in ns; `None`: it is not known.
    pub(crate) fn error_ns(&self, mono: u64) -> Option<u64> {
        let error = match self.around(mono) {
            (Some(a), Some(b)) if a.error != UNKNOWN && b.error != UNKNOWN => {
                error_between(a, b, mono)
            }
            (Some(_), Some(_)) | (None, None) => UNKNOWN,
            (Some(p), None) | (None, Some(p)) => {
                p.error.saturating_add(drift(mono.abs_diff(p.mono)))
            }
        };
        (error != UNKNOWN).then_some(error)
    }
}

/// The time of a monotonic clock that ran like the wall clock since the session's start.
fn since((mono_zero, real_zero): (u64, u64), clock: &HostClock) -> u64 {
    let host_real = i128::from(clock.real_ns) + i128::from(clock.offset_ns);
    let mono = i128::from(mono_zero) + host_real - i128::from(real_zero);
    u64::try_from(mono.max(0)).unwrap_or(u64::MAX)
}

/// By how much the distance of two points differs between the two clocks.
fn apart(a: Point, b: Point) -> u64 {
    a.mono.abs_diff(b.mono).abs_diff(a.real.abs_diff(b.real))
}

fn agree(a: Point, b: Point) -> bool {
    let possible = drift(a.mono.abs_diff(b.mono))
        .saturating_add(a.error)
        .saturating_add(b.error);
    (a.mono <= b.mono) == (a.real <= b.real) && apart(a, b) <= possible
}

/// Leaves out points whose time an earlier one of the row knows better, and points at which not
/// both clocks go on.
fn without_worse(points: impl Iterator<Item = Point>) -> Vec<Point> {
    let mut kept: Vec<Point> = Vec::new();
    for point in points {
        let Some(last) = kept.last() else {
            kept.push(point);
            continue;
        };
        let known = last
            .error
            .saturating_add(drift(point.mono.abs_diff(last.mono)));
        let goes_on = point.mono != last.mono
            && point.real != last.real
            && (point.mono > last.mono) == (point.real > last.real);
        if goes_on && !(known < point.error && agree(*last, point)) {
            kept.push(point);
        }
    }
    kept
}

fn error_between(a: Point, b: Point, mono: u64) -> u64 {
    let whole = u128::from(b.mono - a.mono);
    let (passed, left) = (u128::from(mono - a.mono), u128::from(b.mono - mono));
    let measured = (u128::from(a.error) * left + u128::from(b.error) * passed) / whole;
    let bend = 2 * (passed * left / whole) * u128::from(HOST_DRIFT_PPM) / 1_000_000;
    let moved = if agree(a, b) { 0 } else { apart(a, b) };
    u64::try_from(measured + bend + 1)
        .unwrap_or(u64::MAX)
        .saturating_add(moved)
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;
    const START: u64 = 1_700_000_000 * S;

    /// What a host with a clock that runs at `rate_ppm` shows `t` after the start.
    fn mono(t: u64, rate_ppm: i64) -> u64 {
        let drifted = t as i128 + t as i128 * i128::from(rate_ppm) / 1_000_000;
        5000 * S + drifted as u64
    }

    fn measured(t: u64, rate_ppm: i64, wrong: i64, error_ns: u64) -> HostClock {
        HostClock {
            real_ns: (START + t).saturating_add_signed(wrong),
            offset_ns: 0,
            error_ns,
            mono_ns: mono(t, rate_ppm),
        }
    }

    fn map(clocks: &[HostClock]) -> HostMap {
        HostMap::new(clocks, (0, 0), true).unwrap()
    }

    /// The map's error at `t`, and what it says that can be.
    fn errors(map: &HostMap, t: u64, rate_ppm: i64) -> (u64, u64) {
        let at = mono(t, rate_ppm);
        (
            map.real_ns(at).abs_diff(START + t),
            map.error_ns(at).unwrap(),
        )
    }

    #[test]
    fn no_time_is_further_off_than_is_said() {
        for rate in [-199, -50, 0, 50, 199] {
            // Wrong in turn by all that a round trip allows; every fifth one took much longer.
            let clocks: Vec<_> = (0..360)
                .map(|n| {
                    let error = if n % 5 == 2 { 40_000_000 } else { 90_000 };
                    let wrong = [error as i64, -(error as i64)][n % 2];
                    measured(n as u64 * 10 * S, rate, wrong, error)
                })
                .collect();
            let map = map(&clocks);
            let mut most = 0;
            for t in (0..3600 * 10).map(|n| n * S / 10) {
                let (off, said) = errors(&map, t, rate);
                assert!(off <= said, "{rate} ppm, {t}: {off} of {said}");
                most = most.max(if t < 3590 * S { said } else { 0 });
            }
            assert!(most < 4_000_000, "{rate} ppm: {most} said");
            for t in [3700 * S, 7200 * S] {
                let (off, said) = errors(&map, t, rate);
                assert!(off <= said && said < S, "{off} of {said}");
            }
        }
    }

    #[test]
    fn a_clock_that_was_moved_makes_the_error_as_large() {
        let mut moved = measured(20 * S, 0, 0, 1000);
        moved.real_ns += 3 * S;
        let map = map(&[measured(10 * S, 0, 0, 1000), moved]);
        for t in 11..20 {
            assert!(errors(&map, t * S, 0).1 >= 3 * S);
        }
        assert!(errors(&map, 9 * S, 0).1 < S / 1000);
    }

    #[test]
    fn without_a_common_monotonic_clock_the_realtime_clock_tells() {
        let offset = -10 * S as i64;
        let clock = HostClock {
            real_ns: START + 100 * S,
            offset_ns: offset,
            error_ns: 5,
            mono_ns: 77,
        };
        // The session began 100 s before the measurement, when its host's clock showed 10 s less.
        let zero = (3 * S, START - 10 * S);
        for (shares, mono) in [(false, clock.mono_ns), (true, 0)] {
            let clock = HostClock {
                mono_ns: mono,
                ..clock
            };
            let map = HostMap::new(&[clock], zero, shares).unwrap();
            assert_eq!(map.real_ns(3 * S), START);
            assert_eq!(map.real_ns(2 * S), START - S);
        }
        assert_eq!(HostMap::new(&[], zero, true), None);
    }

    #[test]
    fn whatever_is_measured_time_goes_on() {
        let point = |real_ns, mono_ns, error_ns| HostClock {
            real_ns,
            offset_ns: i64::MIN,
            error_ns,
            mono_ns,
        };
        let clocks = [
            point(0, u64::MAX, 0),
            point(u64::MAX, 1, u64::MAX),
            point(START, S, 3),
            point(START - 5, S + 7, 3),
            point(START + 5, S, 2),
            point(START + 5, 2 * S, 2),
        ];
        for shares in [true, false] {
            let map = HostMap::new(&clocks, (S, START), shares).unwrap();
            let mut last = 0;
            for at in [0, 1, 2, S - 1, S, S + 7, 2 * S, 3 * S, u64::MAX] {
                let (now, _) = (map.real_ns(at), map.error_ns(at));
                assert!(now >= last, "{at}: {now} after {last}");
                last = now;
            }
        }
    }
}
