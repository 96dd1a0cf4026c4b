//! How far a slot was taken.
//!
//! Two positions: a page is *taken* when it is in a batch, and *written* when the batch has left
//! this process for good. A failed write goes back from the first to the second.

#![cfg_attr(
    not(feature = "stream"),
    allow(
        unreachable_pub,
        reason = "the machines of streams show it to their tests"
    )
)]

/// How far a slot was taken, written and skipped, in pages since its first claim.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct SlotProgress {
    /// Number of the next page to take.
    pub next: u64,
    /// The slot was not looked at yet, and reading starts at its oldest page.
    at_oldest: bool,
    /// Number of the first page that is not written; at most `next`.
    pub written: u64,
    /// What was passed over.
    gaps: Gaps,
    /// `gaps` as of the last write; a rewind restores them.
    gaps_before: Gaps,
    /// Pages that are gone, since they were last asked for; `None`: no reader asks.
    holes: Option<Vec<Hole>>,
}

/// Pages of a slot that were overwritten before they could be copied. They never come back, so no
/// rewind takes a hole back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hole {
    /// The first of them.
    pub from: u64,
    /// The page after the last.
    pub to: u64,
    /// Reservations in them; 0: not known.
    pub events: u64,
}

/// What of a slot is not there any more.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Gaps {
    /// Pages that were overwritten before they could be copied.
    pages: u64,
    /// Events before and between the pages taken, that no page taken has.
    events: u64,
    /// Reservations of the slot up to the end of the last page taken.
    through: u64,
    /// Pages that another reader took, or this one before a rewind, are between that page and the next one:
    /// how many reservations they have is not known.
    is_unknown: bool,
    /// Number of the page that was taken last, and the reservations up to its end.
    last: Option<u64>,
    end: u64,
}

impl SlotProgress {
    /// Starts at page `next`; `None`: at the oldest page that the ring still has.
    pub fn new(next: Option<u64>) -> Self {
        Self {
            next: next.unwrap_or(0),
            written: next.unwrap_or(0),
            at_oldest: next.is_none(),
            ..Self::default()
        }
    }

    /// Keeps `next` within the last `pages` pages before `produced`, the only ones a ring can hold.
    /// Pages that it passes over are counted as skipped. A *produced* that moved back, which no
    /// writer does, moves the position back without a count.
    pub fn bound(&mut self, produced: u64, pages: u64) {
        let oldest = produced.saturating_sub(pages);
        if self.next > produced || self.at_oldest {
            if self.at_oldest {
                self.add_hole(0, oldest);
            }
            (self.next, self.written) = (oldest, oldest);
            self.at_oldest = false;
        } else if self.next < oldest {
            self.gaps.pages = self.gaps.pages.saturating_add(oldest - self.next);
            self.add_hole(self.next, oldest);
            self.next = oldest;
        }
    }

    /// Pages that were overwritten before they could be copied.
    pub fn skipped(&self) -> u64 {
        self.gaps.pages
    }

    /// Events before and between the pages taken, that no page taken has.
    pub fn events_between(&self) -> u64 {
        self.gaps.events
    }

    /// Counts what a page holds that is taken: the reservations from `first` up to `through`. One
    /// that was open may be taken again.
    pub fn took(&mut self, first: u64, through: u64) {
        let gap = match std::mem::take(&mut self.gaps.is_unknown) {
            true => 0,
            false => first.saturating_sub(self.gaps.through),
        };
        self.gaps.events = self.gaps.events.saturating_add(gap);
        self.count_hole(first.saturating_sub(self.gaps.end));
        (self.gaps.last, self.gaps.end) = (Some(self.next), through.max(first));
        self.gaps.through = self.gaps.through.max(through).max(first);
    }

    /// Notes holes from now on, to be asked for with [`SlotProgress::take_holes`].
    pub fn note_holes(&mut self) {
        self.holes.get_or_insert_default();
    }

    /// The holes that were found since the last call.
    #[cfg(any(feature = "stream", test))]
    pub fn take_holes(&mut self) -> Vec<Hole> {
        self.holes.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Notes how many events were in the hole before the page that is taken now, if they can all be
    /// told: the page before the hole was the last one taken.
    fn count_hole(&mut self, events: u64) {
        let (next, last) = (self.next, self.gaps.last);
        let hole = self.holes.iter_mut().flatten().next_back();
        let is_before = |hole: &&mut Hole| hole.to == next && hole.events == 0;
        if let Some(hole) = hole.filter(is_before)
            && last.map_or(0, |page| page.saturating_add(1)) == hole.from
        {
            hole.events = events;
        }
    }

    fn add_hole(&mut self, from: u64, to: u64) {
        let Some(holes) = self.holes.as_mut().filter(|_| from < to) else {
            return;
        };
        match holes.last_mut() {
            Some(last) if last.to == from => last.to = to,
            _ => holes.push(Hole {
                from,
                to,
                events: 0,
            }),
        }
    }

    /// Passes over a page that was overwritten.
    pub fn skip(&mut self) {
        self.gaps.pages = self.gaps.pages.saturating_add(1);
        self.add_hole(self.next, self.next + 1);
        self.next += 1;
    }

    /// Goes on at `page`; never goes back.
    pub fn skip_to(&mut self, page: u64) {
        if self.at_oldest || page > self.next {
            (self.next, self.at_oldest) = (page, false);
        }
    }

    /// Goes on at `page`, as [`SlotProgress::skip_to`]: another reader took those before it.
    pub fn skip_taken(&mut self, page: u64) {
        self.gaps.is_unknown |= self.at_oldest || page > self.next;
        self.skip_to(page);
    }

    /// Counts every page taken as written; returns the new written position if it moved.
    pub fn write_all(&mut self) -> Option<u64> {
        self.gaps_before = self.gaps;
        let moved = self.written != self.next;
        self.written = self.next;
        moved.then_some(self.written)
    }

    /// Counts the pages taken before `page` as written; returns the new written position if it
    /// moved. A page beyond those taken is not believed.
    pub fn write_to(&mut self, page: u64) -> Option<u64> {
        let page = page.min(self.next);
        if page <= self.written {
            return None;
        }
        self.written = page;
        self.gaps_before = self.gaps;
        Some(page)
    }

    /// Goes back to the written position: the pages after it will be taken, or skipped, again.
    pub fn rewind(&mut self) {
        self.next = self.written;
        self.gaps = self.gaps_before;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_stays_within_what_can_be_there() {
        let mut oldest = SlotProgress::new(None);
        oldest.bound(10, 4);
        assert_eq!((oldest.next, oldest.written, oldest.skipped()), (6, 6, 0));
        // Four pages were overwritten before they could be copied.
        oldest.bound(14, 4);
        assert_eq!((oldest.next, oldest.written, oldest.skipped()), (10, 6, 4));
        // Shared memory goes back: so does the position, and nothing is lost by that.
        oldest.bound(3, 4);
        assert_eq!((oldest.next, oldest.written, oldest.skipped()), (0, 0, 4));
        let mut from = SlotProgress::new(Some(2));
        from.bound(3, 4);
        assert_eq!((from.next, from.written), (2, 2));
    }

    #[test]
    fn holes_are_told_once_with_what_was_in_them() {
        let hole = |from, to, events| Hole { from, to, events };
        let mut progress = SlotProgress::new(None);
        progress.bound(10, 4);
        assert_eq!(progress.take_holes(), [], "nobody asks");
        let mut progress = SlotProgress::new(None);
        progress.note_holes();
        progress.bound(10, 4);
        progress.took(100, 110);
        assert_eq!(progress.take_holes(), [hole(0, 6, 100)]);
        progress.next += 1;
        progress.bound(13, 4);
        progress.skip();
        progress.took(150, 160);
        assert_eq!(progress.take_holes(), [hole(7, 10, 40)]);
        // What was taken and not written is gone when it is looked for again.
        progress.next += 1;
        progress.rewind();
        progress.bound(20, 4);
        assert_eq!(progress.take_holes(), [hole(6, 16, 0)]);
        assert_eq!(progress.take_holes(), []);
    }

    #[test]
    fn events_between_pages_are_counted_once() {
        let mut progress = SlotProgress::new(None);
        progress.took(100, 110);
        progress.took(110, 120);
        assert_eq!(progress.events_between(), 100, "before the first page");
        // An open page, more of it, then the whole of it.
        progress.took(120, 123);
        progress.took(120, 125);
        progress.write_all();
        progress.took(130, 140);
        assert_eq!(progress.events_between(), 105);
        progress.rewind();
        assert_eq!(progress.events_between(), 100, "as of the last write");
        progress.took(120, 130);
        progress.took(130, 140);
        assert_eq!(progress.events_between(), 100);
        // A page that says anything.
        progress.took(u64::MAX, 0);
        progress.took(0, u64::MAX);
        assert_eq!(progress.events_between(), u64::MAX - 140 + 100);
    }

    #[test]
    fn a_rewind_takes_again_what_is_not_written_and_skips_it_again() {
        let mut progress = SlotProgress::new(Some(0));
        progress.next += 3;
        assert_eq!(progress.write_to(2), Some(2));
        assert_eq!(progress.write_to(2), None, "it is written");
        assert_eq!(progress.write_to(9), Some(3), "not beyond what was taken");
        progress.skip();
        progress.rewind();
        assert_eq!((progress.next, progress.skipped()), (3, 0));
        progress.skip();
        assert_eq!(progress.write_all(), Some(4));
        assert_eq!(progress.write_all(), None);
        progress.rewind();
        assert_eq!((progress.next, progress.skipped()), (4, 1));
        progress.skip_to(3);
        assert_eq!(progress.next, 4, "never back");
        progress.skip_to(7);
        assert_eq!(progress.next, 7);
    }

    #[test]
    fn events_of_pages_that_another_reader_took_are_not_between_pages() {
        let mut progress = SlotProgress::new(None);
        progress.note_holes();
        progress.skip_taken(4);
        progress.bound(8, 8);
        progress.took(500, 510);
        assert_eq!(
            (progress.events_between(), progress.take_holes()),
            (0, vec![])
        );
        progress.next += 1;
        progress.took(517, 520);
        assert_eq!(progress.events_between(), 7, "between those that it took");
    }
}
