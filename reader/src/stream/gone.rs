//! Pages of a session that will never come: collectors are told before what follows them is sent.

use ringmark_format::progress::{GoneRange, cause};

use super::outgoing::PageGap;
use crate::pages::slot_progress::Hole;

/// The range of a hole that was found in a slot.
#[must_use]
pub fn overwritten(slot: u32, hole: Hole) -> GoneRange {
    GoneRange {
        slot,
        cause: cause::OVERWRITTEN,
        from: hole.from,
        to: hole.to,
        events: hole.events,
    }
}

/// Most ranges that one PROGRESS block carries.
pub(crate) const RANGES_MAX: usize = 4096;

/// The ranges that no collector has acknowledged yet, in the order of finding.
#[derive(Debug, Clone, Default)]
pub struct Gone {
    ranges: Vec<GoneRange>,
    /// Ranges that were acknowledged before the first one here.
    acked: u64,
    /// How many of all ranges were told on this connection.
    told: u64,
}

impl Gone {
    /// Adds ranges that were found.
    pub fn add(&mut self, ranges: &[GoneRange]) {
        self.ranges.extend_from_slice(ranges);
    }

    /// The ranges that no collector has acknowledged.
    #[must_use]
    pub fn unacknowledged(&self) -> &[GoneRange] {
        &self.ranges
    }

    /// Adds pages that were in the spill, and cannot be read there.
    pub fn add_spilled(&mut self, pages: PageGap) {
        self.ranges.push(GoneRange {
            slot: pages.slot,
            cause: cause::SPILL,
            from: pages.from,
            to: pages.to,
            events: 0,
        });
    }

    /// Number of all ranges that were found, those that are not here any more included.
    #[must_use]
    pub fn found(&self) -> u64 {
        self.acked + self.ranges.len() as u64
    }

    /// Whether some were not told on this connection.
    #[must_use]
    pub fn is_to_tell(&self) -> bool {
        self.told < self.found()
    }

    /// The ranges that no collector has acknowledged, which are told now.
    pub fn tell(&mut self) -> &[GoneRange] {
        self.told = self.found();
        &self.ranges
    }

    /// Notes that the connection was lost: what was told on it may not have come.
    pub fn begin_again(&mut self) {
        self.told = self.acked;
    }

    /// Notes that a collector acknowledged the first ranges of all.
    pub fn acknowledge(&mut self, ranges: u64) {
        let new = ranges
            .saturating_sub(self.acked)
            .min(self.ranges.len() as u64);
        self.ranges.drain(..new as usize);
        self.acked += new;
        self.told = self.told.max(self.acked);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hole(from: u64) -> GoneRange {
        let to = from + 1;
        let events = 9;
        overwritten(3, Hole { from, to, events })
    }

    #[test]
    fn a_range_is_told_until_it_is_acknowledged() {
        let mut gone = Gone::default();
        assert!(!gone.is_to_tell());
        gone.add(&[hole(1), hole(5)]);
        assert!(gone.is_to_tell());
        assert_eq!(gone.tell().len(), 2);
        assert!(!gone.is_to_tell(), "told on this connection");
        gone.add_spilled(PageGap {
            slot: 3,
            from: 7,
            to: 9,
        });
        gone.acknowledge(1);
        assert!(gone.is_to_tell());
        let left: Vec<u64> = gone.tell().iter().map(|range| range.from).collect();
        assert_eq!((left, gone.found()), (vec![5, 7], 3));
        gone.begin_again();
        assert!(gone.is_to_tell(), "another collector may have it");
        gone.acknowledge(99);
        assert!(!gone.is_to_tell() && gone.tell().is_empty());
    }
}
