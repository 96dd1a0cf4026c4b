//! Up to when everything that a session wrote is here, or will never come.

use crate::trace_file::loss::{self, Why};
use crate::trace_file::session::{Session, Slot};

/// The moment, ns since 1970, before which nothing of a session is late. `None`: it has ended, and
/// nothing is.
pub(crate) fn until_ns(session: &Session) -> Option<u64> {
    let counters = session.counters.as_ref();
    let sampled = counters.and_then(|counters| counters.sample());
    let sampled = sampled.map(|sample| sample.tick);
    let is_over = session.is_final();
    let ticks = session.slots.iter().filter_map(|slot| {
        let losses = loss::of_slot(session, slot).items.into_iter();
        let late = losses.filter(|(_, loss)| loss.why == Why::Late);
        match late.map(|(place, _)| place).min() {
            Some(place) => Some(last_tick(&slot.pages[..place.min(slot.pages.len())])),
            None if is_over => None,
            None if is_counted(session, slot) => sampled,
            None => Some(last_tick(&slot.pages)),
        }
    });
    let without_pages = loss::of_session(session);
    let is_late = without_pages.iter().any(|(_, loss)| loss.why == Why::Late);
    let from_start = is_late.then_some(0);
    // Nothing was before the session.
    let zero = session.header.map_or(0, |header| header.tick_zero);
    let tick = ticks.chain(from_start).min()?.max(zero);
    Some(session.clock.wall_of(tick, session.clock.t_ns(tick)))
}

/// The latest tick of these pages of a slot; 0: there is none.
fn last_tick(pages: &[crate::blocks::page::Page]) -> u64 {
    let ticks = pages.iter().filter_map(|page| page.summary.ticks);
    ticks.map(|(_, last)| last).max().unwrap_or(0)
}

/// Whether all reservations of a slot that the latest counters know are here.
fn is_counted(session: &Session, slot: &Slot) -> bool {
    let counters = session.counters.as_ref();
    let counted = counters.and_then(|counters| counters.slots.get(&slot.index.0));
    let here = slot.pages.iter().map(loss::after).max().unwrap_or(0);
    counted.is_some_and(|counted| counted.events <= here)
}
