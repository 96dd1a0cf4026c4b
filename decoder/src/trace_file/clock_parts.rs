//! What the clock of a session is made of, gathered from its blocks in any order.

use ringmark_format::clock::Sample;
use ringmark_format::page::PageHeader;
use ringmark_format::session::SessionHeader;
use ringmark_format::stream::{HostClock, HostClockSource};
use zerocopy::FromBytes;

use crate::blocks::damage::Fault;
use crate::trace_file::session::Counters;
use crate::trace_file::time::SessionClock;

/// Samples and measurements of a session's clocks; those of several sessions can be put together.
#[derive(Debug, Default)]
pub(crate) struct ClockParts {
    /// Samples of tick and `CLOCK_MONOTONIC`.
    samples: Vec<Sample>,
    /// What a collector measured of the host's clocks.
    measured: Vec<HostClock>,
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
        let (mut new, rest) = HostClock::read_from_prefix(content).map_err(|_| Fault::Value {
            what: "size of a HOST_CLOCK block",
            found: content.len() as u64,
            expected: HostClock::BYTES as u64,
        })?;
        // Collectors of before do not say which of them measured.
        if let Ok((source, _)) = HostClockSource::read_from_prefix(rest) {
            new.error_ns = new.error_ns.saturating_add(source.error_ns);
        }
        self.measured.push(new);
        Ok(())
    }

    /// Adds the parts of another session that has the same clock.
    pub(crate) fn join(&mut self, other: Self) {
        self.samples.extend(other.samples);
        self.measured.extend(other.measured);
        self.is_sampled |= other.is_sampled;
    }

    /// The clock that `header` declares, fitted to these parts.
    pub(crate) fn into_clock(self, header: Option<&SessionHeader>) -> SessionClock {
        let mut clock = SessionClock::new(header, self.samples);
        clock.measured(self.measured, self.is_sampled);
        clock
    }
}
