//! What was lost and where, by subtraction of the cumulative counts in pages and counters.

use ringmark_format::RingId;
use ringmark_format::counters::{CAUSES, Cause};
use ringmark_format::session::Mode;

use crate::page::Page;
use crate::session::{Session, Slot};

/// Why events are not in the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Why {
    /// Never written; the cause where it is known.
    Lost(Option<Cause>),
    /// Written, then replaced: the purpose of overwrite mode.
    Overwritten,
    /// Written, but not in this input: damaged, cut off, or read out by somebody else.
    Missing,
}

impl Why {
    /// The cause as output names it.
    #[must_use]
    pub const fn cause(self) -> &'static str {
        match self {
            Self::Lost(Some(cause)) => cause.name(),
            Self::Lost(None) => "unknown",
            Self::Overwritten => "overwritten",
            Self::Missing => "not in this dump",
        }
    }
}

/// A number of events that are not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Loss {
    /// Why.
    pub why: Why,
    /// How many.
    pub count: u64,
}

/// The losses of one slot, in order: before page `i` of the slot stands `before[i]`.
#[derive(Debug, Default)]
pub(crate) struct SlotLosses {
    /// (index of the page behind the loss, the loss); index = number of pages: at the end.
    pub items: Vec<(usize, Loss)>,
    /// Reservations that pages show twice: first_event went back.
    pub contradictions: u64,
}

/// Counted losses that have not been given a place yet, by cause.
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

/// Goes over the pages of a slot and its counters.
pub(crate) fn of_slot(session: &Session, slot: &Slot) -> SlotLosses {
    let counters = session
        .counters
        .as_ref()
        .and_then(|c| c.slots.get(&slot.index.0));
    let default = (session.mode() == Some(Mode::Lossless)).then_some(Cause::RingFull);
    let mut causes = Causes {
        left: counters.map(|c| c.lost),
        default,
    };
    let mut losses = SlotLosses::default();
    let (mut events, mut lost) = (0u64, 0u64);
    for (index, page) in slot.pages.iter().enumerate() {
        let header = &page.header;
        losses.not_here(index, header.first_event, events, gap(session));
        let now = header.lost_before.saturating_sub(lost);
        causes.take(now, |why, count| losses.push(index, why, count));
        lost = lost.max(header.lost_before);
        events = events.max(after(page));
    }
    if let Some(counters) = counters {
        let end = slot.pages.len();
        let now = total(&counters.lost).saturating_sub(lost);
        causes.take(now, |why, count| losses.push(end, why, count));
        if session.is_final() {
            losses.not_here(end, counters.events.max(events), events, Why::Missing);
        }
    }
    losses
}

/// Reservations of the slot up to the end of this page.
fn after(page: &Page) -> u64 {
    page.header
        .first_event
        .saturating_add(page.summary.reservations())
}

/// What a gap between pages means.
fn gap(session: &Session) -> Why {
    match session.mode() {
        Some(Mode::Overwrite) => Why::Overwritten,
        _ => Why::Missing,
    }
}

impl SlotLosses {
    fn push(&mut self, index: usize, why: Why, count: u64) {
        self.items.push((index, Loss { why, count }));
    }

    fn not_here(&mut self, index: usize, expected: u64, seen: u64, why: Why) {
        if expected > seen {
            self.push(index, why, expected - seen);
        }
        let contradicted = seen.saturating_sub(expected);
        self.contradictions = self.contradictions.saturating_add(contradicted);
    }
}

/// Losses that belong to no page: those of the session, and of slots that have no page here.
pub(crate) fn of_session(session: &Session) -> Vec<(Option<RingId>, Loss)> {
    let Some(counters) = &session.counters else {
        return Vec::new();
    };
    let mut losses = Vec::new();
    by_cause(&counters.header.lost, None, &mut losses);
    for (index, slot) in &counters.slots {
        let place = session.slots.binary_search_by_key(index, |s| s.index.0);
        if place.is_ok() {
            continue;
        }
        let ring = Some(RingId(slot.ring_id));
        by_cause(&slot.lost, ring, &mut losses);
        if slot.events > 0 {
            let why = gap(session);
            let count = slot.events;
            losses.push((ring, Loss { why, count }));
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
