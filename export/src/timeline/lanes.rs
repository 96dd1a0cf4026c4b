//! Rows for slices that overlap without lying in each other: the first row in which one fits.

use crate::timeline::viewer::DEEPEST;

/// Rows of nested slices. A slice is known by a number that is larger the later it ends.
#[derive(Debug, Default)]
pub(crate) struct NestedLanes(Vec<Vec<u64>>);

impl NestedLanes {
    /// The lane of a slice that begins now and has this number.
    pub(crate) fn begin(&mut self, end: u64) -> u32 {
        let fits = |lane: &Vec<u64>| {
            lane.len() < DEEPEST as usize && lane.last().is_none_or(|around| *around > end)
        };
        let place = self.0.iter().position(fits).unwrap_or_else(|| {
            self.0.push(Vec::new());
            self.0.len() - 1
        });
        self.0[place].push(end);
        place as u32
    }

    /// The lane that the slice with this number was in; `None`: it did not begin.
    pub(crate) fn end(&mut self, end: u64) -> Option<u32> {
        let is_it = |lane: &Vec<u64>| lane.last() == Some(&end);
        let place = self.0.iter().position(is_it)?;
        self.0[place].pop();
        Some(place as u32)
    }
}

/// Lanes with one slice at a time.
#[derive(Debug, Default)]
pub(crate) struct SingleLanes {
    free: Vec<u32>,
    made: u32,
}

impl SingleLanes {
    /// A lane that is free, the one with the lowest number that was freed last.
    pub(crate) fn take(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.made += 1;
            self.made - 1
        })
    }

    /// Frees a lane.
    pub(crate) fn give_back(&mut self, lane: u32) {
        self.free.push(lane);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_that_overlap_have_lanes_of_their_own() {
        let mut lanes = NestedLanes::default();
        assert_eq!(lanes.begin(10), 0);
        assert_eq!(lanes.begin(5), 0, "inside the first");
        assert_eq!(lanes.begin(7), 1, "ends after the one around it");
        assert_eq!(lanes.begin(6), 1);
        assert_eq!(lanes.end(5), Some(0));
        assert_eq!(lanes.end(6), Some(1));
        assert_eq!(lanes.end(7), Some(1));
        assert_eq!(lanes.end(8), None);
        assert_eq!(lanes.end(10), Some(0));
    }

    #[test]
    fn a_free_lane_is_used_again() {
        let mut lanes = SingleLanes::default();
        assert_eq!((lanes.take(), lanes.take()), (0, 1));
        lanes.give_back(0);
        assert_eq!((lanes.take(), lanes.take()), (0, 2));
    }
}
