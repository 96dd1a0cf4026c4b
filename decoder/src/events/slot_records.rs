//! The records of one slot, page by page, in the order of time within what overlaps.
//!
//! The bytes of a page are loaded when it begins, into the memory of the page before it.

use std::rc::Rc;

use crate::blocks::page::Page;
use crate::blocks::walk::{Record, Reservation, Walk};
use crate::trace_file::session::{Session, Slot};
use crate::trace_file::spans::SpanPlaces;

/// A page that is loaded.
struct Loaded<'a> {
    page: &'a Page,
    bytes: Rc<Vec<u8>>,
    /// By index of the record: the finished span around it.
    around: Vec<u64>,
}

/// What is known of the place where a record lies.
pub(super) struct Placed<'a, 'l> {
    pub page: &'a Page,
    /// The bytes of the page.
    pub bytes: &'l Rc<Vec<u8>>,
    /// Id of the innermost finished span around it; 0: there is none.
    pub around: u64,
}

/// Records of a slot that were not given yet. The end of a page is a stop of its own: losses come
/// between pages.
pub(super) struct SlotRecords<'a> {
    session: &'a Session,
    /// Finds the finished spans around records; `None`: they are not looked for.
    places: Option<SpanPlaces<'a>>,
    pages: &'a [Page],
    /// Number of pages that were begun.
    begun: usize,
    /// The pages at hand: one, or several whose records lie between each other's.
    loaded: Vec<Loaded<'a>>,
    walk: Option<Walk>,
    /// In place of a walk: the records of pages that are not in the order of time, sorted, each with
    /// the place of its page in `loaded`.
    sorted: std::vec::IntoIter<(usize, Record)>,
    /// Place in `loaded` of the page of the record that was given last.
    at: usize,
}

impl<'a> SlotRecords<'a> {
    pub(super) fn new(
        session: &'a Session,
        slot: &'a Slot,
        places: Option<SpanPlaces<'a>>,
    ) -> Self {
        Self {
            session,
            places,
            pages: &slot.pages,
            begun: 0,
            loaded: Vec::new(),
            walk: None,
            sorted: Vec::new().into_iter(),
            at: 0,
        }
    }

    /// Writes the next record of the pages that were begun; `false`: they have no more.
    #[inline]
    pub(super) fn step(&mut self, record: &mut Record) -> bool {
        if let (Some(walk), Some(loaded)) = (&mut self.walk, self.loaded.first()) {
            let (bytes, shown) = (loaded.page.sound(&loaded.bytes), loaded.page.shown());
            while let Some(step) = walk.step(bytes, shown, record) {
                if let Reservation::Event = step {
                    return true;
                }
            }
        }
        self.step_sorted(record)
    }

    #[inline(never)]
    fn step_sorted(&mut self, record: &mut Record) -> bool {
        self.walk = None;
        let Some((at, next)) = self.sorted.next() else {
            return false;
        };
        (self.at, *record) = (at, next);
        true
    }

    /// Where the record lies that was given last.
    #[inline]
    pub(super) fn placed(&self, record: &Record) -> Option<Placed<'a, '_>> {
        let loaded = self.loaded.get(self.at)?;
        let around = loaded.around.get(record.index as usize);
        Some(Placed {
            page: loaded.page,
            bytes: &loaded.bytes,
            around: around.copied().unwrap_or(0),
        })
    }

    /// The earliest tick of all records and pages; 0: there is none.
    pub(super) fn earliest_tick(&self) -> u64 {
        let ticks = self.pages.iter().map(|page| {
            let base = page.header.tick_base;
            page.summary.ticks.map_or(base, |(low, _)| low.min(base))
        });
        ticks.min().unwrap_or(0)
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
        let run = unordered(pages);
        let count = run.max(1).min(pages.len());
        self.begun += count;
        self.at = 0;
        let bytes = self.loaded.drain(..).next().map(|loaded| loaded.bytes);
        let mut bytes = bytes.unwrap_or_default();
        for page in &pages[..count] {
            self.load(page, std::mem::take(&mut bytes));
        }
        match run {
            0 => self.walk = self.loaded.first().map(|loaded| loaded.page.walk()),
            _ => self.sorted = by_time(&self.loaded).into_iter(),
        }
    }

    /// Loads a page, into `bytes` unless something holds a payload in them.
    fn load(&mut self, page: &'a Page, mut bytes: Rc<Vec<u8>>) {
        match Rc::get_mut(&mut bytes) {
            Some(bytes) => page.load_into(bytes),
            None => bytes = Rc::new(page.load()),
        }
        let around = self
            .places
            .map_or_else(Vec::new, |places| places.around(self.session, page, &bytes));
        self.loaded.push(Loaded {
            page,
            bytes,
            around,
        });
    }

    /// Gives the memory back: there is no other page.
    pub(super) fn end(&mut self) {
        self.loaded = Vec::new();
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
fn by_time(pages: &[Loaded<'_>]) -> Vec<(usize, Record)> {
    let mut records = Vec::new();
    for (at, Loaded { page, bytes, .. }) in pages.iter().enumerate() {
        records.extend(page.records(bytes).map(|record| (at, record)));
    }
    records.sort_by_key(|(_, record)| record.tick);
    records
}
