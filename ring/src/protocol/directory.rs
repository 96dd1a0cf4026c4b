//! The ring directory as threads of the producer use it: who gets which slot.

use core::sync::atomic::Ordering::Relaxed;

use ringmark_format::slot::state;

use crate::protocol::slot::{SlotGeometry, SlotView};
use crate::protocol::sync::AtomicU64;

/// The slots of a session.
#[derive(Clone, Copy)]
pub struct Directory<'m, F> {
    used: &'m AtomicU64,
    slots: u32,
    slot: F,
}

impl<'m, F: Fn(u32) -> Option<SlotView<'m>>> Directory<'m, F> {
    /// A directory of `slots` entries, of which `used` says how many are in use; `slot` finds one.
    pub fn new(used: &'m AtomicU64, slots: u32, slot: F) -> Self {
        Self { used, slots, slot }
    }

    /// Entries in use.
    #[must_use]
    pub fn used(&self) -> u32 {
        self.used.load(Relaxed).min(self.slots.into()) as u32
    }

    /// Whether there is an entry that nobody had.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.used.load(Relaxed) < self.slots.into()
    }

    /// Claims an entry that nobody had and states its geometry. It is CLAIMING, the caller's.
    #[must_use]
    pub fn add(&self, geometry: SlotGeometry) -> Option<u32> {
        let slots = u64::from(self.slots);
        let one_more = |n| (n < slots).then_some(n + 1);
        let index = self.used.fetch_update(Relaxed, Relaxed, one_more).ok()? as u32;
        let slot = (self.slot)(index)?;
        if !slot.claim(state::FREE) {
            return None;
        }
        slot.set_geometry(geometry);
        Some(index)
    }

    /// Rings that wait for threads.
    #[must_use]
    pub fn count_warm(&self) -> u32 {
        let warm = |i: &u32| (self.slot)(*i).is_some_and(|s| s.state() == state::WARM);
        (0..self.used()).filter(warm).count() as u32
    }

    /// Claims a ring that waits for a thread.
    #[must_use]
    pub fn claim_warm(&self) -> Option<u32> {
        self.claim_first(state::WARM, |_| true)
    }

    /// Claims a sealed ring that a reader has taken everything from.
    #[must_use]
    pub fn claim_drained(&self) -> Option<u32> {
        self.claim_first(state::SEALED, |slot| slot.consumed() == slot.produced())
    }

    /// Claims the sealed ring whose claim is the oldest: its events are overwritten.
    #[must_use]
    pub fn claim_oldest_sealed(&self) -> Option<u32> {
        let sealed = |i: u32| Some((i, (self.slot)(i).filter(|s| s.state() == state::SEALED)?));
        let (index, slot) = (0..self.used())
            .filter_map(sealed)
            .min_by_key(|(_, slot)| slot.ring_id())?;
        slot.claim(state::SEALED).then_some(index)
    }

    fn claim_first(&self, from: u64, fits: impl Fn(&SlotView<'_>) -> bool) -> Option<u32> {
        (0..self.used()).find(|index| {
            (self.slot)(*index)
                .is_some_and(|slot| slot.state() == from && fits(&slot) && slot.claim(from))
        })
    }
}
