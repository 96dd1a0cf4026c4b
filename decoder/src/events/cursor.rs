//! Walks one slot page by page, with its losses and its entered spans.
//!
//! A cursor finds the next item ([`Cursor::advance`]) before it makes it ([`Cursor::take`]), so
//! that the merge compares times without building events.

use std::collections::HashMap;

use ringmark_format::RingId;
use ringmark_format::schema::Shape;

use crate::blocks::page::{Page, Record, Reservation, Walk};
use crate::events::event::{Event, Lost, Output};
use crate::trace_file::loss::{self, SlotLosses};
use crate::trace_file::schema::EventType;
use crate::trace_file::session::{Session, Slot};
use crate::trace_file::spans::finished_id;
use crate::trace_file::time::NearClock;

/// Deepest nesting of entered spans that is followed.
const ENTERED_MAX: usize = 4096;

/// Spans of a session that were made and not closed, by id: their parent and type.
#[derive(Debug, Default)]
pub(crate) struct Spans<'a> {
    open: HashMap<u64, (u64, &'a EventType)>,
}

/// A time for the merge: in ns, of the session or the wall clock; then the tick.
pub(crate) type Moment = (u64, u64);

/// A slot on its way through the merge.
///
/// Its times never go back: a record with an earlier tick than the one before it has the time of
/// that one in the merge, and its own time in the output.
pub(crate) struct Cursor<'a> {
    session: &'a Session,
    session_number: usize,
    pages: &'a [Page],
    page: Option<&'a Page>,
    next_page: usize,
    walk: Option<Walk<'a>>,
    /// In place of a walk: the records of pages that are not in the order of time, sorted.
    sorted: std::vec::IntoIter<(&'a Page, Record<'a>)>,
    losses: SlotLosses,
    next_loss: usize,
    /// The record that comes next; `None`: a loss.
    record: Option<Record<'a>>,
    t_ns: u64,
    latest_ns: u64,
    latest_tick: u64,
    by_wall: bool,
    clock: NearClock,
    has_spans: bool,
    ring: Option<RingId>,
    entered: Vec<u64>,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(
        session: &'a Session,
        session_number: usize,
        slot: &'a Slot,
        by_wall: bool,
    ) -> Self {
        Self {
            session,
            session_number,
            pages: &slot.pages,
            page: None,
            next_page: 0,
            walk: None,
            sorted: Vec::new().into_iter(),
            losses: loss::of_slot(session, slot),
            next_loss: 0,
            record: None,
            t_ns: 0,
            latest_ns: 0,
            latest_tick: 0,
            by_wall,
            clock: NearClock::default(),
            has_spans: session.has_spans,
            ring: None,
            entered: Vec::new(),
        }
    }

    /// Finds the next item; returns its time for the merge, which never goes back.
    #[inline]
    pub(crate) fn advance(&mut self) -> Option<Moment> {
        loop {
            match self.walk.as_mut().and_then(Walk::step) {
                Some(Reservation::Event(record)) => {
                    let tick = record.tick;
                    self.record = Some(record);
                    return Some(self.time(tick));
                }
                Some(_) => {}
                None => match self.after_page() {
                    Next::Page => {}
                    Next::Record(tick) => return Some(self.time(tick)),
                    Next::Loss(time) => return Some(time),
                    Next::End => return None,
                },
            }
        }
    }

    #[inline]
    fn time(&mut self, tick: u64) -> Moment {
        self.t_ns = self.clock.t_ns(&self.session.clock, tick);
        self.latest_ns = self.latest_ns.max(self.t_ns);
        self.latest_tick = self.latest_tick.max(tick);
        self.key()
    }

    #[inline]
    fn key(&self) -> Moment {
        let ns = if self.by_wall {
            self.session.clock.wall_ns(self.latest_ns)
        } else {
            self.latest_ns
        };
        (ns, self.latest_tick)
    }

    /// Finds what comes next when the page at hand has ended: the remaining sorted records, the
    /// losses before the next page, then that page.
    #[inline(never)]
    fn after_page(&mut self) -> Next {
        self.walk = None;
        if let Some((page, record)) = self.sorted.next() {
            self.page = Some(page);
            self.record = Some(record);
            return Next::Record(record.tick);
        }
        let loss = self.losses.items.get(self.next_loss);
        if loss.is_some_and(|(before, _)| *before <= self.next_page) {
            self.record = None;
            self.next_loss += 1;
            let next = self.pages.get(self.next_page);
            let time = match next {
                Some(page) => self.time(page.header.tick_base),
                None => self.key(),
            };
            return Next::Loss(time);
        }
        let Some(page) = self.pages.get(self.next_page) else {
            self.record = None;
            return Next::End;
        };
        if self.ring.replace(page.ring) != Some(page.ring) {
            self.entered.clear();
        }
        let run = unordered(&self.pages[self.next_page..]);
        if run == 0 {
            self.next_page += 1;
            self.page = Some(page);
            self.walk = Some(page.walk());
        } else {
            let pages = &self.pages[self.next_page..self.next_page + run];
            self.next_page += run;
            self.sorted = by_time(pages).into_iter();
        }
        Next::Page
    }

    /// Gives the item that [`Self::advance`] found.
    #[inline]
    pub(crate) fn take(&mut self, spans: &mut [Spans<'a>]) -> Option<Output<'a>> {
        match self.record {
            Some(record) => self.event(&record, spans).map(Output::Event),
            None => self.lost().map(Output::Lost),
        }
    }

    /// The latest loss that [`Self::after_page`] passed.
    #[cold]
    fn lost(&self) -> Option<Lost<'a>> {
        let index = self.next_loss.checked_sub(1)?;
        let (before, loss) = *self.losses.items.get(index)?;
        let page = self.pages.get(before).or(self.pages.last());
        Some(Lost {
            session: self.session,
            page,
            ring: page.map(|p| p.ring),
            t_ns: self.latest_ns,
            loss,
        })
    }

    #[inline]
    fn event(&mut self, record: &Record<'a>, spans: &mut [Spans<'a>]) -> Option<Event<'a>> {
        let page = self.page?;
        let session = self.session;
        let mut event = Event {
            session,
            page,
            ty: session.schema.find(record.type_id)?,
            payload: record.payload,
            seq: page.header.first_event.wrapping_add(record.index),
            tick: record.tick,
            t_ns: self.t_ns,
            span: None,
            parent: None,
            span_type: None,
        };
        if self.has_spans {
            let around = page.parents.get(record.index as usize).copied();
            let around = around
                .filter(|id| *id != 0)
                .or(self.entered.last().copied());
            self.place(
                &mut event,
                around,
                record.index,
                &mut spans[self.session_number],
            );
        }
        Some(event)
    }

    /// Finds span and parent of an event, and keeps track of the spans that are open. `around` is
    /// the innermost span around the record, finished or entered.
    fn place(
        &mut self,
        event: &mut Event<'a>,
        around: Option<u64>,
        index: u64,
        spans: &mut Spans<'a>,
    ) {
        let number = |field: Option<usize>| {
            let field = event.ty.fields.get(field?)?;
            field.number(event.payload).filter(|id| *id != 0)
        };
        let (own, parent) = (number(event.ty.span_id), number(event.ty.parent_id));
        match event.ty.shape {
            Some(Shape::Span) => {
                let id = finished_id(event.ty, event.payload, event.page, index);
                event.span = Some(id);
                event.parent = parent.or(around);
                return;
            }
            Some(shape) if shape.is_part_of_span() => {}
            _ => {
                event.span = own.or(around);
                event.parent = parent;
                return;
            }
        }
        let Some(id) = own else { return };
        event.span = Some(id);
        if event.ty.shape == Some(Shape::SpanNew) {
            event.parent = parent.or(around);
            spans.open.insert(id, (event.parent.unwrap_or(0), event.ty));
            return;
        }
        let known = spans.open.get(&id);
        event.span_type = known.map(|(_, ty)| *ty);
        event.parent = parent.or(known.map(|(p, _)| *p).filter(|p| *p != 0));
        self.follow(event.ty.shape, id, spans);
    }

    /// Keeps track of what is entered in this ring. A span may be left in another order than it
    /// was entered.
    fn follow(&mut self, shape: Option<Shape>, id: u64, spans: &mut Spans<'a>) {
        match shape {
            Some(Shape::SpanEnter) if self.entered.len() < ENTERED_MAX => self.entered.push(id),
            Some(Shape::SpanExit) => {
                if let Some(place) = self.entered.iter().rposition(|e| *e == id) {
                    self.entered.remove(place);
                }
            }
            Some(Shape::SpanClose) => {
                spans.open.remove(&id);
            }
            _ => {}
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

/// What comes after a page.
enum Next {
    Page,
    Record(u64),
    Loss(Moment),
    End,
}
