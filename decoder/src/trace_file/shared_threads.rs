//! Finished spans around the records of threads that have rings in several sessions of their process.
//!
//! A record may lie in a span of another session. So the thread is walked from its end, over all its rings by tick, as
//! a single ring is, and the stack of the spans that end after each page is kept. When a page is loaded, the pages
//! of the thread that share its time are walked with it, each loaded when the walk comes to it. Only their finished
//! spans are looked at: other records do not change what lies around a record.
//!
//! Records of one tick have an order within their ring alone. Of the spans of several rings that end at one tick, the
//! one that began last is taken to end first, as spans that nest do. Whether a record lies in a span of another ring
//! that ends at its tick is not known.
//!
//! | page of | is loaded |
//! | --- | --- |
//! | the thread, when the dump is put together | once, if a finished span may end in it |
//! | the thread, when its records are shown | once |
//! | another session, in the time of that page | once more, if a finished span may end in it |
//!
//! Pages of a ring follow each other in time, so two rings have no more pairs of pages that share time than they
//! have pages together. Memory is that of the pages that share one moment, and of the spans in them.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use crate::blocks::page::{Around, InThread, Page};
use crate::blocks::walk::Record;
use crate::trace_file::finished_spans::{OpenSpans, ReachingSpans, UNKNOWN, finished, put};
use crate::trace_file::session::Session;

/// Where a page is: session, slot, and place in the slot.
pub(super) type PagePlace = (usize, usize, usize);

/// A page of the thread. Pages without records are left out: nothing in them lies in a span.
#[derive(Debug)]
struct ThreadPage {
    /// Tick of its last record, and where it is.
    last: (u64, PagePlace),
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
            others.take_after(page.last.0, &mut open);
            open.drop_later(page.last.0);
            let left = open.into_parts();
            top = self.reaching.keep(left);
            *kept = top;
            others.add(page.last.1, u64::MAX);
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
        let with_span = |record: Record| {
            let span = finished(&record, record.payload(bytes), page, schema);
            (record, span)
        };
        let records = page.records(bytes).filter(is_event).map(with_span);
        let mut records: Vec<_> = records.collect();
        records.sort_by_key(|(record, _)| record.tick);
        let spans = records.iter().map(|(record, span)| Finished {
            tick: record.tick,
            span: span.unwrap_or((record.tick, 0)),
            low: 0,
        });
        let mut spans: Vec<_> = spans.collect();
        find_lows(&mut spans);
        let mut later: Vec<_> = self.sharing_time(this).collect();
        let mut others = Backward::new(sessions);
        let mut open = self.reaching.open(of.top);
        for (at, (record, span)) in records.iter().enumerate().rev() {
            let own = &spans[at];
            while let Some(other) = later.pop_if(|other| other.last.0 >= own.tick) {
                others.add(other.last.1, this.last.0);
            }
            others.take_after(own.tick, &mut open);
            let same = spans[..=at].iter().rev();
            let same = same.take_while(|span| span.tick == own.tick);
            others.come_to(own.tick, this.last.1, same);
            others.take_behind(own, this.last.1, &mut open);
            let start = own.span.0;
            let is_tied = |from| others.ties.has_other(this.last.1, from..=start);
            let around = open.around_tied(own.tick, start, is_tied);
            put(ids, page, record.index, around);
            if let Some(span) = *span {
                open.push(others.ties.known(this.last.1, span));
            }
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

/// A finished span on the way back.
#[derive(Debug, Clone, Copy)]
struct Finished {
    /// That of its record: where it ended.
    tick: u64,
    /// Its start and id.
    span: (u64, u64),
    /// The earliest start of those of its page that end at this tick, up to it.
    low: u64,
}

/// Finds the earliest starts, in spans that are sorted by tick.
fn find_lows(spans: &mut [Finished]) {
    let mut before: Option<(u64, u64)> = None;
    for span in spans {
        let same = before.filter(|before| before.0 == span.tick);
        span.low = same.map_or(span.span.0, |same| same.1.min(span.span.0));
        before = Some((span.tick, span.low));
    }
}

/// The finished spans of a page that the walk has still to meet, the latest last.
struct PageSpans {
    place: PagePlace,
    spans: Vec<Finished>,
}

/// The finished spans of several pages of a thread, from the latest on. A page is added when the walk comes
/// to its last record, and its bytes are given back at once: what is kept is a few words for each span.
struct Backward<'s> {
    sessions: &'s [Session],
    /// The pages that have spans left.
    pages: Vec<PageSpans>,
    ties: Ties,
    /// Memory for the bytes of a page.
    bytes: Vec<u8>,
}

const fn is_one_ring(one: PagePlace, other: PagePlace) -> bool {
    one.0 == other.0 && one.1 == other.1
}

impl<'s> Backward<'s> {
    fn new(sessions: &'s [Session]) -> Self {
        Self {
            sessions,
            pages: Vec::new(),
            ties: Ties::default(),
            bytes: Vec::new(),
        }
    }

    /// Adds the spans of a page that end at `last` or before.
    fn add(&mut self, place: PagePlace, last: u64) {
        let session = &self.sessions[place.0];
        let page = page_at(self.sessions, place);
        if session.reaching.none_ends_in(page) {
            return;
        }
        page.load_into(&mut self.bytes);
        let bytes = &self.bytes;
        let span = |record: Record| {
            let span = finished(&record, record.payload(bytes), page, &session.schema)?;
            (record.tick <= last).then_some(Finished {
                tick: record.tick,
                span,
                low: 0,
            })
        };
        let mut spans: Vec<_> = page.records(bytes).filter_map(span).collect();
        spans.sort_by_key(|span| span.tick);
        find_lows(&mut spans);
        if !spans.is_empty() {
            self.pages.push(PageSpans { place, spans });
        }
    }

    /// The earliest start of the spans that are still to be met on pages of a ring and end at `tick`: up to the page
    /// at `to`.
    fn low_at(&self, tick: u64, to: PagePlace) -> Option<u64> {
        let pages = self.pages.iter();
        let pages = pages.filter(|page| is_one_ring(page.place, to) && page.place.2 <= to.2);
        let last = pages.filter_map(|page| page.spans.last());
        let here = last.filter(|span| span.tick == tick);
        here.map(|span| span.low).min()
    }

    /// Puts the spans that end after `tick` on the stack.
    fn take_after(&mut self, tick: u64, open: &mut OpenSpans<'_>) {
        self.take_while(|_, span| span.tick > tick, open);
    }

    /// Puts the spans that end behind the record `own` of the page at `place` on the stack. Those at its tick are
    /// behind it if they are on a later page of its ring, or if they are of a ring in which something began earlier
    /// that ends now than in its own ring.
    fn take_behind(&mut self, own: &Finished, place: PagePlace, open: &mut OpenSpans<'_>) {
        let low = self.low_at(own.tick, place);
        let low = low.map_or(own.low, |low| low.min(own.low));
        let is_behind = |other: PagePlace, span: &Finished| match is_one_ring(other, place) {
            true => (span.tick, other.2) > (own.tick, place.2),
            false => (span.tick, low) > (own.tick, span.low),
        };
        self.take_while(is_behind, open);
    }

    fn take_while(
        &mut self,
        is_behind: impl Fn(PagePlace, &Finished) -> bool,
        open: &mut OpenSpans<'_>,
    ) {
        while let Some(at) = self.latest(&is_behind) {
            let page = &mut self.pages[at];
            let (place, span) = (page.place, page.spans.pop());
            if page.spans.is_empty() {
                let _ = self.pages.swap_remove(at);
            }
            if let Some(span) = span {
                self.come_to(span.tick, place, std::iter::once(&span));
                let known = self.ties.known(place, span.span);
                let _ = open.around(span.tick, Some(known));
            }
        }
    }

    /// The walk comes to a tick, at which `own` end in the ring of `place`: finds what ends there in several rings.
    fn come_to<'a>(
        &mut self,
        tick: u64,
        place: PagePlace,
        own: impl Iterator<Item = &'a Finished>,
    ) {
        if self.ties.tick == tick {
            return;
        }
        self.ties.tick = tick;
        self.ties.starts.clear();
        for page in &self.pages {
            let spans = page.spans.iter().rev();
            for span in spans.take_while(|span| span.tick == tick) {
                self.ties.add(page.place, span.span.0);
            }
        }
        if !self.ties.starts.is_empty() {
            own.for_each(|span| self.ties.add(place, span.span.0));
        }
    }

    /// The page with the latest span of those that are behind. At one tick that is one of the ring in which
    /// something began first.
    fn latest(&self, is_behind: impl Fn(PagePlace, &Finished) -> bool) -> Option<usize> {
        let pages = self.pages.iter().enumerate();
        let found = pages.filter_map(|(at, page)| {
            let span = page.spans.last()?;
            let low = self.low_at(span.tick, page.place)?;
            let order = (span.tick, Reverse(low), page.place);
            is_behind(page.place, &Finished { low, ..*span }).then_some((order, at))
        });
        found.max().map(|(_, at)| at)
    }
}

/// When the spans began that end at one tick.
#[derive(Default)]
struct Ties {
    tick: u64,
    /// By session and slot of their ring.
    starts: BTreeMap<(usize, usize), BTreeSet<u64>>,
}

impl Ties {
    fn add(&mut self, (session, slot, _): PagePlace, start: u64) {
        let ring = self.starts.entry((session, slot)).or_default();
        let _ = ring.insert(start);
    }

    /// Whether one of another ring than that of `place` began in `starts`.
    fn has_other(&self, place: PagePlace, starts: RangeInclusive<u64>) -> bool {
        let mut others = self
            .starts
            .iter()
            .filter(|(ring, _)| **ring != (place.0, place.1));
        others.any(|(_, began)| began.range(starts.clone()).next().is_some())
    }

    /// What is known of a span. If one of another ring has both its ticks, each may lie in the other.
    fn known(&self, place: PagePlace, (start, id): (u64, u64)) -> (u64, u64) {
        match self.has_other(place, start..=start) {
            true => (start, UNKNOWN),
            false => (start, id),
        }
    }
}
