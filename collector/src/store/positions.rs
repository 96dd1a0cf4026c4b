//! Which sealed pages of a slot are there: one number, and where damage may have cost pages before it.

use std::collections::BTreeMap;

/// Most pages between one of a slot and the next one that comes: a ring that turns a page each
/// microsecond needs 12 days for them. A page that no ring comes to would say of all real pages
/// that they are there.
pub(super) const STEP_MAX: u64 = 1 << 40;
/// Memory that one stretch of pages takes.
pub(super) const GONE_BYTES: u64 = 48;

/// Where a page belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PagePlace {
    pub(super) slot: u32,
    /// It is not there yet.
    pub(super) is_new: bool,
}

/// What stands before a page in its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Before {
    /// Whole blocks only.
    Whole,
    /// Damage, which may have been pages before it.
    Damage,
}

/// The sealed pages of one slot. They come by ascending number.
#[derive(Debug, Default)]
pub(super) struct Positions {
    /// The page after the last one that is there.
    next: u64,
    /// Pages before it that damage may have cost, from the first to the one after the last. A
    /// streamer that still has them sends them before anything that is new.
    gone: BTreeMap<u64, u64>,
}

impl Positions {
    /// Where a streamer goes on. What lies before it is there, or will never come.
    pub(super) fn resume(&self) -> u64 {
        let first = self.gone.first_key_value();
        first.map_or(self.next, |(from, _)| *from)
    }

    /// The page after the last one that is there.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    fn may_come_to(&self, page: u64) -> bool {
        page <= self.next.saturating_add(STEP_MAX)
    }

    /// Whether a page is not there.
    pub(super) fn is_new(&self, page: u64) -> bool {
        let stretch = self.gone.range(..=page).next_back();
        page >= self.next || stretch.is_some_and(|(_, to)| page < *to)
    }

    /// Notes that a page is there. Its streamer has none before it that is not.
    pub(super) fn have(&mut self, page: u64) {
        self.have_until(page.saturating_add(1));
    }

    /// Notes that the pages before `next` are there.
    pub(super) fn have_until(&mut self, next: u64) {
        if !self.may_come_to(next.saturating_sub(1)) {
            return;
        }
        self.next = self.next.max(next);
        let later = self.gone.split_off(&next);
        let cut = self.gone.pop_last();
        self.gone = later;
        if let Some((_, to)) = cut.filter(|(_, to)| *to > next) {
            self.gone.insert(next, to);
        }
    }

    /// Notes that a page is there, after damage in its file that may have been other pages.
    pub(super) fn have_after_damage(&mut self, page: u64) {
        if !self.may_come_to(page) {
            return;
        }
        let after = page.saturating_add(1);
        if page >= self.next {
            self.lack(self.next, page);
            self.next = after;
            return;
        }
        let stretch = self.gone.range(..=page).next_back();
        if let Some((from, to)) = stretch.map(|(from, to)| (*from, *to))
            && page < to
        {
            self.gone.remove(&from);
            self.lack(from, page);
            self.lack(after, to);
        }
    }

    fn lack(&mut self, from: u64, to: u64) {
        if from < to {
            self.gone.insert(from, to);
        }
    }

    /// Stretches of pages that are remembered.
    pub(super) fn stretches(&self) -> u64 {
        self.gone.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new(positions: &Positions, until: u64) -> Vec<u64> {
        (0..until).filter(|page| positions.is_new(*page)).collect()
    }

    #[test]
    fn without_damage_one_number_says_it() {
        let mut positions = Positions::default();
        for page in [0, 1, 5, 6] {
            assert!(positions.is_new(page));
            positions.have(page);
        }
        assert_eq!((positions.resume(), positions.stretches()), (7, 0));
        assert_eq!(new(&positions, 9), [7, 8]);
        positions.have(3);
        assert_eq!(positions.resume(), 7, "never back");
        for page in [u64::MAX, 8 + STEP_MAX] {
            positions.have(page);
            positions.have_after_damage(page);
        }
        assert_eq!(positions.resume(), 7, "no ring comes there");
        positions.have(7 + STEP_MAX);
        assert_eq!(positions.resume(), 8 + STEP_MAX);
    }

    #[test]
    fn what_damage_may_have_cost_is_new_until_something_after_it_comes() {
        let mut positions = Positions::default();
        positions.have(1);
        for page in [2, 5, 6, 9] {
            positions.have_after_damage(page);
        }
        assert_eq!((positions.resume(), positions.stretches()), (3, 2));
        assert_eq!(new(&positions, 12), [3, 4, 7, 8, 10, 11]);
        // One of them came, but after more damage.
        positions.have_after_damage(7);
        assert_eq!(new(&positions, 12), [3, 4, 8, 10, 11]);
        positions.have_after_damage(6);
        positions.have(3);
        assert_eq!(new(&positions, 12), [4, 8, 10, 11]);
        // The streamer has 5 to 7 no more.
        positions.have(8);
        assert_eq!((positions.resume(), positions.stretches()), (10, 0));
        positions.have_after_damage(12);
        assert_eq!(positions.resume(), 10);
        positions.have_until(12);
        assert_eq!((positions.resume(), positions.stretches()), (13, 0));
    }

    #[test]
    fn a_stretch_is_entered_in_its_middle() {
        let mut positions = Positions::default();
        positions.have_after_damage(10);
        assert_eq!((positions.resume(), positions.stretches()), (0, 1));
        positions.have(4);
        assert_eq!(new(&positions, 12), [5, 6, 7, 8, 9, 11]);
        positions.have_after_damage(7);
        assert_eq!(new(&positions, 12), [5, 6, 8, 9, 11]);
        positions.have(20);
        assert_eq!(new(&positions, 22), [21]);
    }
}
