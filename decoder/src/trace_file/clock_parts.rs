//! What the clock of a session is made of, gathered from its blocks in any order.

use ringmark_format::clock::Sample;
use ringmark_format::page::PageHeader;
use ringmark_format::session::SessionHeader;
use ringmark_format::stream::{HostClock, HostClockSource};
use zerocopy::FromBytes;

use crate::blocks::damage::Fault;
use crate::trace_file::host_clock::UNKNOWN;
use crate::trace_file::session::Counters;
use crate::trace_file::time::SessionClock;

/// Samples and measurements of a session's clocks; those of several sessions can be put together.
#[derive(Debug, Default)]
pub(crate) struct ClockParts {
    /// Samples of tick and `CLOCK_MONOTONIC`.
    samples: Vec<Sample>,
    /// What collectors measured of the host's clocks.
    measured: Vec<(HostClock, HostClockSource)>,
    /// Whether the streamer or recorder sampled the session's own clocks.
    is_sampled: bool,
}

impl ClockParts {
    /// Takes samples of other blocks than COUNTERS and PAGE.
    pub(crate) fn take_samples(&mut self, samples: impl IntoIterator<Item = Sample>) {
        self.samples.extend(samples);
    }

    /// Takes the sample of a COUNTERS block, if it has one.
    pub(crate) fn take_counters(&mut self, counters: &Counters) {
        let sample = counters.sample();
        self.is_sampled |= sample.is_some();
        self.samples.extend(sample);
    }

    /// Takes the sample in the header of a page, if it has one.
    pub(crate) fn take_page(&mut self, header: &PageHeader) {
        if header.mono_base_ns != 0 {
            self.samples.push(Sample {
                tick: header.tick_base,
                mono_ns: header.mono_base_ns,
            });
        }
    }

    /// Takes the content of a HOST_CLOCK block.
    pub(crate) fn take_host_clock(&mut self, content: &[u8]) -> Result<(), Fault> {
        let short = || Fault::Value {
            what: "size of a HOST_CLOCK block",
            found: content.len() as u64,
            expected: (HostClock::BYTES + HostClockSource::BYTES) as u64,
        };
        let (new, rest) = HostClock::read_from_prefix(content).map_err(|_| short())?;
        let (source, _) = HostClockSource::read_from_prefix(rest).map_err(|_| short())?;
        self.measured.push((new, source));
        Ok(())
    }

    /// Adds the parts of another session that has the same clock.
    pub(crate) fn join(&mut self, other: Self) {
        self.samples.extend(other.samples);
        self.measured.extend(other.measured);
        self.is_sampled |= other.is_sampled;
    }

    /// The collectors that measured.
    pub(crate) fn collectors(&self) -> impl Iterator<Item = [u8; 16]> {
        self.measured.iter().map(|(_, source)| source.collector)
    }

    /// The clock that `header` declares, fitted to these parts. Where several collectors measured, the
    /// error of a measurement includes that of its collector's own clock.
    pub(crate) fn into_clock(self, header: Option<&SessionHeader>, by: Collectors) -> SessionClock {
        let mut clock = SessionClock::new(header, self.samples);
        let measured = self.measured.into_iter().map(|(measured, source)| {
            let own = match (by, source.error_ns) {
                (Collectors::One, _) => 0,
                // Nothing keeps that collector's clock right.
                (Collectors::Several, 0) => UNKNOWN,
                (Collectors::Several, error) => error,
            };
            HostClock {
                error_ns: measured.error_ns.saturating_add(own),
                ..measured
            }
        });
        clock.measured(measured.collect(), self.is_sampled);
        clock
    }
}

/// Whose clocks all that is read together is on.
///
/// Times of one collector's clock can be compared whatever it shows. Two collectors' clocks differ
/// by as much as each of them may be wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Collectors {
    /// One collector's, or none's.
    One,
    /// Several collectors', which may differ.
    Several,
}

impl Collectors {
    /// Those that measured for any of these.
    pub(crate) fn of(clocks: &[ClockParts]) -> Self {
        let mut all = clocks.iter().flat_map(ClockParts::collectors);
        let first = all.next();
        match all.all(|next| Some(next) == first) {
            true => Self::One,
            false => Self::Several,
        }
    }
}

#[cfg(test)]
mod tests {
    use zerocopy::IntoBytes;

    use super::*;

    fn measured(collector: u8, own_error_ns: u64) -> ClockParts {
        let clock = HostClock {
            real_ns: 1_000_000_000,
            offset_ns: 0,
            error_ns: 5,
            mono_ns: 7,
        };
        let source = HostClockSource {
            collector: [collector; 16],
            error_ns: own_error_ns,
        };
        let mut parts = ClockParts::default();
        let content = [clock.as_bytes(), source.as_bytes()].concat();
        parts.take_host_clock(&content).unwrap();
        parts
    }

    /// The error of the first session's clock, where these collectors measured and say so of their own.
    fn error_ns(collectors: &[(u8, u64)]) -> Option<u64> {
        let all = collectors.iter().map(|(by, own)| measured(*by, *own));
        let mut all: Vec<_> = all.collect();
        let by = Collectors::of(&all);
        all.swap_remove(0).into_clock(None, by).error_ns(0)
    }

    #[test]
    fn the_clocks_of_several_collectors_may_be_wrong() {
        let alone = error_ns(&[(1, 900)]).unwrap();
        assert_eq!(error_ns(&[(1, 900), (1, 900)]), Some(alone));
        assert_eq!(error_ns(&[(1, 900), (2, 900)]), Some(alone + 900));
    }

    #[test]
    fn a_clock_that_nothing_keeps_right_has_no_known_error() {
        assert!(
            error_ns(&[(1, 0)]).is_some(),
            "one clock, whatever it shows"
        );
        assert_eq!(error_ns(&[(1, 0), (2, 900)]), None);
        assert!(error_ns(&[(1, 900), (2, 0)]).is_some());
        let mut both = measured(1, 0);
        both.join(measured(2, 900));
        let clock = both.into_clock(None, Collectors::Several);
        assert!(clock.error_ns(0).is_some(), "the one that knows counts");
    }
}
