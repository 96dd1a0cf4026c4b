//! What a writer remembers of a ring that is full, so that assembly can count what is lost until a
//! page is released, without a call.
//!
//! Discard mode only. A program that emits faster than its consumer reads spends most of its
//! events here: one load of *consumed*, one comparison, one increment. The Rust path does not use
//! it; it comes to the same result through the cold path.

use core::ptr;
use core::sync::atomic::Ordering::Relaxed;

use ringmark_format::counters::Cause;

use crate::protocol::slot::SlotView;
use crate::protocol::sync::AtomicU64;
use crate::protocol::sync::private::{AtomicPtr, AtomicU64 as Private};

/// Part of a writer, private like that. All zero bytes: not known to be full.
///
/// The pointers lead into the slot and the consumed region, which are mapped as long as the pages
/// are (invariant 5 of the writer). `consumed` is stored last and cleared first, so that assembly
/// in a handler never finds half of it.
#[repr(C)]
pub(crate) struct FullRing {
    consumed: AtomicPtr<AtomicU64>,
    seen: Private,
    lost: AtomicPtr<AtomicU64>,
}

/// Where assembly finds it, in bytes from its start: it counts as `Writer::reserve_cold` does.
pub mod offsets {
    use core::mem::offset_of;

    use crate::protocol::full_ring::FullRing;

    /// Pointer to the slot's *consumed* while the ring is known to be full and no page is open;
    /// else null.
    pub const CONSUMED: usize = offset_of!(FullRing, consumed);
    /// u64: the ring is full as long as *consumed* is this.
    pub const SEEN: usize = offset_of!(FullRing, seen);
    /// Pointer to the count of what is lost for it.
    pub const LOST: usize = offset_of!(FullRing, lost);
}

impl FullRing {
    pub(crate) const fn new() -> Self {
        Self {
            consumed: AtomicPtr::new(ptr::null_mut()),
            seen: Private::new(0),
            lost: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// Remembers that nothing can be written as long as *consumed* is `consumed`. No page is open.
    pub(crate) fn remember(&self, slot: &SlotView<'static>, consumed: u64) {
        let lost = ptr::from_ref(slot.lost_word(Cause::RingFull));
        self.lost.store(lost.cast_mut(), Relaxed);
        self.seen.store(consumed, Relaxed);
        let word = ptr::from_ref(slot.consumed_word());
        self.consumed.store(word.cast_mut(), Relaxed);
    }

    /// Whether the ring is known to be full as long as *consumed* is `consumed`.
    pub(crate) fn holds(&self, consumed: u64) -> bool {
        !self.consumed.load(Relaxed).is_null() && self.seen.load(Relaxed) == consumed
    }

    /// Forgets it: a page is about to be opened, or the ring gets another owner.
    pub(crate) fn forget(&self) {
        self.consumed.store(ptr::null_mut(), Relaxed);
    }
}
