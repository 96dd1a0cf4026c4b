//! How many events are not there, where, and why.
//!
//! Every page and every COUNTERS block has cumulative counts, which are never reset. A loss is the
//! difference between two of them, so it is exact even where pages are missing.

use std::ops::Range;

use ringmark_format::RingId;
use ringmark_format::counters::{CAUSES, Cause};
use ringmark_format::session::Mode;
use ringmark_format::store::IndexSlot;

use crate::blocks::page::Page;
use crate::trace_file::session::{Session, Slot};
pub use crate::trace_file::why::Why;

/// A number of events that are not there, for one reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Loss {
    /// Why.
    pub why: Why,
    /// How many events, at least 1.
    pub count: u64,
}

/// The losses of one slot, in order.
#[derive(Debug, Default)]
pub(crate) struct SlotLosses {
    /// (index of the page after the loss, the loss); the number of pages: a loss at the end.
    pub items: Vec<(usize, Loss)>,
    /// Reservations that two pages both claim: `first_event` went back.
    pub contradictions: u64,
}

/// Counted losses that have no place yet, by cause. Pages say how many events were lost before
/// them; only the counters of the slot say why.
struct Causes {
    left: Option<[u64; CAUSES]>,
    default: Option<Cause>,
}

impl Causes {
    fn take(&mut self, mut count: u64, mut give: impl FnMut(Why, u64)) {
        for (cause, left) in Cause::ALL.iter().zip(self.left.iter_mut().flatten()) {
            let now = count.min(*left);
            *left -= now;
            count -= now;
            if now > 0 {
                give(Why::Lost(Some(*cause)), now);
            }
        }
        if count > 0 {
            give(Why::Lost(self.default), count);
        }
    }
}

fn total(lost: &[u64; CAUSES]) -> u64 {
    lost.iter().fold(0, |sum: u64, n| sum.saturating_add(*n))
}

/// Mark of a piece that an earlier part holds, in which events were lost: that loss is counted, and calls
/// that were open then may have ended in it.
pub(crate) const CARRIED_LOSS: u32 = 1;

/// Goes over the pages of a slot and its counters.
pub(crate) fn of_slot(session: &Session, slot: &Slot) -> SlotLosses {
    let counters = session
        .counters
        .as_ref()
        .and_then(|c| c.slots.get(&slot.index.0));
    let default = usual_cause(session);
    let mut causes = Causes {
        left: counters.map(|c| c.lost),
        default,
    };
    let mut losses = SlotLosses::default();
    let (mut events, mut lost) = (0u64, 0u64);
    let mut next_page = 0;
    let mut left_out = left_out(session, slot.index.0).peekable();
    for (index, page) in slot.pages.iter().enumerate() {
        let header = &page.header;
        while let Some(piece) = left_out.next_if(|p| p.first_event <= header.first_event) {
            let gap = gap_after(session, events);
            let counted = (&mut events, &mut lost, &mut causes);
            losses.pass(index, piece, counted, gap);
            // Both may hold parts of one page.
            events = events.min(header.first_event);
            next_page = piece.next_page.max(next_page);
        }
        let now = header.lost_before.saturating_sub(lost);
        if page.is_old() {
            // What is missing here is earlier than the recorded window.
            causes.take(now, |_, _| {});
        } else {
            let gap = gap_after(session, events);
            let pages = next_page..page.number.0;
            let place = (slot.index.0, index);
            let is_counted = next_page > 0 || !are_elsewhere(session, slot, &pages);
            losses.absent(session, place, pages, (header.first_event, events), gap);
            causes.take(now, |why, count| {
                losses.push_if(is_counted, index, why, count);
            });
        }
        lost = lost.max(header.lost_before);
        events = events.max(after(page));
        let after = session
            .progress
            .page_after(slot.index.0, page.number.0, page.sealed);
        next_page = next_page.max(after);
    }
    let end = slot.pages.len();
    for piece in left_out {
        let gap = gap_after(session, events);
        let counted = (&mut events, &mut lost, &mut causes);
        losses.pass(end, piece, counted, gap);
        next_page = piece.next_page.max(next_page);
    }
    if let Some(counters) = counters.filter(|_| !session.goes_on) {
        let now = total(&counters.lost).saturating_sub(lost);
        causes.take(now, |why, count| losses.push(end, why, count));
        if session.is_final() {
            let (pages, all) = (next_page..counters.produced, counters.events.max(events));
            let place = (slot.index.0, end);
            losses.absent(session, place, pages, (all, events), Why::Missing);
        }
    }
    losses
}

/// Whether another session has some of the first pages of a slot: what was lost before them is counted there.
fn are_elsewhere(session: &Session, slot: &Slot, pages: &Range<u64>) -> bool {
    let absent = session.progress.absent(slot.index.0, pages.clone());
    absent.are_elsewhere()
}

/// What a loss is of whose cause nothing is said.
pub(crate) fn usual_cause(session: &Session) -> Option<Cause> {
    (session.mode() == Some(Mode::Discard)).then_some(Cause::RingFull)
}

/// Reservations of the slot up to the end of this page.
pub(crate) fn after(page: &Page) -> u64 {
    page.header
        .first_event
        .saturating_add(page.summary.reservations())
}

/// What reservations between two pages became that no page here has: they were overwritten in
/// overwrite mode, and are missing in discard mode.
pub(crate) fn gap(session: &Session) -> Why {
    match session.mode() {
        Some(Mode::Overwrite) => Why::Overwritten,
        _ => Why::Missing,
    }
}

/// The same after this number of reservations of a slot. Before the first one that is here are also those
/// that were removed from a store.
fn gap_after(session: &Session, events: u64) -> Why {
    match session.is_shortened && events == 0 {
        true => Why::Removed,
        false => gap(session),
    }
}

/// What was not read of a slot, in order.
fn left_out(session: &Session, slot: u32) -> impl Iterator<Item = &IndexSlot> {
    session.left_out.iter().filter(move |s| s.slot == slot)
}

impl SlotLosses {
    /// Goes over a segment that was left out: its events are there, its losses are not reported.
    fn pass(
        &mut self,
        index: usize,
        piece: &IndexSlot,
        (events, lost, causes): (&mut u64, &mut u64, &mut Causes),
        gap: Why,
    ) {
        self.not_here(index, piece.first_event.max(*events), *events, gap);
        let before = piece.first_lost.saturating_sub(*lost);
        causes.take(before, |why, count| self.push(index, why, count));
        let within = piece.last_lost.saturating_sub(piece.first_lost.max(*lost));
        causes.take(within, |_, _| {});
        if piece.reserved == CARRIED_LOSS {
            self.push(index, Why::Lost(causes.default), 0);
        }
        *lost = (*lost).max(piece.last_lost);
        *events = (*events).max(piece.end_event);
    }

    fn push_if(&mut self, is_counted: bool, index: usize, why: Why, count: u64) {
        if is_counted {
            self.push(index, why, count);
        }
    }

    fn push(&mut self, index: usize, why: Why, count: u64) {
        self.items.push((index, Loss { why, count }));
    }

    /// Notes that pages of a slot are not here, with the reservations from `seen` to `expected`. The
    /// reason is what their host said; `gap` where it said nothing.
    fn absent(
        &mut self,
        session: &Session,
        (slot, index): (u32, usize),
        pages: Range<u64>,
        (expected, seen): (u64, u64),
        gap: Why,
    ) {
        if expected <= seen || !session.progress.is_there() {
            return self.not_here(index, expected, seen, gap);
        }
        let absent = session.progress.absent(slot, pages);
        for (why, count) in absent.events(expected - seen, gap) {
            self.push(index, why, count);
        }
    }

    fn not_here(&mut self, index: usize, expected: u64, seen: u64, why: Why) {
        if expected > seen {
            self.push(index, why, expected - seen);
        }
        let contradicted = seen.saturating_sub(expected);
        self.contradictions = self.contradictions.saturating_add(contradicted);
    }
}

/// Losses that belong to no page: those of the session as a whole, and those of slots that have
/// no page here. The ring id is `None` for the former.
pub(crate) fn of_session(session: &Session) -> Vec<(Option<RingId>, Loss)> {
    let Some(counters) = session.counters.as_ref().filter(|_| !session.goes_on) else {
        return Vec::new();
    };
    let mut losses = Vec::new();
    by_cause(&counters.header.lost, None, &mut losses);
    for (index, slot) in &counters.slots {
        let place = session.slots.binary_search_by_key(index, |s| s.index.0);
        if place.is_ok() || left_out(session, *index).next().is_some() {
            continue;
        }
        let ring = Some(RingId(slot.ring_id));
        let absent = session.progress.absent(*index, 0..slot.produced);
        if absent.are_elsewhere() {
            continue;
        }
        by_cause(&slot.lost, ring, &mut losses);
        if slot.events > 0 && session.window.is_none() {
            let by_reason = match session.progress.is_there() {
                true => absent.events(slot.events, gap_after(session, 0)),
                false => vec![(gap_after(session, 0), slot.events)],
            };
            let by_reason = by_reason.into_iter();
            losses.extend(by_reason.map(|(why, count)| (ring, Loss { why, count })));
        }
    }
    losses
}

fn by_cause(lost: &[u64; CAUSES], ring: Option<RingId>, losses: &mut Vec<(Option<RingId>, Loss)>) {
    for (cause, count) in Cause::ALL.iter().zip(lost) {
        if *count > 0 {
            let why = Why::Lost(Some(*cause));
            losses.push((ring, Loss { why, count: *count }));
        }
    }
}
