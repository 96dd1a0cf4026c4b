//! Pages that are gone between those that wait on disk. Their ranges are written beside the pages: the next
//! streamer finds neither in the ring, and a collector may have acknowledged a range before the pages
//! around it.

use ringmark_format::progress::GoneRange;

use super::outgoing::PageGap;

/// The ranges of one session.
#[derive(Debug, Clone, Default)]
pub struct SpilledGone {
    ranges: Vec<GoneRange>,
    /// How many of them are on disk.
    written: usize,
}

impl SpilledGone {
    /// Begins with what no collector has acknowledged: nothing waits on disk yet.
    pub fn begin(&mut self, unacknowledged: &[GoneRange]) {
        self.ranges = unacknowledged.to_vec();
        self.written = 0;
    }

    /// Takes note of ranges that were found while pages wait.
    pub fn note(&mut self, found: &[GoneRange]) {
        self.ranges.extend_from_slice(found);
    }

    /// Takes up ranges that are on disk.
    pub fn read(&mut self, found: &[GoneRange]) {
        self.ranges.extend_from_slice(found);
        self.written = self.ranges.len();
    }

    /// All of them.
    #[must_use]
    pub fn all(&self) -> &[GoneRange] {
        &self.ranges
    }

    /// Those that are to be written before the next pages.
    #[must_use]
    pub fn unwritten(&self) -> &[GoneRange] {
        &self.ranges[self.written..]
    }

    /// Notes that all of them are on disk.
    pub fn wrote_all(&mut self) {
        self.written = self.ranges.len();
    }

    /// The parts of some pages, which are not where they were to be, that no range has: their file is
    /// damaged or gone.
    #[must_use]
    pub fn without(&self, pages: PageGap) -> Vec<PageGap> {
        let is_its = |range: &&GoneRange| range.slot == pages.slot && range.to > pages.from;
        let mut known: Vec<_> = self.ranges.iter().filter(is_its).collect();
        known.sort_by_key(|range| range.from);
        let (mut left, mut from) = (Vec::new(), pages.from);
        for range in known {
            let to = range.from.min(pages.to);
            if from < to {
                left.push(PageGap { from, to, ..pages });
            }
            from = from.max(range.to);
        }
        if from < pages.to {
            left.push(PageGap { from, ..pages });
        }
        left
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::slot_progress::Hole;
    use crate::stream::gone::overwritten;

    fn hole(from: u64, to: u64) -> GoneRange {
        let events = 0;
        overwritten(3, Hole { from, to, events })
    }

    #[test]
    fn pages_without_ranges_are_what_is_left_between_them() {
        let left = |ranges: &[GoneRange]| -> Vec<(u64, u64)> {
            let mut gone = SpilledGone::default();
            gone.note(ranges);
            let left = gone.without(PageGap {
                slot: 3,
                from: 2,
                to: 9,
            });
            left.iter().map(|pages| (pages.from, pages.to)).collect()
        };
        assert_eq!(left(&[]), [(2, 9)]);
        assert_eq!(left(&[hole(5, 6), hole(2, 3)]), [(3, 5), (6, 9)]);
        let other = GoneRange {
            slot: 4,
            ..hole(5, 6)
        };
        assert_eq!(
            left(&[hole(0, 1), hole(7, 99), hole(8, 9), other]),
            [(2, 7)]
        );
        assert_eq!(left(&[hole(0, 99)]), []);
    }

    #[test]
    fn each_range_is_written_once() {
        let mut gone = SpilledGone::default();
        gone.begin(&[hole(1, 2)]);
        gone.note(&[hole(5, 7)]);
        assert_eq!(gone.unwritten().len(), 2);
        gone.wrote_all();
        gone.note(&[hole(9, 10)]);
        assert_eq!(gone.unwritten(), [hole(9, 10)]);
        gone.begin(&[]);
        gone.read(&[hole(2, 4)]);
        assert_eq!((gone.unwritten().len(), gone.all().len()), (0, 1));
    }
}
