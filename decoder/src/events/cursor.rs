//! Walks one slot page by page, with its losses and its entered spans.
//!
//! A cursor finds the next item ([`Cursor::advance`]) before it makes it ([`Cursor::take`]), so
//! that the merge compares times without building events.

use ringmark_format::schema::Shape;

use crate::blocks::walk::Record;
use crate::events::entered_spans::{EnteredSpans, InSpans, RecordAt, Spans, id_in};
use crate::events::event::{Event, Lost, Output};
use crate::events::payload::Payload;
use crate::events::slot_records::{Placed, SlotRecords};
use crate::trace_file::loss::{self, Loss};
use crate::trace_file::session::{Session, Slot};
use crate::trace_file::spans::SpanPlaces;
use crate::trace_file::time::{NearClock, SessionClock};

/// A time for the merge: in ns, of the session or the wall clock; then the tick.
pub(crate) type Moment = (u64, u64);

/// How much is found out about the spans of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Placing {
    /// The span and the parent of each event.
    All,
    /// Those of records of spans over threads, with the type that made the span.
    Parts,
    /// The span that a record of a span over threads names, and no more.
    Named,
    /// The same, and no other records.
    Lives,
}

/// How much, and what finds finished spans around events.
pub(crate) type WithPlaces<'a> = (Placing, Option<SpanPlaces<'a>>);

/// A slot on its way through the merge.
pub(crate) struct Cursor<'a> {
    pub(super) session: &'a Session,
    records: SlotRecords<'a>,
    losses: LossesPassed,
    /// The record that comes next, unless a loss does.
    record: Record,
    is_loss: bool,
    time: MergeTime,
    entered: EnteredSpans,
    placing: Placing,
    has_begun: bool,
    /// Other slots wait until a page has ended.
    pub(super) gives_whole_pages: bool,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(
        session: &'a Session,
        slot: &'a Slot,
        by_wall: bool,
        (placing, places): WithPlaces<'a>,
    ) -> Self {
        Self {
            session,
            records: SlotRecords::new(session, slot, places),
            losses: LossesPassed {
                items: loss::of_slot(session, slot).items,
                passed: 0,
            },
            record: Record::NONE,
            is_loss: false,
            time: MergeTime {
                by_wall,
                ..MergeTime::default()
            },
            entered: EnteredSpans::default(),
            placing,
            has_begun: false,
            gives_whole_pages: false,
        }
    }

    /// The page at hand.
    #[inline]
    pub(super) fn page(&self) -> usize {
        self.records.begun()
    }

    /// Whether the item that was found comes before those of other slots, because it is in this page.
    #[inline]
    pub(super) fn goes_on_in(&self, page: usize) -> bool {
        self.gives_whole_pages && self.page() == page
    }

    /// Whether the first item was found, or looked for.
    #[inline]
    pub(crate) const fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// A time for the merge that no item is earlier than. No page is loaded for it.
    pub(crate) fn earliest(&self) -> Moment {
        let tick = self.records.earliest_tick();
        let ns = self.session.clock.t_ns(tick);
        match self.time.by_wall {
            true => (self.session.clock.wall_ns(ns), tick),
            false => (ns, tick),
        }
    }

    /// Finds the next item; returns its time for the merge, which never goes back.
    #[inline]
    pub(crate) fn advance(&mut self) -> Option<Moment> {
        loop {
            if self.records.step(&mut self.record) {
                if self.placing == Placing::Lives && !self.is_of_life() {
                    continue;
                }
                self.is_loss = false;
                return Some(self.time.of(&self.session.clock, self.record.tick));
            }
            match self.after_page() {
                Next::Page => {}
                Next::Loss(time) => return Some(time),
                Next::End => return None,
            }
        }
    }

    /// Whether the record at hand is one of a span over threads.
    fn is_of_life(&self) -> bool {
        let ty = self.session.schema.find(self.record.type_id);
        ty.and_then(|ty| ty.shape)
            .is_some_and(Shape::is_part_of_span)
    }

    /// Finds what comes when the page at hand has ended: the losses before the next page, then
    /// that page.
    #[inline(never)]
    fn after_page(&mut self) -> Next {
        self.has_begun = true;
        self.is_loss = true;
        let next = self.records.next_page();
        if self.losses.pass(self.records.begun()) {
            let clock = &self.session.clock;
            // One at the end happened after the last page began.
            let page = self.records.page_or_last(self.records.begun());
            return Next::Loss(match page {
                Some(page) => self.time.of(clock, page.earliest_tick()),
                None => self.time.latest(clock),
            });
        }
        let Some(page) = next else {
            self.records.end();
            return Next::End;
        };
        self.entered.begin_page(page.ring);
        self.records.begin_page();
        Next::Page
    }

    /// Gives the item that [`Self::advance`] found.
    // Inlined, it makes the item where its user wants it: a copy would wait for the parts of it.
    #[inline(always)]
    pub(crate) fn take(&mut self, spans: &mut [Spans<'a>]) -> Option<Output<'a>> {
        match self.is_loss {
            false => self.event(spans).map(Output::Event),
            true => self.lost().map(Output::Lost),
        }
    }

    /// The loss that [`Self::after_page`] passed.
    #[cold]
    fn lost(&self) -> Option<Lost<'a>> {
        let (before, loss) = self.losses.last_passed()?;
        let page = self.records.page_or_last(before);
        Some(Lost {
            session: self.session,
            page,
            ring: page.map(|p| p.ring),
            t_ns: self.time.latest_ns,
            loss,
        })
    }

    #[inline(always)]
    fn event(&mut self, spans: &mut [Spans<'a>]) -> Option<Event<'a>> {
        let record = &self.record;
        let Placed {
            page,
            bytes,
            around,
        } = self.records.placed(record)?;
        let session = self.session;
        let ty = session.schema.find(record.type_id)?;
        let is_part = || ty.shape.is_some_and(Shape::is_part_of_span);
        let in_spans = match self.placing {
            Placing::Named | Placing::Lives if is_part() => Some(InSpans::inside(
                id_in(ty, record.payload(bytes), ty.span_id),
                None,
            )),
            Placing::Named | Placing::Lives => None,
            Placing::Parts if !is_part() => None,
            _ if !session.has_spans => None,
            Placing::All | Placing::Parts => {
                let spans = &mut spans[session.number];
                let at = RecordAt {
                    ty,
                    payload: record.payload(bytes),
                    page,
                    index: record.index,
                };
                Some(self.entered.place(&at, around, spans))
            }
        };
        let mut event = Event {
            session,
            page,
            ty,
            payload: Payload::new(bytes.clone(), record.start, record.end),
            seq: page.header.first_event.wrapping_add(record.index),
            tick: record.tick,
            t_ns: self.time.t_ns,
            span: None,
            parent: None,
            span_type: None,
            around,
        };
        // Most have none: what is written where it stays needs no copy, which would wait for its parts.
        if let Some(found) = in_spans {
            event.span = found.span;
            event.parent = found.parent;
            event.span_type = found.span_type;
        }
        Some(event)
    }
}

/// The time of a slot in the merge, which never goes back: a record with an earlier tick than the
/// one before it has the time of that one in the merge, and its own time in the output.
#[derive(Default)]
struct MergeTime {
    clock: NearClock,
    by_wall: bool,
    /// Time of the record at hand, in ns since the session's start.
    t_ns: u64,
    latest_ns: u64,
    latest_tick: u64,
}

impl MergeTime {
    /// The time of a record with this tick, which is then the record at hand.
    #[inline]
    fn of(&mut self, clock: &SessionClock, tick: u64) -> Moment {
        self.t_ns = self.clock.t_ns(clock, tick);
        self.latest_ns = self.latest_ns.max(self.t_ns);
        self.latest_tick = self.latest_tick.max(tick);
        self.latest(clock)
    }

    /// The latest time so far.
    #[inline]
    fn latest(&self, clock: &SessionClock) -> Moment {
        let ns = if self.by_wall {
            clock.wall_ns(self.latest_ns)
        } else {
            self.latest_ns
        };
        (ns, self.latest_tick)
    }
}

/// The losses of a slot, each with the number of the page that it lies before, in order.
struct LossesPassed {
    items: Vec<(usize, Loss)>,
    /// Number of them that were passed.
    passed: usize,
}

impl LossesPassed {
    /// Passes the next loss, if it lies before the page with this number; returns whether it does.
    fn pass(&mut self, page: usize) -> bool {
        let next = self.items.get(self.passed);
        let passes = next.is_some_and(|(before, _)| *before <= page);
        self.passed += usize::from(passes);
        passes
    }

    fn last_passed(&self) -> Option<(usize, Loss)> {
        self.items.get(self.passed.checked_sub(1)?).copied()
    }
}

/// What comes after a page.
enum Next {
    Page,
    Loss(Moment),
    End,
}
