//! Which sealed pages of a slot are stored.
//!
//! Pages come in order and each once, so one number says it: the page after the last. Only damage
//! in a segment makes holes before that number. Holes are remembered until the streamer has sent
//! something after them: what it then has not sent, it no longer has.

use std::collections::BTreeMap;

/// Most pages between the last page of a slot and the next one that is accepted: a ring that
/// switches a page each microsecond needs 12 days for them. After a page with a number that no ring
/// comes to, all real pages would count as stored.
pub(super) const STEP_MAX: u64 = 1 << 40;
/// Bytes of memory that one hole takes.
pub(super) const HOLE_BYTES: u64 = 48;

/// Where a page belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PagePlace {
    pub(super) slot: u32,
    /// The page is not stored yet.
    pub(super) is_new: bool,
}

/// What precedes a page in its segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Before {
    /// Whole blocks only.
    Whole,
    /// Damage, in which earlier pages may have been destroyed.
    Damage,
}

/// The stored sealed pages of one slot. They come by ascending number.
#[derive(Debug, Default)]
pub(super) struct Positions {
    /// The page after the last one that is stored.
    next: u64,
    /// Pages before `next` that damage may have destroyed: from the first of a hole to the page
    /// after its last. A streamer that still has them sends them before anything new.
    holes: BTreeMap<u64, u64>,
    /// The page with which the present connection began: what is between is in another store.
    begun_at: u64,
}

impl Positions {
    /// The page at which a streamer goes on: every page before it is stored, or will never come.
    pub(super) fn resume(&self) -> u64 {
        let first = self.holes.first_key_value();
        first.map_or(self.next, |(from, _)| *from)
    }

    /// The page after the last one that is stored.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// Notes the page with which a connection begins.
    pub(super) fn begin_at(&mut self, page: u64) {
        self.begun_at = page;
    }

    /// Pages between the last one that is stored and this one that no store has, as far as known here.
    pub(super) fn skipped_before(&self, page: u64) -> u64 {
        page.saturating_sub(self.next.max(self.begun_at))
    }

    /// Whether a real ring can have come to this page.
    fn may_come_to(&self, page: u64) -> bool {
        page <= self.next.saturating_add(STEP_MAX)
    }

    /// Whether a page is not stored.
    pub(super) fn is_new(&self, page: u64) -> bool {
        let hole = self.holes.range(..=page).next_back();
        page >= self.next || hole.is_some_and(|(_, to)| page < *to)
    }

    /// Notes that a page is stored. Its streamer has no page before it that is not.
    pub(super) fn have(&mut self, page: u64) {
        self.have_until(page.saturating_add(1));
    }

    /// Notes that the pages before `next` are stored, or will never come.
    pub(super) fn have_until(&mut self, next: u64) {
        if !self.may_come_to(next.saturating_sub(1)) {
            return;
        }
        self.next = self.next.max(next);
        let later = self.holes.split_off(&next);
        let cut = self.holes.pop_last();
        self.holes = later;
        if let Some((_, to)) = cut.filter(|(_, to)| *to > next) {
            self.holes.insert(next, to);
        }
    }

    /// Notes that a page is stored after damage, in which the pages before it may have been
    /// destroyed.
    pub(super) fn have_after_damage(&mut self, page: u64) {
        if !self.may_come_to(page) {
            return;
        }
        let after = page.saturating_add(1);
        if page >= self.next {
            self.add_hole(self.next, page);
            self.next = after;
            return;
        }
        let hole = self.holes.range(..=page).next_back();
        if let Some((from, to)) = hole.map(|(from, to)| (*from, *to))
            && page < to
        {
            self.holes.remove(&from);
            self.add_hole(from, page);
            self.add_hole(after, to);
        }
    }

    /// Adds a hole, unless it is empty.
    fn add_hole(&mut self, from: u64, to: u64) {
        if from < to {
            self.holes.insert(from, to);
        }
    }

    /// Number of holes.
    pub(super) fn holes(&self) -> u64 {
        self.holes.len() as u64
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
        assert_eq!((positions.resume(), positions.holes()), (7, 0));
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
    fn pages_that_another_store_has_are_not_skipped() {
        let mut positions = Positions::default();
        positions.have(4);
        assert_eq!(positions.skipped_before(9), 4);
        positions.begin_at(7);
        assert_eq!(positions.skipped_before(9), 2);
        positions.have(9);
        assert_eq!(
            (positions.skipped_before(10), positions.skipped_before(0)),
            (0, 0)
        );
    }

    #[test]
    fn what_damage_may_have_cost_is_new_until_something_after_it_comes() {
        let mut positions = Positions::default();
        positions.have(1);
        for page in [2, 5, 6, 9] {
            positions.have_after_damage(page);
        }
        assert_eq!((positions.resume(), positions.holes()), (3, 2));
        assert_eq!(new(&positions, 12), [3, 4, 7, 8, 10, 11]);
        // One of them came, but after more damage.
        positions.have_after_damage(7);
        assert_eq!(new(&positions, 12), [3, 4, 8, 10, 11]);
        positions.have_after_damage(6);
        positions.have(3);
        assert_eq!(new(&positions, 12), [4, 8, 10, 11]);
        // The streamer has 5 to 7 no more.
        positions.have(8);
        assert_eq!((positions.resume(), positions.holes()), (10, 0));
        positions.have_after_damage(12);
        assert_eq!(positions.resume(), 10);
        positions.have_until(12);
        assert_eq!((positions.resume(), positions.holes()), (13, 0));
    }

    #[test]
    fn a_stretch_is_entered_in_its_middle() {
        let mut positions = Positions::default();
        positions.have_after_damage(10);
        assert_eq!((positions.resume(), positions.holes()), (0, 1));
        positions.have(4);
        assert_eq!(new(&positions, 12), [5, 6, 7, 8, 9, 11]);
        positions.have_after_damage(7);
        assert_eq!(new(&positions, 12), [5, 6, 8, 9, 11]);
        positions.have(20);
        assert_eq!(new(&positions, 22), [21]);
    }
}
