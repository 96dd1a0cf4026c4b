//! What happens between two moments: how much became durable, and whose time of a processor that took.

use std::fmt;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use ringmark_tests::process::processor_time;

use super::collector::Collector;
use super::host::{PAGE, Shared};

/// Counts at a moment.
#[derive(Clone, Copy)]
pub(super) struct Moment {
    pub(super) at: Instant,
    /// Pages of which their hosts know that they are durable.
    pages: u64,
    /// Bytes of blocks that the collector took in.
    received: u64,
    puts: u64,
    /// Time of all puts, those at the same time each counted.
    putting: Duration,
    collector: Duration,
    senders: Duration,
}

impl Moment {
    pub(super) fn now(collector: &Collector, shared: &Shared) -> Self {
        Self {
            at: Instant::now(),
            pages: shared.durable.load(Relaxed),
            received: collector.figure("received_bytes_total"),
            puts: collector.figure("sync_duration_seconds_count"),
            putting: Duration::from_secs_f64(collector.number("sync_duration_seconds_sum")),
            collector: processor_time(collector.id()),
            senders: processor_time(std::process::id()),
        }
    }

    /// What happened from here to `end`.
    pub(super) fn to(self, end: Self) -> Phase {
        Phase { begin: self, end }
    }
}

/// The time between two moments.
pub(super) struct Phase {
    pub(super) begin: Moment,
    pub(super) end: Moment,
}

impl Phase {
    pub(super) fn time(&self) -> Duration {
        self.end.at - self.begin.at
    }

    /// Megabytes of pages that became durable in a second.
    pub(super) fn rate(&self) -> f64 {
        let pages = self.end.pages - self.begin.pages;
        pages as f64 * PAGE as f64 / 1e6 / self.time().as_secs_f64()
    }

    /// Megabytes that the collector took in, schema included.
    fn received(&self) -> f64 {
        (self.end.received - self.begin.received) as f64 / 1e6
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (begin, end, time) = (&self.begin, &self.end, self.time().as_secs_f64());
        let each = |time: Duration| time.as_secs_f64() * 1000.0 / self.received().max(1e-3);
        let part = |time: Duration| 100.0 * time.as_secs_f64() / self.time().as_secs_f64();
        let puts = end.puts - begin.puts;
        let (collector, senders) = (end.collector - begin.collector, end.senders - begin.senders);
        write!(
            f,
            "{time:.1} s, {:.1} MB/s of pages durable, {:.1} MB/s taken in; {puts} puts of {:.1} ms; \
             processor: collector {:.2} ms/MB ({:.0} % of one), senders {:.2} ms/MB ({:.0} % of one)",
            self.rate(),
            self.received() / time,
            (end.putting - begin.putting).as_secs_f64() * 1000.0 / puts.max(1) as f64,
            each(collector),
            part(collector),
            each(senders),
            part(senders),
        )
    }
}
