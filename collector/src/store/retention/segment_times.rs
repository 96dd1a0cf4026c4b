//! When the events of a segment happened, on the collector's clock.
//!
//! The file's own times do not count: a store that was copied has others.

use std::fs::File;
use std::path::Path;

use ringmark_decoder::store::{self as files, SegmentEnd};
use ringmark_decoder::{BlockReader, IndexBuilder, Item, SegmentIndex, parse_timestamp};
use ringmark_format::block::kind;
use ringmark_format::stream::HostClock;
use zerocopy::FromBytes;

use super::steady_clock::Now;

/// How far ahead of now an event may be, in ns. A host with later events has a wrong clock, or
/// wants its segments to be kept for ever.
const AHEAD_MAX_NS: u64 = 3_600_000_000_000;
const DAY_NS: u64 = 86_400_000_000_000;

/// Times of the earliest and the latest event of a segment, in ns since 1970. The order is that of
/// the latest ones, then of the earliest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SegmentTimes {
    pub(super) last_ns: u64,
    pub(super) first_ns: u64,
    /// Whether a later look will find the same times.
    pub(super) is_final: bool,
}

impl SegmentTimes {
    /// The times of a segment that is being written: newer than all others.
    pub(super) const fn now(now: Now) -> Self {
        Self {
            last_ns: now.real_ns,
            first_ns: now.real_ns,
            is_final: false,
        }
    }

    /// The times in the index of a segment, if it has one and they are possible.
    pub(super) fn indexed(segment: &Path, now: Now) -> Option<Self> {
        Self::of(&files::load_index(segment)?, now)
    }

    fn of(index: &SegmentIndex, now: Now) -> Option<Self> {
        let (first_ns, last_ns) = (index.about.first_ns, index.about.last_ns);
        let latest = now.real_ns.saturating_add(AHEAD_MAX_NS);
        (first_ns <= last_ns && last_ns <= latest).then_some(Self {
            last_ns,
            first_ns,
            is_final: true,
        })
    }

    /// The times of a segment without a usable index: those of the events that can be read. If
    /// there are none, the last time at which its host's clock was measured. Without that, the day
    /// in whose directory the segment lies.
    pub(super) fn read(segment: &Path, now: Now) -> Self {
        let (mut builder, mut measured_ns) = (IndexBuilder::default(), 0);
        if let Ok(file) = File::open(segment) {
            let mut reader = BlockReader::new("a segment", file);
            while let Some(item) = reader.next_item() {
                let Item::Block(block) = item else {
                    continue;
                };
                if block.header.kind == kind::HOST_CLOCK
                    && let Ok((clock, _)) = HostClock::read_from_prefix(block.content)
                {
                    measured_ns = measured_ns.max(clock.real_ns);
                }
                // A block that cannot be used has no times.
                let _ = builder.take(&block);
            }
        }
        let events = builder
            .finish(SegmentEnd::default())
            .and_then(|index| Self::of(&index, now));
        let at = |first_ns, last_ns| Self {
            last_ns,
            first_ns,
            is_final: true,
        };
        let measured = || (measured_ns > 0).then(|| at(measured_ns, measured_ns));
        let day = || day(segment).map(|first| at(first, first + DAY_NS - 1));
        let found = events.or_else(measured).or_else(day);
        found.unwrap_or_else(|| Self::now(now))
    }
}

/// The beginning of the day in whose directory a segment lies, in ns since 1970.
fn day(segment: &Path) -> Option<u64> {
    let day = segment.ancestors().nth(3)?.file_name()?.to_str()?;
    parse_timestamp(&format!("{day}T00:00:00Z"))
}
