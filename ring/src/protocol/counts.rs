//! What a writer counts: reservations begun and ended, so that it knows how many are under way, and
//! the records that came of them.
//!
//! Each count is one instruction that is whole for signal handlers. The order of the ends does not
//! matter, and a context that begins need not know which others have. A reservation that was left
//! by `longjmp` or `mem::forget` stays under way.
//!
//! ```text
//!  under way = begun - ended
//!
//!  reserve:   begin ──▶ mark ──▶ record ─────────▶ commit ──▶ end
//!  handler:                  begin … end (any number, each balanced)
//!  switch:    begin ──▶ is_alone? ──▶ new page ──▶ mark ──▶ …
//! ```
//!
//! That a page is switched only where `is_alone` says so is invariant 2 of [`crate::writer`]. It
//! holds because `begin` comes before the first look at the page and `end` after the last store to
//! it; the compiler fences in both keep it so.

use core::sync::atomic::Ordering::{Relaxed, SeqCst};
use core::sync::atomic::compiler_fence;

use crate::protocol::single_instruction;
use crate::protocol::sync::private::AtomicU64 as Private;

pub(crate) const BEGUN: usize = 0;
pub(crate) const ENDED: usize = 1;
pub(crate) const RECORDS: usize = 2;

/// The counts of one writer, private to its thread. Two words for what is under way: a single one
/// that went up and down would make each event wait twice for the store before it.
///
/// All three only grow, and wrap only after 2^64 events.
#[repr(transparent)]
pub(crate) struct Counts([Private; 3]);

impl Counts {
    pub(crate) const fn new() -> Self {
        Self([const { Private::new(0) }; 3])
    }

    /// A new claim begins: reservations that the last owner left under way are forgotten. The
    /// count of records goes on, because page headers count from the slot's first owner.
    pub(crate) fn none_under_way(&self) {
        self.0[BEGUN].store(0, Relaxed);
        self.0[ENDED].store(0, Relaxed);
    }

    /// A reservation begins: what is read of the writer's page from here on holds until it ends,
    /// because no handler switches the page.
    #[inline(always)]
    pub(crate) fn begin(&self) {
        single_instruction::increment_in::<BEGUN, 3>(&self.0);
        compiler_fence(SeqCst);
    }

    /// A reservation ends, any of those under way: its record was committed or cancelled, or there is none.
    #[inline(always)]
    pub(crate) fn end(&self) {
        compiler_fence(SeqCst);
        single_instruction::increment_in::<ENDED, 3>(&self.0);
    }

    /// A record was reserved.
    #[inline(always)]
    pub(crate) fn record(&self) {
        single_instruction::increment_in::<RECORDS, 3>(&self.0);
    }

    /// Records reserved so far.
    #[inline(always)]
    pub(crate) fn records(&self) -> u64 {
        self.0[RECORDS].load(Relaxed)
    }

    /// Whether the caller's reservation is the only one under way: the page may be switched. A
    /// handler that comes after the answer has ended its reservations, or left one that the next
    /// call finds.
    pub(crate) fn is_alone(&self) -> bool {
        self.under_way() <= 1
    }

    /// Reservations under way at one moment of this call, the caller's included, whatever handlers
    /// come: both words are read between two equal readings of one of them.
    pub(crate) fn under_way(&self) -> u64 {
        loop {
            let ended = self.0[ENDED].load(Relaxed);
            compiler_fence(SeqCst);
            let begun = self.0[BEGUN].load(Relaxed);
            compiler_fence(SeqCst);
            if self.0[ENDED].load(Relaxed) == ended {
                return begun.wrapping_sub(ended);
            }
        }
    }
}
