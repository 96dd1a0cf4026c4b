//! How far the slots of a session can be read: up to the first page that is not here and may still come.

use std::ops::Range;

use super::together::{together, wait};
use super::{CoveredSession, CoveredSlot};
use crate::blocks::page::Page;
use crate::trace_file::loss::after;
use crate::trace_file::session::Session;
use crate::trace_file::why::Why;

/// What the reader of parts knows of pages that are not here.
///
/// The default waits for all of them. A session is over only where its reader says that it has all inputs:
/// else a page may be in one that was left for the next part.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Settled {
    /// All inputs that are there are read: what was acknowledged and is not here is missing, and what is not
    /// here of a session that has ended will not come.
    pub is_all: bool,
    /// Hosts that said nothing since then are given up, in ns since 1970 on the clocks of their collectors: what
    /// is not here will not come. 0: none is.
    pub silent_ns: u64,
}

/// A session on the way through its slots.
struct Reach<'s> {
    session: &'s Session,
    settled: Settled,
    /// Its host said that all was read, or nothing for long.
    is_ending: bool,
    is_given_up: bool,
}

/// Leaves the pages out that wait for others, and notes how far the session is covered. Returns the tick up
/// to which its records are read, if they wait for each other.
pub(super) fn advance(
    session: &mut Session,
    covered: &mut CoveredSession,
    settled: Settled,
) -> Option<u64> {
    if covered.is_over {
        session.goes_on = true;
        session.slots.clear();
        return None;
    }
    let (is_over, next) = Reach::of(session, settled).all(covered);
    covered.is_over = is_over;
    session.goes_on = !is_over;
    let mut next = next;
    let up_to = if is_over {
        None
    } else {
        together(session, covered, &next)
    };
    if let Some(tick) = up_to {
        wait(session, covered, tick, &mut next);
    }
    for slot in &mut session.slots {
        let next = next.iter().find(|(index, _)| *index == slot.index.0);
        let next = next.map_or(0, |(_, next)| *next);
        slot.pages.retain(|page| is_over || page.number.0 < next);
    }
    session.slots.retain(|slot| !slot.pages.is_empty());
    for (index, next) in next {
        covered.slots.entry(index).or_default().next_page = next;
    }
    for slot in &session.slots {
        let known = covered.slots.entry(slot.index.0).or_default();
        slot.pages.iter().for_each(|page| note(page, known));
    }
    up_to
}

fn note(page: &Page, slot: &mut CoveredSlot) {
    slot.events = slot.events.max(after(page));
    slot.lost = slot.lost.max(page.header.lost_before);
    slot.tick = slot
        .tick
        .max(page.summary.ticks.map_or(0, |(_, last)| last));
}

impl<'s> Reach<'s> {
    fn of(session: &'s Session, settled: Settled) -> Self {
        let heard_ns = session.heard_ns();
        let is_given_up = heard_ns.is_some_and(|heard| heard < settled.silent_ns);
        Self {
            session,
            settled,
            is_ending: settled.is_all && (session.is_final() || is_given_up),
            is_given_up: settled.is_all && is_given_up,
        }
    }

    /// The page up to which each slot can be read, and whether that is all of the session.
    fn all(&self, covered: &CoveredSession) -> (bool, Vec<(u32, u64)>) {
        let from = |slot| covered.slots.get(&slot).map_or(0, |slot| slot.next_page);
        let slots = self.session.slots.iter();
        let slots = slots.map(|slot| {
            let index = slot.index.0;
            (index, self.slot(index, &slot.pages, from(index)))
        });
        let found: Vec<_> = slots.collect();
        let counters = self.session.counters.iter();
        let counted = counters.flat_map(|counters| counters.slots.keys());
        let is_found = |slot: &u32| found.iter().any(|(index, _)| index == slot);
        let others = counted.filter(|slot| !is_found(slot));
        let without_pages = others.map(|slot| self.slot(*slot, &[], from(*slot)));
        let are_others_whole = without_pages.into_iter().all(|(_, whole)| whole);
        let is_whole = found.iter().all(|(_, (_, whole))| *whole) && are_others_whole;
        let next = found.into_iter().map(|(index, (next, _))| (index, next));
        (self.is_ending && is_whole, next.collect())
    }

    /// The page up to which a slot can be read from `from` on, and whether nothing of it waits.
    fn slot(&self, slot: u32, pages: &[Page], from: u64) -> (u64, bool) {
        if self.session.schema_lacks > 0 && !self.is_given_up {
            // Its records would have no names for good.
            return (from, false);
        }
        let mut next = from;
        for page in pages.iter().filter(|page| page.number.0 >= from) {
            let number = page.number.0;
            let is_whole = page.sealed || self.is_ending;
            if !self.never_come(slot, next..number)
                || !is_whole && !self.never_come(slot, number..number + 1)
            {
                return (next, false);
            }
            next = next.max(number + 1);
        }
        let counters = self.session.counters.as_ref();
        let counted = counters.and_then(|counters| counters.slots.get(&slot));
        let end = counted.map_or(0, |slot| slot.produced);
        match end > next && self.is_ending {
            true if self.never_come(slot, next..end) => (end, true),
            true => (next, false),
            false => (next, true),
        }
    }

    /// Whether pages that are not here will not come.
    fn never_come(&self, slot: u32, pages: Range<u64>) -> bool {
        if pages.is_empty() || self.is_given_up {
            return true;
        }
        if !self.session.progress.is_there() {
            return self.is_ending;
        }
        let absent = self.session.progress.absent(slot, pages);
        absent.parts.iter().all(|part| match part.why {
            None if part.is_elsewhere => true,
            Some(Why::Late) => false,
            // What came over earlier connections may be in an input that was left out.
            None | Some(Why::Missing) => self.settled.is_all,
            _ => true,
        })
    }
}
