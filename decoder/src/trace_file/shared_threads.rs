//! Finished spans around the records of threads that have rings in several sessions of their process.
//!
//! A record may lie in a span of another session. So the records of such a thread have one order: by tick, and
//! those of one tick in the order of the sessions. The thread is walked from its end, as a single ring is, and
//! the stack of spans at the end of each page is kept. When a page is loaded, the pages of the thread that
//! share its time are walked with it, each loaded when the walk comes to it. Only their finished spans are
//! looked at: other records do not change what lies around a record.
//!
//! | page of | is loaded |
//! | --- | --- |
//! | the thread, when the dump is put together | once, if a finished span may end in it |
//! | the thread, when its records are shown | once |
//! | another session, in the time of that page | once more, if a finished span may end in it |
//!
//! Pages of a ring follow each other in time, so two rings have no more pairs of pages that share time than they
//! have pages together. Memory is that of the pages that share one moment, and of the spans in them.

use crate::blocks::page::{Around, InThread, Page};
use crate::blocks::walk::Record;
use crate::trace_file::finished_spans::{OpenSpans, ReachingSpans, finished, put};
use crate::trace_file::session::Session;

/// Where a page is: session, slot, and place in the slot.
pub(super) type PagePlace = (usize, usize, usize);

/// A place in the order of a thread: tick and page.
type Order = (u64, PagePlace);

/// A page of the thread. Pages without records are left out: nothing in them lies in a span.
#[derive(Debug)]
struct ThreadPage {
    /// The place of its last record.
    last: Order,
    /// Tick of its first record.
    low: u64,
    /// The smallest of these ticks, of this page and all later ones.
    low_from_here: u64,
}

/// A thread that has rings in several sessions.
#[derive(Debug)]
pub(crate) struct SharedThread {
    /// Its pages, by their last record.
    pages: Vec<ThreadPage>,
    reaching: ReachingSpans,
}

impl SharedThread {
    /// The thread with these pages, number `thread`. Notes in each page which spans reach beyond it.
    pub(super) fn join(sessions: &mut [Session], thread: usize, places: &[PagePlace]) -> Self {
        let mut this = Self {
            pages: in_order(sessions, places),
            reaching: ReachingSpans::default(),
        };
        let tops = this.walk(sessions);
        for (at, (page, top)) in this.pages.iter().zip(tops).enumerate() {
            let (session, slot, place) = page.last.1;
            let page = &mut sessions[session].slots[slot].pages[place];
            let ring = page.around.of_ring();
            page.around = Around::Thread(InThread {
                thread: thread as u32,
                page: at as u32,
                top,
                ring,
            });
        }
        this
    }

    /// Walks the thread from its end; returns the innermost span that reaches beyond each page.
    fn walk(&mut self, sessions: &[Session]) -> Vec<u32> {
        let mut others = Backward::new(sessions);
        let mut top = 0;
        let mut tops = vec![0; self.pages.len()];
        for (page, kept) in self.pages.iter().zip(&mut tops).rev() {
            let mut open = self.reaching.open(top);
            others.take_later_than(page.last, &mut open);
            open.drop_later(page.last.0);
            let left = open.into_parts();
            top = self.reaching.keep(left);
            *kept = top;
            others.add(page.last.1, (u64::MAX, page.last.1));
        }
        tops
    }

    /// Puts the ids of the finished spans around the records of a page into `ids`, by index of the record.
    /// Records of functions are left out.
    pub(super) fn put_around(
        &self,
        sessions: &[Session],
        of: &InThread,
        (page, bytes): (&Page, &[u8]),
        ids: &mut Vec<u64>,
    ) {
        let Some(this) = self.pages.get(of.page as usize) else {
            return;
        };
        let schema = &sessions[this.last.1.0].schema;
        let is_event = |record: &Record| {
            let ty = schema.find(record.type_id);
            ty.is_none_or(|ty| ty.function.is_none())
        };
        let mut records: Vec<_> = page.records(bytes).filter(is_event).collect();
        records.sort_by_key(|record| record.tick);
        let mut later: Vec<_> = self.sharing_time(this).collect();
        let mut others = Backward::new(sessions);
        let mut open = self.reaching.open(of.top);
        for record in records.iter().rev() {
            let order = (record.tick, this.last.1);
            while let Some(other) = later.pop_if(|other| other.last > order) {
                others.add(other.last.1, this.last);
            }
            others.take_later_than(order, &mut open);
            let span = finished(record, record.payload(bytes), page, schema);
            put(ids, page, record.index, open.around(record.tick, span));
        }
    }

    /// The other pages with records in the time of this one, by their last record.
    fn sharing_time<'t>(&'t self, this: &'t ThreadPage) -> impl Iterator<Item = &'t ThreadPage> {
        let first = self.pages.partition_point(|page| page.last.0 < this.low);
        let high = this.last.0;
        let pages = self.pages[first..].iter();
        let pages = pages.take_while(move |page| page.low_from_here <= high);
        pages.filter(move |page| page.low <= high && page.last.1 != this.last.1)
    }
}

/// The pages that have records, by the last of them.
fn in_order(sessions: &[Session], places: &[PagePlace]) -> Vec<ThreadPage> {
    let page = |place: &PagePlace| {
        let (low, high) = page_at(sessions, *place).summary.ticks?;
        Some(ThreadPage {
            last: (high, *place),
            low,
            low_from_here: low,
        })
    };
    let mut pages: Vec<_> = places.iter().filter_map(page).collect();
    pages.sort_by_key(|page| page.last);
    let mut low = u64::MAX;
    for page in pages.iter_mut().rev() {
        low = low.min(page.low);
        page.low_from_here = low;
    }
    pages
}

fn page_at(sessions: &[Session], place: PagePlace) -> &Page {
    &sessions[place.0].slots[place.1].pages[place.2]
}

/// A finished span on the way back: the tick of its record; its start and id.
type Finished = (u64, (u64, u64));

/// The finished spans of several pages of a thread, from the latest on. A page is added when the walk comes
/// to its last record, and its bytes are given back at once: what is kept is a few words for each span.
struct Backward<'s> {
    sessions: &'s [Session],
    /// The pages that have spans left, and these, the latest last.
    pages: Vec<(PagePlace, Vec<Finished>)>,
    /// Memory for the bytes of a page.
    bytes: Vec<u8>,
}

impl<'s> Backward<'s> {
    fn new(sessions: &'s [Session]) -> Self {
        Self {
            sessions,
            pages: Vec::new(),
            bytes: Vec::new(),
        }
    }

    /// Adds the spans of a page that are earlier than `before`.
    fn add(&mut self, place: PagePlace, before: Order) {
        let session = &self.sessions[place.0];
        let page = page_at(self.sessions, place);
        if session.reaching.none_ends_in(page) {
            return;
        }
        page.load_into(&mut self.bytes);
        let bytes = &self.bytes;
        let span = |record: Record| {
            let span = finished(&record, record.payload(bytes), page, &session.schema)?;
            ((record.tick, place) <= before).then_some((record.tick, span))
        };
        let mut spans: Vec<_> = page.records(bytes).filter_map(span).collect();
        spans.sort_by_key(|(tick, _)| *tick);
        if !spans.is_empty() {
            self.pages.push((place, spans));
        }
    }

    /// Puts the spans that are later than `order` on the stack.
    fn take_later_than(&mut self, order: Order, open: &mut OpenSpans<'_>) {
        while let Some((tick, span)) = self.pop_later_than(order) {
            let _ = open.around(tick, Some(span));
        }
    }

    fn pop_later_than(&mut self, order: Order) -> Option<Finished> {
        let last = |(place, spans): &(PagePlace, Vec<Finished>)| {
            spans.last().map(|(tick, _)| (*tick, *place))
        };
        let pages = self.pages.iter().enumerate();
        let (at, latest) = pages
            .map(|(at, page)| (at, last(page)))
            .max_by_key(|(_, last)| *last)?;
        if latest <= Some(order) {
            return None;
        }
        let span = self.pages[at].1.pop();
        if self.pages[at].1.is_empty() {
            let _ = self.pages.swap_remove(at);
        }
        span
    }
}
