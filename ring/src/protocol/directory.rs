//! The ring directory as threads of the producer use it: which thread gets which slot.
//!
//! A thread that attaches looks for a ring in this order, so that memory is allocated ahead of
//! need and used again before more is taken:
//!
//! 1. [`Directory::claim_warm`]: a ring that the helper thread has prepared.
//! 2. [`Directory::claim_drained`]: in discard mode, an ended thread's ring that was read to its
//!    end.
//! 3. [`Directory::add`]: a new entry, with memory of its own.
//! 4. [`Directory::claim_oldest_sealed`]: in overwrite mode, an ended thread's ring with its
//!    events.
//!
//! No lock: each claim is one compare-exchange on one slot's state, so a thread that is killed or
//! interrupted in the middle leaves one slot CLAIMING and stops no other thread.

use core::sync::atomic::Ordering::Relaxed;

use ringmark_format::slot::state;

use crate::protocol::slot::{SlotGeometry, SlotView};
use crate::protocol::sync::AtomicU64;

/// The slots of a session. Entries are never removed: an index that was in use stays in use.
#[derive(Clone, Copy)]
pub struct Directory<'m, F> {
    used: &'m AtomicU64,
    slots: u32,
    slot: F,
}

impl<'m, F: Fn(u32) -> Option<SlotView<'m>>> Directory<'m, F> {
    /// A directory of `slots` entries, of which the word `used` says how many are in use; `slot`
    /// finds one by its index.
    pub fn new(used: &'m AtomicU64, slots: u32, slot: F) -> Self {
        Self { used, slots, slot }
    }

    /// Entries in use, from index 0 on; at most all there are, whatever a damaged file says. An
    /// entry among them may still be FREE, or CLAIMING for the first time.
    #[must_use]
    pub fn used(&self) -> u32 {
        self.used.load(Relaxed).min(self.slots.into()) as u32
    }

    /// Whether there is an entry that no thread has had.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.used.load(Relaxed) < self.slots.into()
    }

    /// Claims an entry that no thread has had and writes its geometry. The entry is CLAIMING, and
    /// the caller publishes the next state. `has_memory` says whether the entry with this index may be
    /// touched, and is asked before the entry is in use. `None`: all entries are in use, or there is no
    /// memory for one more.
    #[must_use]
    pub fn add(&self, geometry: SlotGeometry, has_memory: impl Fn(u32) -> bool) -> Option<u32> {
        let slots = u64::from(self.slots);
        let one_more = |n| (n < slots && has_memory(n as u32)).then_some(n + 1);
        let index = self.used.fetch_update(Relaxed, Relaxed, one_more).ok()? as u32;
        let slot = (self.slot)(index)?;
        if !slot.claim(state::FREE) {
            return None;
        }
        slot.set_geometry(geometry);
        Some(index)
    }

    /// Rings that wait for threads, for the helper thread that prepares more when they are few.
    /// A count of the moment: threads claim them at any time.
    #[must_use]
    pub fn count_warm(&self) -> u32 {
        let warm = |i: &u32| (self.slot)(*i).is_some_and(|s| s.state() == state::WARM);
        (0..self.used()).filter(warm).count() as u32
    }

    /// Claims a ring that waits for a thread. `None`: there is none.
    #[must_use]
    pub fn claim_warm(&self) -> Option<u32> {
        self.claim_first(state::WARM, |_| true)
    }

    /// Claims a sealed ring from which the consumer has taken every page: no event goes with it.
    /// In overwrite mode, where no pages are released, only a ring without pages is found.
    #[must_use]
    pub fn claim_drained(&self) -> Option<u32> {
        self.claim_first(state::SEALED, |slot| slot.consumed() == slot.produced())
    }

    /// Claims the sealed ring whose claim is the oldest: its events will be overwritten. `None`
    /// also where another thread claims that ring at the same moment.
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
