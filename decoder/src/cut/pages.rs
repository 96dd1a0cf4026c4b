//! The pages of a piece, without the records that lie outside.
//!
//! An earlier record that the piece does not need becomes BUSY: it keeps its length and its number. The
//! last page of a slot ends before the first record that comes later, like one that was still open. So
//! each page fits a whole copy of it, which fills it.

use ringmark_format::block::PageState;
use ringmark_format::record::{BUSY, pack_span};

use super::bounds::Bounds;
use crate::blocks::page::Page;
use crate::blocks::walk::{Record, Reservation, Shown};
use crate::trace_file::finished_spans::duration_ticks;
use crate::trace_file::function_words::FunctionWords;
use crate::trace_file::loss::after;
use crate::trace_file::session::{Session, Slot};
use crate::trace_file::window::{self, Inside};

/// A page of a piece.
#[derive(Debug)]
pub(super) struct CutPage<'d> {
    /// The page in the dump.
    pub(super) page: &'d Page,
    /// The bytes from its start on that stay.
    pub(super) bytes: Vec<u8>,
    /// Whether it is sealed; a page that was cut at its end is not.
    pub(super) state: PageState,
    /// Reservations of its slot up to the end of what stays.
    pub(super) after: u64,
    /// Whether it is the last page of its slot in the dump, and all of it is here.
    pub(super) is_end: bool,
    /// Events inside the piece.
    pub(super) inside: u64,
    /// Earlier ones that it needs.
    pub(super) around: u64,
    /// Ticks of the page, and those at which its spans and calls began.
    pub(super) ticks: Vec<(u64, u64)>,
}

/// The pages of a session that belong to the piece, by slot.
pub(super) fn of<'d>(session: &'d Session, bounds: &Bounds) -> Vec<CutPage<'d>> {
    let mut kept: Vec<Vec<Vec<u64>>> = Vec::new();
    for slot in &session.slots {
        kept.push(vec![Vec::new(); slot.pages.len()]);
    }
    let from = |page: &Page| bounds.from(page);
    for (slot, at, index) in window::reaching(&session.slots, &session.schema, from, Inside::Stays)
    {
        kept[slot][at].push(index);
    }
    let slots = session.slots.iter().zip(kept);
    let pages = slots.flat_map(|(slot, kept)| of_slot(session, slot, kept, bounds));
    pages.collect()
}

/// Those with records that stay or that begin inside, and before each of the latter the page that losses
/// are counted from.
fn of_slot<'d>(
    session: &'d Session,
    slot: &'d Slot,
    mut kept: Vec<Vec<u64>>,
    bounds: &Bounds,
) -> Vec<CutPage<'d>> {
    let begins_inside = |page: &Page| bounds.hold(page, page.header.tick_base);
    let pages = slot.pages.iter().zip(&kept);
    let mut wanted: Vec<bool> = pages
        .map(|(page, kept)| !kept.is_empty() || begins_inside(page) || has_inside(page, bounds))
        .collect();
    for at in 1..wanted.len() {
        wanted[at - 1] |= wanted[at] && begins_inside(&slot.pages[at]);
    }
    // What was lost after the last event was lost at a time that is not known.
    if let (Some(wanted), Some(page)) = (wanted.last_mut(), slot.pages.last()) {
        *wanted |= page.header.tick_base < bounds.to && loses_at_end(session, slot, page);
    }
    let last = wanted.iter().rposition(|wanted| *wanted);
    let mut found = Vec::new();
    for (at, page) in slot.pages.iter().enumerate().filter(|(at, _)| wanted[*at]) {
        kept[at].sort_unstable();
        let mut cut = CutPage::new(session, page, &kept[at], bounds, last == Some(at));
        cut.is_end &= at + 1 == slot.pages.len();
        found.push(cut);
    }
    found
}

/// Whether the counters have losses of the slot that are later than its last page's beginning.
fn loses_at_end(session: &Session, slot: &Slot, last: &Page) -> bool {
    let counters = session.counters.iter();
    let mut counted = counters.filter_map(|counters| counters.slots.get(&slot.index.0));
    counted.any(|slot| slot.lost.iter().sum::<u64>() > last.header.lost_before)
}

/// Whether an event of the page is inside. Ticks need not ascend, so all are looked at.
fn has_inside(page: &Page, bounds: &Bounds) -> bool {
    let outside = |(low, high)| high < bounds.from(page) || low >= bounds.to;
    if page.summary.ticks.is_none_or(outside) {
        return false;
    }
    let bytes = page.load();
    let mut records = page.records(&bytes);
    records.any(|record| bounds.hold(page, record.tick))
}

impl<'d> CutPage<'d> {
    /// `ends`: it is cut at the piece's end, because no other page of its slot follows.
    fn new(session: &Session, page: &'d Page, kept: &[u64], bounds: &Bounds, ends: bool) -> Self {
        let base = page.header.tick_base;
        let loaded = page.load();
        let sound = page.sound(&loaded);
        let mut cut = Self {
            page,
            bytes: loaded.clone(),
            state: PageState::Open,
            after: after(page),
            is_end: true,
            inside: 0,
            around: 0,
            ticks: vec![(base, base)],
        };
        let from = bounds.from(page);
        let mut walk = page.walk();
        // Records before the first one that is inside are taken out, all but those that are kept.
        let mut is_before = base < from;
        let (mut at, mut end, mut reservations, mut counted) = (walk.at(), walk.at(), 0, 0);
        let mut is_later = false;
        let mut record = Record::NONE;
        while let Some(step) = walk.step(sound, Shown::default(), &mut record) {
            reservations += 1;
            let mut stays = false;
            if let Reservation::Event = step {
                is_before &= record.tick < from;
                stays = kept.binary_search(&record.index).is_ok();
                if record.tick < bounds.to || !ends {
                    (end, counted) = (walk.at(), reservations);
                    cut.count(session, (&record, record.payload(&loaded)), stays, bounds);
                } else {
                    is_later = true;
                }
            }
            if is_before && !stays {
                blank(&mut cut.bytes[at..walk.at()]);
            }
            at = walk.at();
        }
        if is_later {
            cut.bytes.truncate(end);
            cut.after = page.header.first_event.saturating_add(counted);
            cut.is_end = false;
        } else if page.is_sound(&loaded) {
            cut.state = match page.sealed {
                true => PageState::Sealed,
                false => PageState::Open,
            };
        } else {
            cut.bytes.truncate(at);
        }
        cut
    }

    /// Counts an event that is inside or kept, and notes the ticks that its times depend on: its own, and
    /// that at which its span or call began.
    fn count(
        &mut self,
        session: &Session,
        (record, payload): (&Record, &[u8]),
        is_kept: bool,
        bounds: &Bounds,
    ) {
        let is_inside = bounds.hold(self.page, record.tick);
        if !is_inside && !is_kept {
            return;
        }
        self.inside += u64::from(is_inside);
        self.around += u64::from(!is_inside);
        let all = &mut self.ticks[0];
        *all = (all.0.min(record.tick), all.1.max(record.tick));
        let ty = session.schema.find(record.type_id);
        let took = ty.and_then(|ty| match ty.function {
            Some(meaning) => FunctionWords::read(meaning, payload).duration_ticks,
            None => duration_ticks(ty, payload),
        });
        let start = record.tick.saturating_sub(took.unwrap_or(0));
        if start < self.page.header.tick_base {
            self.ticks.push((start, start));
        }
    }
}

/// Makes a record BUSY over its whole length.
pub(crate) fn blank(record: &mut [u8]) {
    let words = record.len() as u64 / 8;
    record.fill(0);
    if let Some(head) = record.first_chunk_mut() {
        *head = pack_span(BUSY, words).to_le_bytes();
    }
}
