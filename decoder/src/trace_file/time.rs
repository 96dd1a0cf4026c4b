//! Ticks to nanoseconds, fast: the format's [`TickMap`] with the segment in use kept at hand.

use ringmark_format::clock::{MapPiece, Rate, Sample, TickMap};
use ringmark_format::session::SessionHeader;
use ringmark_format::stream::HostClock;

use crate::trace_file::host_clock::HostMap;

/// The time of one session.
#[derive(Debug, Clone)]
pub struct SessionClock {
    map: TickMap,
    /// `CLOCK_MONOTONIC` of the host at the session's start, in ns.
    pub mono_zero_ns: u64,
    /// Wall time at the session's start, in ns since 1970: `CLOCK_REALTIME` of the host, or the
    /// collector's clock if a collector measured it.
    pub real_zero_ns: u64,
    host: Option<HostMap>,
    /// What a collector measured of the host's clocks.
    pub(crate) measurements: Vec<HostClock>,
    /// Whether COUNTERS blocks had samples of the clock.
    pub(crate) is_sampled: bool,
}

impl SessionClock {
    /// The clock that `header` declares, corrected by `samples`; without a header one tick is one
    /// nanosecond since 1970.
    pub(crate) fn new(header: Option<&SessionHeader>, samples: Vec<Sample>) -> Self {
        let Some(header) = header else {
            let zero = Sample {
                tick: 0,
                mono_ns: 0,
            };
            return Self {
                map: TickMap::new(zero, Rate::IDENTITY, Vec::new()),
                mono_zero_ns: 0,
                real_zero_ns: 0,
                host: None,
                measurements: Vec::new(),
                is_sampled: false,
            };
        };
        let zero = Sample {
            tick: header.tick_zero,
            mono_ns: header.mono_zero_ns,
        };
        let rate = Rate {
            mult: header.tick_mult,
            shift: header.tick_shift,
        };
        Self {
            map: TickMap::new(zero, rate, samples),
            mono_zero_ns: header.mono_zero_ns,
            real_zero_ns: header.real_zero_ns,
            host: None,
            measurements: Vec::new(),
            is_sampled: false,
        }
    }

    /// Takes what a collector measured of the host's clocks. Wall times are then on the
    /// collector's clock. `shares_mono`: the measured clocks are the session's own.
    pub(crate) fn measured(&mut self, clocks: Vec<HostClock>, shares_mono: bool) {
        let zero = (self.mono_zero_ns, self.real_zero_ns);
        if let Some(host) = HostMap::new(&clocks, zero, shares_mono) {
            self.real_zero_ns = host.real_ns(self.mono_zero_ns);
            self.host = Some(host);
        }
        (self.measurements, self.is_sampled) = (clocks, shares_mono);
    }

    /// The samples that the times of these ticks depend on, by time.
    pub(crate) fn samples_for(&self, ranges: &[(u64, u64)]) -> Vec<Sample> {
        let all = self.map.samples();
        let mut wanted = vec![false; all.len()];
        for (low, high) in ranges {
            let first = all.partition_point(|s| s.tick <= *low).saturating_sub(1);
            let end = all.partition_point(|s| s.tick <= *high) + 1;
            let end = end.min(all.len());
            wanted[first.min(end)..end].fill(true);
        }
        let samples = all.iter().zip(wanted);
        let samples = samples.filter(|(_, wanted)| *wanted);
        samples.map(|(sample, _)| *sample).collect()
    }

    /// Bound of the error of a wall time compared with other hosts, in ns. `t_ns` is the time since
    /// the session's start. `None`: no collector has measured the host's clocks, or none of those that have
    /// knows how wrong its own clock is.
    #[must_use]
    pub fn error_ns(&self, t_ns: u64) -> Option<u64> {
        let mono_ns = self.mono_zero_ns.saturating_add(t_ns);
        self.host.as_ref()?.error_ns(mono_ns)
    }

    /// Whether a collector has measured the host's clocks.
    #[must_use]
    pub const fn is_measured(&self) -> bool {
        self.host.is_some()
    }

    /// Time of `tick` since the session's start, in ns; 0 for a tick before the start.
    #[must_use]
    pub fn t_ns(&self, tick: u64) -> u64 {
        self.map.mono_ns(tick).saturating_sub(self.mono_zero_ns)
    }

    /// The first tick that is not before this time of `CLOCK_MONOTONIC`.
    pub(crate) fn first_tick(&self, mono_ns: u64) -> u64 {
        // The map is monotone.
        let (mut low, mut high) = (0, u64::MAX);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.map.mono_ns(middle) < mono_ns {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// Wall time, in ns since 1970, of a time of `CLOCK_MONOTONIC`.
    pub(crate) fn wall_of_mono(&self, mono_ns: u64) -> u64 {
        if let Some(host) = &self.host {
            return host.real_ns(mono_ns);
        }
        match mono_ns.checked_sub(self.mono_zero_ns) {
            Some(since) => self.real_zero_ns.saturating_add(since),
            None => {
                let before = self.mono_zero_ns - mono_ns;
                self.real_zero_ns.saturating_sub(before)
            }
        }
    }

    /// Wall time of `tick`, in ns since 1970. `t_ns` is its time since the session's start, which
    /// saves the conversion; a tick before the start gets its own time.
    #[inline]
    #[must_use]
    pub fn wall_of(&self, tick: u64, t_ns: u64) -> u64 {
        if t_ns != 0 {
            return self.wall_ns(t_ns);
        }
        self.wall_of_mono(self.map.mono_ns(tick))
    }

    /// Wall time, in ns since 1970, of a time since the session's start in ns.
    #[inline]
    #[must_use]
    pub fn wall_ns(&self, t_ns: u64) -> u64 {
        match &self.host {
            Some(host) => host.real_ns(self.mono_zero_ns.saturating_add(t_ns)),
            None => self.real_zero_ns.saturating_add(t_ns),
        }
    }
}

/// A [`SessionClock`] that is read at nearby ticks one after the other; it keeps the piece of the
/// map that the latest tick lay in.
#[derive(Debug, Clone, Default)]
pub(crate) struct NearClock {
    segment: Option<Segment>,
}

/// One piece of the map: from `tick` (at `t_ns`) up to, not including, `end`.
#[derive(Debug, Clone, Copy)]
struct Segment {
    tick: u64,
    end: u64,
    mono_ns: u64,
    rate: Ratio,
}

/// ns per tick, as the normative arithmetic has it: by the nominal rate, or between two samples.
/// Both round down.
#[derive(Debug, Clone, Copy)]
enum Ratio {
    /// ticks * mult >> shift.
    Shift(u64, u32),
    /// ticks * ns / ticks between two samples.
    Divide(u64, u64),
}

impl NearClock {
    /// The same as [`SessionClock::t_ns`].
    #[inline]
    pub(crate) fn t_ns(&mut self, clock: &SessionClock, tick: u64) -> u64 {
        if let Some(segment) = &self.segment
            && tick >= segment.tick
            && tick < segment.end
            && let Some(mono_ns) = segment.mono_ns(tick - segment.tick)
        {
            return mono_ns.saturating_sub(clock.mono_zero_ns);
        }
        self.move_to(clock, tick)
    }

    #[cold]
    fn move_to(&mut self, clock: &SessionClock, tick: u64) -> u64 {
        self.segment = clock
            .map
            .piece(tick)
            .map(|MapPiece { from, to, rate }| match to {
                Some(to) => Segment {
                    tick: from.tick,
                    end: to.tick,
                    mono_ns: from.mono_ns,
                    rate: Ratio::Divide(to.mono_ns - from.mono_ns, to.tick - from.tick),
                },
                None => Segment {
                    tick: from.tick,
                    end: u64::MAX,
                    mono_ns: from.mono_ns,
                    rate: Ratio::Shift(rate.mult, rate.shift & 63),
                },
            });
        clock.t_ns(tick)
    }
}

impl Segment {
    /// `None`: the result does not fit into 64 bits, and [`SessionClock::t_ns`] has to compute it.
    #[inline]
    fn mono_ns(&self, ticks: u64) -> Option<u64> {
        let ns = match self.rate {
            Ratio::Shift(mult, shift) => {
                let wide = (u128::from(ticks) * u128::from(mult)) >> shift;
                u64::try_from(wide).ok()?
            }
            Ratio::Divide(ns, by) => ticks.checked_mul(ns)?.checked_div(by)?,
        };
        self.mono_ns.checked_add(ns)
    }
}
