//! The pages of a piece, with all other records blanked.
//!
//! A blanked record is BUSY, as one that was not committed when its page was read: it keeps its
//! length and its number, and nothing else. So the page fits a whole copy of it, which fills it.

use ringmark_format::record::{BUSY, pack_span};

use super::keep::Kept;
use crate::blocks::page::{Page, Reservation};
use crate::events::filter::Filter;
use crate::events::filter_times::When;
use crate::trace_file::session::{Session, Slot};

/// A page of a piece.
pub(super) struct CutPage<'d> {
    pub(super) page: &'d Page,
    /// Numbers of the records that stay.
    records: &'d [u64],
    /// Whether the page begins inside, so that losses before it are part of the piece.
    begins_inside: bool,
    /// Whether no losses around it are part of the piece, wherever it begins.
    pub(super) hides_losses: bool,
    /// Whether it is another thread's: its records serve others.
    pub(super) is_hidden: bool,
}

/// The pages of a session that are part of the piece, by slot: those with records that stay or that
/// begin inside, the page before each, from which losses are counted, and the slot's last page.
pub(super) fn of<'d>(
    session: &'d Session,
    filter: &'d Filter,
    kept: &'d Kept,
) -> impl Iterator<Item = CutPage<'d>> {
    let slots = session.slots.iter();
    slots.flat_map(move |slot| of_slot(session, slot, filter, kept))
}

fn of_slot<'d>(
    session: &'d Session,
    slot: &'d Slot,
    filter: &Filter,
    kept: &'d Kept,
) -> Vec<CutPage<'d>> {
    let left_out = session
        .left_out
        .iter()
        .any(|piece| piece.slot == slot.index.0);
    let ends = slot.pages.iter().filter_map(|page| page.summary.ticks);
    let ends = ends.map(|ticks| ticks.1).max().unwrap_or(0);
    let ends = session.clock.t_ns(ends);
    let ends = filter.when(ends, session.clock.wall_ns(ends));
    let last = slot.pages.len().saturating_sub(1);
    let cut = |(at, page): (usize, &'d Page)| {
        let t_ns = session.clock.t_ns(page.header.tick_base);
        let begins = filter.when(t_ns, session.clock.wall_of(page.header.tick_base, t_ns));
        let is_threads = filter.thread_passes(page.header.tid);
        CutPage {
            page,
            records: kept.of_page(page),
            begins_inside: begins == When::Inside && is_threads,
            // What was lost between a segment that was not read and this page is not known.
            is_hidden: !is_threads,
            hides_losses: (at == 0 && left_out) || (at == last && ends == When::Before),
        }
    };
    let pages: Vec<_> = slot.pages.iter().enumerate().map(cut).collect();
    let wanted: Vec<_> = pages.iter().map(CutPage::is_wanted).collect();
    if !wanted.contains(&true) {
        return Vec::new();
    }
    let stays = |at: usize| wanted[at] || at == last || wanted[at + 1];
    let pages = pages.into_iter().enumerate();
    pages
        .filter(|(at, _)| stays(*at))
        .map(|(_, page)| page)
        .collect()
}

impl CutPage<'_> {
    fn is_wanted(&self) -> bool {
        self.begins_inside || !self.records.is_empty()
    }

    /// First and last tick that has to be told rightly.
    pub(super) fn ticks(&self) -> (u64, u64) {
        let base = self.page.header.tick_base;
        let (low, high) = self.page.summary.ticks.unwrap_or((base, base));
        (low.min(base), high.max(base))
    }

    /// The page's bytes with only the records that stay, and whether it is still sealed: what is
    /// damaged in it is left out.
    pub(super) fn bytes(&self) -> (Vec<u8>, bool) {
        let end = (self.page.summary.end as usize).min(self.page.bytes.len());
        let mut bytes = self.page.bytes[..end].to_vec();
        let mut walk = self.page.walk_all();
        let mut from = walk.at();
        while let Some(step) = walk.step() {
            let to = walk.at();
            let stays = match step {
                Reservation::Event(record) => self.records.binary_search(&record.index).is_ok(),
                _ => false,
            };
            if !stays && let Some(record) = bytes.get_mut(from..to) {
                blank(record);
            }
            from = to;
        }
        // The PAD that closes the page: its header word alone.
        let pad = self
            .page
            .bytes
            .get(end..end + 8)
            .filter(|_| self.page.sealed);
        bytes.extend_from_slice(pad.unwrap_or_default());
        let is_whole = pad.is_some() || end == self.page.page_bytes as usize;
        (bytes, self.page.sealed && is_whole)
    }
}

fn blank(record: &mut [u8]) {
    let words = record.len() as u64 / 8;
    record.fill(0);
    if let Some(head) = record.first_chunk_mut() {
        *head = pack_span(BUSY, words).to_le_bytes();
    }
}
