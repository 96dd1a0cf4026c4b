//! How far all slots of a session are here together, for what goes from thread to thread: spans over
//! several records, and calls on other stacks. Records that are later wait in their pages.

use super::CoveredSession;
use crate::blocks::content::Content;
use crate::blocks::page::Page;
use crate::blocks::walk::{Record, Reservation, Shown};
use crate::cut::pages::blank;
use crate::trace_file::loss::after;
use crate::trace_file::session::Session;

/// A page of which some records wait: it is read up to a tick.
#[derive(Debug)]
pub(super) struct Waiting {
    /// Places of the slot in its session and of the page in the slot.
    pub(super) slot: usize,
    pub(super) page: usize,
    pub(super) up_to: u64,
    /// The page with all of its records.
    pub(super) bytes: Vec<u8>,
    /// Smallest and largest tick of them.
    pub(super) ticks: (u64, u64),
}

/// The tick up to which the records of all slots are here; `None`: they need not wait for each other.
/// `next`: the page up to which each slot with pages can be read.
pub(super) fn together(
    session: &Session,
    covered: &CoveredSession,
    next: &[(u32, u64)],
) -> Option<u64> {
    let mut types = session.schema.types().iter();
    let goes_over_threads = types.any(|ty| {
        let is_part = ty.shape.is_some_and(|shape| shape.is_part_of_span());
        ty.occurs && (is_part || ty.function.is_some_and(|meaning| meaning.has_slot))
    });
    if !goes_over_threads {
        return None;
    }
    // Slots that were taken later than the counters are not known.
    let counters = session.counters.as_ref();
    let counted = counters.map_or(0, |counters| counters.header.sample_tick);
    let mut slots: Vec<u32> = covered.slots.keys().copied().collect();
    slots.extend(session.slots.iter().map(|slot| slot.index.0));
    slots.extend(counters.iter().flat_map(|counters| counters.slots.keys()));
    let bounds = slots.into_iter().map(|index| {
        let known = covered.slots.get(&index);
        let (mut events, mut tick) = known.map_or((0, 0), |known| (known.events, known.tick));
        let until = next.iter().find(|(slot, _)| *slot == index);
        let until = until.map_or(0, |(_, next)| *next);
        let slot = session.slots.iter().find(|slot| slot.index.0 == index);
        let pages = slot.map_or(&[][..], |slot| &slot.pages);
        let ready = pages.iter().filter(|page| page.number.0 < until);
        for page in ready {
            events = events.max(after(page));
            tick = tick.max(page.summary.ticks.map_or(0, |(_, last)| last));
        }
        let waits = pages.iter().any(|page| page.number.0 >= until);
        let of_slot = counters.and_then(|counters| counters.slots.get(&index));
        let all = of_slot.is_some_and(|slot| slot.events <= events);
        if all && !waits { counted } else { tick }
    });
    Some(bounds.fold(counted, u64::min))
}

/// Leaves out the pages whose records are all later than this tick.
pub(super) fn wait(
    session: &Session,
    covered: &CoveredSession,
    tick: u64,
    next: &mut [(u32, u64)],
) {
    for (index, next) in next {
        let known = covered.slots.get(index).map_or(0, |slot| slot.next_page);
        let slot = session.slots.iter().find(|slot| slot.index.0 == *index);
        let pages = slot.map_or(&[][..], |slot| &slot.pages);
        let later = |page: &&Page| page.summary.ticks.is_some_and(|(first, _)| first > tick);
        let mut new = pages.iter().filter(|page| page.number.0 >= known);
        if let Some(page) = new.find(later) {
            *next = page.number.0.min(*next);
        }
    }
}

/// Takes the later records out of their pages, and returns these.
pub(super) fn take_later(session: &mut Session, up_to: u64) -> Vec<Waiting> {
    let mut waiting = Vec::new();
    for (place, slot) in session.slots.iter_mut().enumerate() {
        for (at, page) in slot.pages.iter_mut().enumerate() {
            let Some(ticks) = page.summary.ticks.filter(|(_, last)| *last > up_to) else {
                continue;
            };
            let bytes = page.load();
            let kept = up_to_tick(page, &bytes, up_to);
            page.content = Content::Held(kept.clone().into());
            page.check(&kept, |_| ());
            waiting.push(Waiting {
                slot: place,
                page: at,
                up_to,
                bytes,
                ticks,
            });
        }
    }
    waiting
}

/// The bytes of a page without its later records.
fn up_to_tick(page: &Page, bytes: &[u8], up_to: u64) -> Vec<u8> {
    let mut kept = bytes.to_vec();
    let sound = page.sound(bytes);
    let (mut walk, mut record) = (page.walk(), Record::NONE);
    let mut at = walk.at();
    while let Some(step) = walk.step(sound, Shown::default(), &mut record) {
        if matches!(step, Reservation::Event) && record.tick > up_to {
            blank(&mut kept[at..walk.at()]);
        }
        at = walk.at();
    }
    kept
}
