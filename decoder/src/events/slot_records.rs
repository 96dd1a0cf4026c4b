//! The records of one slot, page by page, in the order of time within what overlaps.

use crate::blocks::page::{Page, Record, Reservation, Walk};

/// Records of a slot that were not given yet. The end of a page is a stop of its own: losses come
/// between pages.
pub(super) struct SlotRecords<'a> {
    pages: &'a [Page],
    /// Number of pages that were begun.
    begun: usize,
    /// The page of the record that was given last.
    page: Option<&'a Page>,
    walk: Option<Walk<'a>>,
    /// In place of a walk: the records of pages that are not in the order of time, sorted.
    sorted: std::vec::IntoIter<(&'a Page, Record<'a>)>,
}

impl<'a> SlotRecords<'a> {
    pub(super) fn new(pages: &'a [Page]) -> Self {
        Self {
            pages,
            begun: 0,
            page: None,
            walk: None,
            sorted: Vec::new().into_iter(),
        }
    }

    /// The next record of the pages that were begun; `None`: they have no more.
    #[inline]
    pub(super) fn step(&mut self) -> Option<Record<'a>> {
        if let Some(walk) = &mut self.walk {
            while let Some(step) = walk.step() {
                if let Reservation::Event(record) = step {
                    return Some(record);
                }
            }
        }
        self.step_sorted()
    }

    #[inline(never)]
    fn step_sorted(&mut self) -> Option<Record<'a>> {
        self.walk = None;
        let (page, record) = self.sorted.next()?;
        self.page = Some(page);
        Some(record)
    }

    /// The page of the record that was given last.
    #[inline]
    pub(super) fn page(&self) -> Option<&'a Page> {
        self.page
    }

    /// Number of pages that were begun.
    pub(super) fn begun(&self) -> usize {
        self.begun
    }

    /// The page that [`Self::begin_page`] will begin.
    pub(super) fn next_page(&self) -> Option<&'a Page> {
        self.pages.get(self.begun)
    }

    /// The page with this number in the slot, or the last one.
    pub(super) fn page_or_last(&self, number: usize) -> Option<&'a Page> {
        self.pages.get(number).or(self.pages.last())
    }

    /// Begins the next page, or all pages from it on whose records lie between each other's.
    pub(super) fn begin_page(&mut self) {
        let pages = &self.pages[self.begun..];
        match unordered(pages) {
            0 => {
                self.page = pages.first();
                self.walk = pages.first().map(Page::walk);
                self.begun += usize::from(!pages.is_empty());
            }
            run => {
                self.begun += run;
                self.sorted = by_time(&pages[..run]).into_iter();
            }
        }
    }
}

/// How many pages from the first one on hold records that step back in time, within a page or
/// from one to the next; 0: the first page is in order.
fn unordered(pages: &[Page]) -> usize {
    let Some((first, others)) = pages.split_first() else {
        return 0;
    };
    let mut latest = first.summary.ticks.map_or(0, |(_, high)| high);
    let overlaps = others.iter().take_while(|page| {
        let (low, high) = page.summary.ticks.unwrap_or((u64::MAX, 0));
        let before = latest;
        latest = latest.max(high);
        page.ring == first.ring && low < before
    });
    match overlaps.count() {
        0 if first.summary.backward == 0 => 0,
        more => 1 + more,
    }
}

/// The records of pages by tick; records of one tick stay in the order of reservation. Memory is
/// that of the pages that overlap.
fn by_time(pages: &[Page]) -> Vec<(&Page, Record<'_>)> {
    let mut records = Vec::new();
    for page in pages {
        let mut walk = page.walk();
        while let Some(step) = walk.step() {
            if let Reservation::Event(record) = step {
                records.push((page, record));
            }
        }
    }
    records.sort_by_key(|(_, record)| record.tick);
    records
}
