//! The collector's own figures, as monitoring reads them.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use crate::disk_calls::DiskCalls;
use crate::histogram::Histogram;
use crate::hosts::Hosts;
use crate::refusals::Refusals;

macro_rules! figures {
    (
        $($(#[$meta:meta])* $name:ident $kind:literal $help:literal,)*
        ; $($times:ident $times_help:literal,)*
    ) => {
        /// Counters and gauges, of the collector as a whole and of each host.
        #[derive(Debug, Default)]
        pub struct Figures {
            $($(#[$meta])* pub(crate) $name: AtomicU64,)*
            $(pub(crate) $times: Histogram,)*
            pub(crate) hosts: Hosts,
            pub(crate) disk_calls: DiskCalls,
            pub(crate) refusals: Refusals,
        }

        impl Figures {
            /// All of them in Prometheus' text format.
            #[must_use]
            pub fn text(&self) -> String {
                self.look();
                let mut text = String::new();
                $(
                    let name = concat!("ringmark_collector_", stringify!($name));
                    let value = self.$name.load(Relaxed);
                    let _ = writeln!(text, "# HELP {name} {}\n# TYPE {name} {}\n{name} {value}", $help, $kind);
                )*
                $(
                    let name = concat!("ringmark_collector_", stringify!($times));
                    text.push_str(&self.$times.text(name, $times_help));
                )*
                text.push_str(BUILD_INFO);
                text.push_str(&self.refusals.text());
                text.push_str(&self.hosts.text());
                text
            }

            /// Names and values of the collector's own figures: of refusals their sum, of times how many and their sum.
            #[must_use]
            pub fn values(&self) -> Vec<(&'static str, f64)> {
                self.look();
                vec![
                    $((stringify!($name), self.$name.load(Relaxed) as f64),)*
                    $(
                        (concat!(stringify!($times), "_count"), self.$times.total() as f64),
                        (concat!(stringify!($times), "_sum"), self.$times.sum_seconds()),
                    )*
                    ("refusals_total", self.refusals.total() as f64),
                ]
            }
        }
    };
}

figures! {
    connections "gauge" "Connections open now.",
    accepted_connections_total "counter" "Connections accepted.",
    unproved "gauge" "Connections that have not proved which host they are of.",
    evicted_total "counter" "Connections that had proved nothing and made way for others.",
    received_bytes_total "counter" "Bytes of blocks received.",
    stored_bytes_total "counter" "Bytes of blocks appended to segments.",
    pages_total "counter" "Pages stored.",
    refused_pages_total "counter" "Pages refused, with numbers that no ring comes to.",
    repeated_pages_total "counter" "Pages that were there already and were not stored again.",
    skipped_blocks_total "counter" "Blocks and messages of kinds that this version does not know, skipped.",
    sessions_total "counter" "Sessions that the collector has met since it started.",
    segments_total "counter" "Segments begun.",
    removed_segments_total "counter" "Segments removed by retention.",
    removed_bytes_total "counter" "Bytes of segments removed by retention.",
    damaged_segments_total "counter" "Segments in which damage was found since the collector started.",
    damaged_removed_total "counter" "Copies of what was cut off segments, removed with their segments by retention.",
    store_bytes "gauge" "Bytes of all segments, looked at every 10 s or more often.",
    free_bytes "gauge" "Bytes that are free on the store's file system.",
    keep_size_bytes "gauge" "Bytes that all segments may have, as --keep-size says; 0: as many as there is room for.",
    min_free_bytes "gauge" "Bytes that stay free on the store's file system, as --min-free says.",
    full "gauge" "1 while the store has no room: streamers wait and get no credit.",
    session_bytes "gauge" "Memory that remembered sessions take.",
    memory_bytes "gauge" "Bytes of large blocks being received.",
    waiting_bytes "gauge" "Memory for what waits to be put into objects, open pages included.",
    uploads_over "gauge" "1 once putting objects was given up: nothing is acknowledged any more.",
    draining "gauge" "1 while the collector is about to end.",
    disk_wait_seconds "gauge" "Age of the oldest call to the disk that has not returned.",
    certificate_expiry_timestamp_seconds "gauge" "When the collector's certificate ends, in seconds since 1970; 0: it has none.",
    certificate_renewal_timestamp_seconds "gauge" "When it is to be renewed: in the last tenth of its life, two weeks before its end at most; 0: it has none.",
    ; // Times.
    sync_duration_seconds "How long calls took that made segments durable, or put objects.",
    write_duration_seconds "How long it took to write a block to a segment.",
}

/// Longest call to the disk of a collector that is healthy.
pub(crate) const HEALTHY_WITHIN: Duration = Duration::from_secs(10);

/// Why a collector acknowledges nothing any more.
pub(crate) const UPLOADS_OVER: &str = "putting objects was given up, restart the collector";

/// The version that serves them.
const BUILD_INFO: &str = concat!(
    "# HELP ringmark_collector_build_info The version of the collector, as a label; always 1.\n",
    "# TYPE ringmark_collector_build_info gauge\n",
    "ringmark_collector_build_info{version=\"",
    env!("CARGO_PKG_VERSION"),
    "\"} 1\n"
);

impl Figures {
    /// Sets what changes by itself.
    fn look(&self) {
        Self::set(&self.disk_wait_seconds, self.disk_wait().as_secs());
    }

    /// For how long the oldest call to the disk has not returned; 0: none is under way.
    #[must_use]
    pub fn disk_wait(&self) -> Duration {
        self.disk_calls.longest()
    }

    /// Whether putting objects was given up.
    pub(crate) fn are_uploads_over(&self) -> bool {
        self.uploads_over.load(Relaxed) != 0
    }

    /// Why the collector takes nothing in now; `None`: it does.
    pub(crate) fn not_ready(&self) -> Option<&'static str> {
        let is_set = |gauge: &AtomicU64| gauge.load(Relaxed) != 0;
        match () {
            () if is_set(&self.draining) => Some("it is about to end"),
            () if is_set(&self.full) => Some("the store has no room"),
            () if is_set(&self.uploads_over) => Some(UPLOADS_OVER),
            () if self.disk_wait() > HEALTHY_WITHIN => Some("a call to the disk hangs"),
            () => None,
        }
    }

    /// Adds to a counter, or to a gauge of what is there now.
    pub(crate) fn add(counter: &AtomicU64, n: u64) {
        counter.fetch_add(n, Relaxed);
    }

    /// Sets a gauge.
    pub(crate) fn set(gauge: &AtomicU64, n: u64) {
        gauge.store(n, Relaxed);
    }

    /// Subtracts from a gauge of what is there now.
    pub(crate) fn take(counter: &AtomicU64, n: u64) {
        counter.fetch_sub(n, Relaxed);
    }
}
