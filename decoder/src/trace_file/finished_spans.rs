//! Finished spans: their ids and durations, and which of them reach beyond the page of their end.
//!
//! A ring that is walked from its end has a stack of the spans that are open there. At the end of each
//! page this stack is kept ([`ReachingSpans`]), so that the records of the page can be placed when it is
//! loaded, without the pages after it.
//!
//! A record at the tick at which a span began may lie in that span or before it: records are in the
//! order of their ends, and no record says which came first. What is around such a record is not known
//! ([`UNKNOWN`]). With clock `tsc` no two events of a thread share a tick; with `coarse` many do, and
//! with `none` all.

use ringmark_format::schema::Shape;

use crate::blocks::page::Page;
use crate::blocks::type_bits::TypeBits;
use crate::blocks::walk::Record;
use crate::trace_file::schema::{EventType, Schema};

/// Marks span ids that no program gave: they are made of slot and number, unique within a process
/// of up to 8 sessions of 4096 slots, and below 2^53.
const MADE: u64 = 1 << 52;
/// Bits of the number of a record in its slot. Three more say which session of its process it is of.
const SEQ_BITS: u32 = 37;

/// Stands for the id of a span around a record that is not known.
pub(crate) const UNKNOWN: u64 = u64::MAX;

/// Whether a record at `tick` lies for certain in what began at `start` in its thread and ends after it.
/// One at the same tick may have come before.
#[must_use]
#[inline]
pub const fn lies_in(start: u64, tick: u64) -> bool {
    start < tick
}

/// The id of a finished span: the value of its field with semantic SPAN_ID, or an id that is made
/// of the record's session, slot and number.
pub(crate) fn finished_id(ty: &EventType, payload: &[u8], page: &Page, index: u64) -> u64 {
    let given = ty
        .span_id
        .and_then(|f| ty.fields[usize::from(f)].number(payload))
        .filter(|id| *id != 0);
    given.unwrap_or_else(|| {
        let seq = page.header.first_event.wrapping_add(index);
        let member = u64::from(page.member & 7) << SEQ_BITS;
        MADE | u64::from(page.header.slot & 0xFFF) << 40 | member | (seq & ((1 << SEQ_BITS) - 1))
    })
}

/// The duration of a finished span in ticks, if the type has one.
#[inline]
pub(crate) fn duration_ticks(ty: &EventType, payload: &[u8]) -> Option<u64> {
    let field = ty.fields.get(usize::from(ty.duration?))?;
    field.plain_number(payload)
}

/// A finished span, on the way back from its end to its start.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reaching {
    start: u64,
    id: u64,
    /// Number of the span around it that reaches as far; 0: there is none.
    around: u32,
}

/// The finished spans of a session that reach from one page into an earlier one. Each names the one
/// around it, so that the stacks of all pages share what they have in common.
#[derive(Debug, Default)]
pub(crate) struct ReachingSpans {
    spans: Vec<Reaching>,
    /// The types of finished spans.
    types: TypeBits,
}

/// The finished spans that are open at a place in a ring, which is walked from its end.
pub(super) struct OpenSpans<'s> {
    /// Those that reach beyond the page at hand.
    reaching: &'s [Reaching],
    /// Number of the innermost of them that is still open; 0: none is.
    top: u32,
    /// Those that end in the page at hand.
    inner: Vec<(u64, u64)>,
}

impl<'s> OpenSpans<'s> {
    pub(super) const fn new(reaching: &'s [Reaching], top: u32) -> Self {
        Self {
            reaching,
            top,
            inner: Vec::new(),
        }
    }

    fn top(&self) -> Option<&'s Reaching> {
        self.reaching.get((self.top as usize).checked_sub(1)?)
    }

    /// Start and id of the innermost.
    fn last(&self) -> Option<(u64, u64)> {
        let inner = self.inner.last().copied();
        inner.or(self.top().map(|span| (span.start, span.id)))
    }

    /// Id of the innermost at this tick; 0: there is none; [`UNKNOWN`]: it is not known.
    fn innermost(&self, tick: u64) -> u64 {
        match self.last() {
            None => 0,
            Some((start, id)) if lies_in(start, tick) => id,
            Some(_) => UNKNOWN,
        }
    }

    /// Drops the innermost spans that began after `start`: they overlap without nesting.
    pub(super) fn drop_later(&mut self, start: u64) {
        while self.inner.pop_if(|span| span.0 > start).is_some() {}
        if self.inner.is_empty() {
            while let Some(span) = self.top().filter(|span| span.start > start) {
                self.top = span.around;
            }
        }
    }

    /// The innermost open span around a record with this tick; 0: there is none; [`UNKNOWN`]: it is not
    /// known. `span`: start and id
    /// of the finished span that it is. That is put on the stack afterwards, so that it is not its own
    /// parent.
    pub(super) fn around(&mut self, tick: u64, span: Option<(u64, u64)>) -> u64 {
        let start = span.map_or(tick, |span| span.0);
        let parent = self.around_tied(tick, start, |_| false);
        self.inner.extend(span);
        parent
    }

    /// The innermost open span around a record that began at `start`. `is_tied`: whether something that began at
    /// a tick or later may be around the record or may not.
    pub(super) fn around_tied(
        &mut self,
        tick: u64,
        start: u64,
        is_tied: impl Fn(u64) -> bool,
    ) -> u64 {
        // A span that began after this record did ended before what is still to be met.
        self.drop_later(start);
        match is_tied(self.last().map_or(0, |span| span.0)) {
            true => UNKNOWN,
            false => self.innermost(tick),
        }
    }

    /// Puts a span on the stack, of which the records are met next.
    pub(super) fn push(&mut self, span: (u64, u64)) {
        self.inner.push(span);
    }

    /// The spans that end in the page at hand, the innermost last, and the number of the one around them.
    pub(super) fn into_parts(self) -> (Vec<(u64, u64)>, u32) {
        (self.inner, self.top)
    }
}

impl ReachingSpans {
    /// None so far, in a session with this schema.
    pub(super) fn of(schema: &Schema) -> Self {
        let types = schema.types().iter();
        let spans = types.filter(|ty| ty.shape == Some(Shape::Span));
        Self {
            spans: Vec::new(),
            types: spans.map(|ty| ty.id).collect(),
        }
    }

    /// Whether no finished span ends in the page. Then the page need not be walked.
    pub(super) fn none_ends_in(&self, page: &Page) -> bool {
        !page.types.may_meet(self.types)
    }

    /// The innermost of the spans that reach beyond a page in which none ends and beyond the page
    /// before. `top`: the innermost that reaches beyond the page.
    pub(super) fn passing(&self, page: &Page, top: u32) -> u32 {
        let mut open = OpenSpans::new(&self.spans, top);
        if let Some((low, _)) = page.summary.ticks {
            open.drop_later(low);
        }
        open.top
    }

    /// Walks a page from its end. `top`: the innermost span that reaches beyond it. Returns the
    /// innermost one that reaches beyond the page before.
    pub(super) fn take_page(
        &mut self,
        page: &Page,
        bytes: &[u8],
        schema: &Schema,
        top: u32,
    ) -> u32 {
        let mut open = OpenSpans::new(&self.spans, top);
        let records: Vec<_> = page.records(bytes).collect();
        for record in records.iter().rev() {
            let span = finished(record, record.payload(bytes), page, schema);
            open.around(record.tick, span);
        }
        let left = open.into_parts();
        self.keep(left)
    }

    /// The spans at a place where `top` is the innermost.
    pub(super) const fn open(&self, top: u32) -> OpenSpans<'_> {
        OpenSpans::new(self.spans.as_slice(), top)
    }

    /// Adds spans that reach into earlier pages, the innermost last, inside the one with number `around`;
    /// returns the number of the innermost.
    pub(super) fn keep(&mut self, (spans, around): (Vec<(u64, u64)>, u32)) -> u32 {
        spans.into_iter().fold(around, |around, (start, id)| {
            self.spans.push(Reaching { start, id, around });
            self.spans.len() as u32
        })
    }

    /// The id of the innermost finished span around all records of a page, or 0; `None`: they differ.
    fn around_all(&self, page: &Page, top: u32) -> Option<u64> {
        let is_one = self.none_ends_in(page) && self.passing(page, top) == top;
        let (low, _) = page.summary.ticks.filter(|_| is_one)?;
        let id = OpenSpans::new(&self.spans, top).innermost(low);
        (id != UNKNOWN).then_some(id)
    }

    /// For each record of a page, by its index, the id of the innermost finished span around it; 0, or
    /// no entry: there is none. `bytes`: those of the page, as they were loaded. `top`: the innermost span
    /// that reaches beyond it.
    pub(super) fn around(&self, page: &Page, bytes: &[u8], schema: &Schema, top: u32) -> Vec<u64> {
        if let Some(id) = self.around_all(page, top) {
            return match id {
                0 => Vec::new(),
                id => vec![id; page.summary.reservations() as usize],
            };
        }
        let mut open = OpenSpans::new(&self.spans, top);
        let mut ids = Vec::new();
        let records: Vec<_> = page.records(bytes).collect();
        for record in records.iter().rev() {
            let span = finished(record, record.payload(bytes), page, schema);
            let id = open.around(record.tick, span);
            put(&mut ids, page, record.index, id);
        }
        ids
    }
}

/// Start and id of the finished span that a record is.
pub(super) fn finished(
    record: &Record,
    payload: &[u8],
    page: &Page,
    schema: &Schema,
) -> Option<(u64, u64)> {
    let ty = schema.find(record.type_id);
    let ty = ty.filter(|ty| ty.shape == Some(Shape::Span))?;
    let start = record.tick.saturating_sub(duration_ticks(ty, payload)?);
    Some((start, finished_id(ty, payload, page, record.index)))
}

/// Notes the id of the span around a record. A page without such ids has no list of them.
pub(super) fn put(ids: &mut Vec<u64>, page: &Page, index: u64, id: u64) {
    if id != 0 {
        let reservations = page.summary.reservations() as usize;
        ids.resize(reservations.max(ids.len()), 0);
    }
    if let Some(place) = ids.get_mut(index as usize) {
        *place = id;
    }
}
