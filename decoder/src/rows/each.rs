//! The rows of a dump, one after the other, in the order in which they ended.

use std::collections::HashMap;

use crate::events::event::{Event, Lost, NearStart};
use crate::events::filter::Filter;
use crate::events::filter_times::When;
use crate::events::merge::Events;
use crate::events::span::Span;
use crate::events::span_pairs::SpanPairs;
use crate::rows::row::Row;
use crate::sums::calls::Call;
use crate::sums::picker::{Begun, Picker, Picks};
use crate::trace_file::dump::Dump;
use crate::trace_file::functions::Function;

/// Items that are walked before an error of the writer of rows is looked at.
const PIECE: u64 = 256;

/// Which rows a table has. The default has all.
#[derive(Debug, Clone, Default)]
pub struct Chosen {
    /// Times and threads: which records count. A span or call belongs to the time of its end.
    pub records: Filter,
    /// `records`, with names, levels and conditions; `None`: there are none.
    pub conditions: Option<Filter>,
}

/// What a walk over all rows says at its end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RowsEnd {
    /// Rows that were given.
    pub rows: u64,
    /// Spans and calls that began and did not end in what was chosen. They have no row.
    pub open: u64,
    /// Events that were lost, and that no row counts as lost before it: there was no later row.
    pub lost_after: u64,
}

impl Dump {
    /// Gives each row that is chosen to `to`, in the order of the ends of spans and calls.
    ///
    /// The memory is that of the open spans and calls, and of a page for each thread. A dump of
    /// [`crate::DumpBuilder::bare`] has all that is needed.
    ///
    /// # Errors
    /// The first error of `to`; what comes after it is not given.
    pub fn each_row<'d, E>(
        &'d self,
        chosen: Chosen,
        to: impl FnMut(&Row<'_, 'd>) -> Result<(), E>,
    ) -> Result<RowsEnd, E> {
        let mut lost = LostSince::default();
        self.rows_and_losses((chosen, self.events_bare()), &mut lost, to, |_| ())
    }

    /// As [`Self::each_row`], with the spans around spans and events: [`Row::span_ids`] has them. It needs a dump that is not
    /// [`crate::DumpBuilder::bare`], and memory for open spans.
    ///
    /// # Errors
    /// The first error of `to`; what comes after it is not given.
    pub fn each_row_in_spans<'d, E>(
        &'d self,
        chosen: Chosen,
        to: impl FnMut(&Row<'_, 'd>) -> Result<(), E>,
    ) -> Result<RowsEnd, E> {
        let mut lost = LostSince::default();
        self.rows_and_losses((chosen, self.events()), &mut lost, to, |_| ())
    }

    /// As [`Self::each_row`], but faster, for what does not depend on the order of threads: rows of a thread are in
    /// order, and other threads wait for the end of a page, unless a span or call goes from one to another.
    ///
    /// # Errors
    /// The first error of `to`; what comes after it is not given.
    pub fn each_row_by_pages<'d, E>(
        &'d self,
        chosen: Chosen,
        to: impl FnMut(&Row<'_, 'd>) -> Result<(), E>,
    ) -> Result<RowsEnd, E> {
        let mut lost = LostSince::default();
        self.rows_and_losses((chosen, self.events_by_pages()), &mut lost, to, |_| ())
    }

    /// The same of these events, with the losses. `lost`: those that are for the next row of their thread, before and after.
    pub(crate) fn rows_and_losses<'d, E>(
        &'d self,
        (chosen, mut events): (Chosen, Events<'d>),
        lost: &mut LostSince,
        to: impl FnMut(&Row<'_, 'd>) -> Result<(), E>,
        to_lost: impl FnMut(&Lost<'d>),
    ) -> Result<RowsEnd, E> {
        let filters = (chosen.records.clone(), chosen.conditions);
        let pairs = SpanPairs::of_part(self, &chosen.records);
        let mut picker = Picker::new(filters, pairs, None, false);
        let mut rows = Rows {
            to,
            to_lost,
            failed: None,
            records: chosen.records,
            near: NearStart::default(),
            lost: std::mem::take(lost),
            end: RowsEnd::default(),
        };
        while events.each(PIECE, |item| picker.take(&item, &mut rows)) > 0 && rows.failed.is_none()
        {
        }
        if let Some(error) = rows.failed {
            return Err(error);
        }
        let mut end = rows.end;
        end.lost_after = rows.lost.values().sum();
        end.open = open(self, &picker);
        *lost = rows.lost;
        Ok(end)
    }
}

/// Spans and calls that began and did not end.
fn open(dump: &Dump, picker: &Picker<'_>) -> u64 {
    let filter = &picker.filter;
    let calls = picker.calls.open();
    let calls = calls.filter(|call| filter.passes_cut_call(call.target(), &call.function.name));
    let mut open = calls.count() as u64;
    let mut cut = picker.pairs.cut(dump);
    cut.retain(|of_type| filter.passes_cut(of_type.ty));
    open += cut.iter().map(|of_type| of_type.no_end).sum::<u64>();
    open += picker.pairs.left_out();
    let threads = dump.open_spans();
    let spans = threads.iter().flat_map(|thread| &thread.spans);
    let native = spans.filter(|span| span.ty.kind() == "span");
    open + native
        .filter(|span| filter.passes_cut(Some(span.ty)))
        .count() as u64
}

/// Losses since the last row, by number of session and slot; `None`: of the session as a whole.
pub(crate) type LostSince = HashMap<(usize, Option<u32>), u64>;

/// Makes rows of what is picked.
struct Rows<F, L, E> {
    to: F,
    to_lost: L,
    failed: Option<E>,
    records: Filter,
    near: NearStart,
    lost: LostSince,
    end: RowsEnd,
}

impl<F, L, E> Rows<F, L, E> {
    fn give<'d>(&mut self, mut row: Row<'_, 'd>)
    where
        F: FnMut(&Row<'_, 'd>) -> Result<(), E>,
    {
        if self.failed.is_some() {
            return;
        }
        if !self.lost.is_empty() {
            let (session, slot) = (row.record.session.number, row.record.slot().0);
            let of_thread = self.lost.remove(&(session, Some(slot)));
            let of_session = self.lost.remove(&(session, None));
            let lost = of_thread.into_iter().chain(of_session);
            row.lost_before = lost.fold(0, u64::saturating_add);
        }
        self.end.rows += 1;
        self.failed = (self.to)(&row).err();
    }
}

impl<'d, E, F, L> Picks<'d> for Rows<F, L, E>
where
    F: FnMut(&Row<'_, 'd>) -> Result<(), E>,
    L: FnMut(&Lost<'d>),
{
    fn event(&mut self, event: &Event<'d>) {
        let start = event.start(&mut self.near);
        self.give(Row::of_event(event, start));
    }

    fn native(&mut self, event: &Event<'d>, own_ns: Option<u64>) {
        let start = event.start(&mut self.near);
        let mut row = Row::of_event(event, start);
        row.own_ns = own_ns.filter(|_| row.dur_ns.is_some());
        self.give(row);
    }

    fn span(&mut self, span: Span<'d>) {
        let when = self.records.when(span.start_ns, span.start_wall_ns());
        self.give(Row::of_span(&span, when == When::Before));
    }

    fn end(&mut self, end: &Event<'d>) {
        self.give(Row::of_end(end));
    }

    fn call(&mut self, call: &Call<'d>, end: &Event<'d>) {
        self.give(Row::of_call(call, end));
    }

    fn entry(&mut self, entry: &Event<'d>, function: &'d Function, begun: Begun) {
        self.give(Row::of_entry(entry, function, begun.depth));
    }

    fn lost(&mut self, lost: &Lost<'d>) {
        (self.to_lost)(lost);
        let slot = lost.page.map(|page| page.header.slot);
        let count = self.lost.entry((lost.session.number, slot)).or_default();
        *count = count.saturating_add(lost.loss.count);
    }
}
