//! Which pages of a ring have memory. A ring has memory for its first pages before it has an owner, and
//! gets it for the others while its owner already records: no thread's first event waits for a whole ring.
//!
//! Pages are used in order, so those without memory lie at the ring's end, and only its first round meets
//! them. Whoever gets memory for a page, the owner or a thread that helps it, says so. All of it is
//! relaxed: what a system call has mapped when it returns is there for the whole process, and a slot's
//! state (`[T1]`) publishes what is said before the first owner comes.

use core::ops::Range;
use core::sync::atomic::Ordering::Relaxed;

use super::{Ring, Writer};
use crate::protocol::slot::SlotGeometry;

impl Writer {
    /// Says of a new ring, which has no owner yet, that its first `pages` alone have memory.
    pub fn has_first_pages(&self, pages: u64, geometry: SlotGeometry) {
        let others = u64::from(geometry.pages).saturating_sub(pages);
        self.without_memory.store(others, Relaxed);
    }

    /// The pages without memory. Another thread may ask at any time, and finds at most too many.
    #[must_use]
    pub fn pages_without_memory(&self, geometry: SlotGeometry) -> Range<u64> {
        let pages = u64::from(geometry.pages);
        pages.saturating_sub(self.without_memory.load(Relaxed))..pages
    }

    /// Says that this page has memory; each one before it had it. Another thread may say it at any time.
    pub fn has_memory_up_to(&self, page: u64, geometry: SlotGeometry) {
        let others = u64::from(geometry.pages).saturating_sub(page + 1);
        self.without_memory.fetch_min(others, Relaxed);
    }

    /// The page that the next switch opens, and its ring's geometry: for an owner to whom it was refused
    /// for lack of memory.
    #[must_use]
    pub fn next_page(&self) -> Option<(u64, SlotGeometry)> {
        let geometry = self.ring()?.geometry;
        let number = self.produced.load(Relaxed);
        Some((number % u64::from(geometry.pages), geometry))
    }

    pub(super) fn has_memory(&self, ring: &Ring, number: u64) -> bool {
        !self.pages_without_memory(ring.geometry).contains(&number)
    }
}
