//! Ticks to nanoseconds: normative integer arithmetic (SPEC, "Time").
//!
//! A session declares a nominal rate; clock samples (tick, ns) taken along the trace correct it
//! piecewise. The map is monotone, so the order of ticks is the order of times.

use alloc::vec::Vec;

/// A clock sample: two clocks read at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sample {
    /// Tick of the session's clock.
    pub tick: u64,
    /// `CLOCK_MONOTONIC` in ns.
    pub mono_ns: u64,
}

/// Nominal rate: ns = (ticks * mult) >> shift.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// Multiplier.
    pub mult: u64,
    /// Right shift, less than 64.
    pub shift: u32,
}

impl Rate {
    /// One tick is one nanosecond.
    pub const IDENTITY: Self = Self { mult: 1, shift: 0 };

    /// Nanoseconds of `ticks`, at most `u64::MAX`.
    #[must_use]
    pub const fn nanoseconds(self, ticks: u64) -> u64 {
        let wide = (ticks as u128 * self.mult as u128) >> (self.shift & 63);
        if wide > u64::MAX as u128 {
            u64::MAX
        } else {
            wide as u64
        }
    }
}

/// Ticks that must lie between two samples for the later one to be used.
pub const SAMPLE_SPACING_TICKS: u64 = 1 << 26;

/// A piece of a [`TickMap`], in which time is linear.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MapPiece {
    /// The sample that the piece begins with.
    pub from: Sample,
    /// The sample that ends the piece; `None`: it goes on at the nominal rate.
    pub to: Option<Sample>,
    /// The nominal rate.
    pub rate: Rate,
}

/// The map from ticks to `CLOCK_MONOTONIC` of one session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TickMap {
    rate: Rate,
    samples: Vec<Sample>,
}

impl TickMap {
    /// The map that starts at `zero`, goes on at `rate`, and is corrected by `samples`.
    ///
    /// A sample is used if it lies at least [`SAMPLE_SPACING_TICKS`] after the last used one and
    /// its time is not before that one's; the others are noise at this distance.
    #[must_use]
    pub fn new(zero: Sample, rate: Rate, mut samples: Vec<Sample>) -> Self {
        samples.sort_unstable();
        let mut used = Vec::with_capacity(1 + samples.len());
        used.push(zero);
        let mut last = zero;
        for sample in samples {
            let far = sample.tick.saturating_sub(last.tick) >= SAMPLE_SPACING_TICKS;
            if far && sample.mono_ns >= last.mono_ns {
                used.push(sample);
                last = sample;
            }
        }
        Self {
            rate,
            samples: used,
        }
    }

    /// The samples that are used, by time.
    #[must_use]
    pub fn samples(&self) -> &[Sample] {
        &self.samples
    }

    /// The piece of the map that holds `tick`; `None`: `tick` lies before the first sample.
    #[must_use]
    pub fn piece(&self, tick: u64) -> Option<MapPiece> {
        let after = self.samples.partition_point(|s| s.tick <= tick);
        let from = *self.samples.get(after.checked_sub(1)?)?;
        Some(MapPiece {
            from,
            to: self.samples.get(after).copied(),
            rate: self.rate,
        })
    }

    /// `CLOCK_MONOTONIC` of `tick`, in ns. Before the first sample the nominal rate counts back,
    /// down to 0.
    #[must_use]
    pub fn mono_ns(&self, tick: u64) -> u64 {
        let after = self.samples.partition_point(|s| s.tick <= tick);
        let Some(index) = after.checked_sub(1) else {
            let first = self.samples[0];
            return first
                .mono_ns
                .saturating_sub(self.rate.nanoseconds(first.tick - tick));
        };
        let from = self.samples[index];
        let ticks = tick - from.tick;
        match self.samples.get(after) {
            None => from.mono_ns.saturating_add(self.rate.nanoseconds(ticks)),
            Some(to) => {
                let wide = u128::from(ticks) * u128::from(to.mono_ns - from.mono_ns)
                    / u128::from(to.tick - from.tick);
                from.mono_ns + wide as u64
            }
        }
    }
}
