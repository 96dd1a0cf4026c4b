//! What a writer counts: reservations begun and ended, so that it knows how many are under way, and
//! the records that came of them.
//!
//! Each count is one instruction that is whole for signal handlers. The order of the ends does not
//! matter, and who begins needs not know who else has. A reservation that was left behind, by a
//! `longjmp` or `mem::forget`, stays under way.

use core::sync::atomic::Ordering::{Relaxed, SeqCst};
use core::sync::atomic::{AtomicU64 as Private, compiler_fence};

use crate::protocol::planted::{self, Bug};
use crate::protocol::single_instruction;

pub(crate) const BEGUN: usize = 0;
pub(crate) const ENDED: usize = 1;
pub(crate) const RECORDS: usize = 2;

/// The counts of one writer. Two words for what is under way: one that went up and down again would
/// make each event wait twice for the store before it.
#[repr(transparent)]
pub(crate) struct Counts([Private; 3]);

impl Counts {
    pub(crate) const fn new() -> Self {
        Self([const { Private::new(0) }; 3])
    }

    /// A new claim begins.
    pub(crate) fn none_under_way(&self) {
        self.0[BEGUN].store(0, Relaxed);
        self.0[ENDED].store(0, Relaxed);
    }

    /// A reservation begins: what is read of the writer from here on holds until it ends.
    #[inline(always)]
    pub(crate) fn begin(&self) {
        single_instruction::increment_in::<BEGUN, 3>(&self.0);
        #[cfg(steps)]
        crate::protocol::steps::between();
        compiler_fence(SeqCst);
    }

    /// A reservation ends, any of those under way.
    #[inline(always)]
    pub(crate) fn end(&self) {
        compiler_fence(SeqCst);
        #[cfg(steps)]
        crate::protocol::steps::between();
        single_instruction::increment_in::<ENDED, 3>(&self.0);
    }

    /// A record was reserved.
    #[inline(always)]
    pub(crate) fn record(&self) {
        if !planted::is(Bug::CountAndCommitApart) {
            self.count_record();
        }
    }

    /// A reservation ends whose record was committed or cancelled.
    #[inline(always)]
    pub(crate) fn end_record(&self) {
        self.end();
        if planted::is(Bug::CountAndCommitApart) {
            self.count_record();
        }
    }

    #[inline(always)]
    fn count_record(&self) {
        #[cfg(steps)]
        crate::protocol::steps::between();
        single_instruction::increment_in::<RECORDS, 3>(&self.0);
    }

    /// Records reserved so far.
    #[inline(always)]
    pub(crate) fn records(&self) -> u64 {
        self.0[RECORDS].load(Relaxed)
    }

    /// Whether the caller's reservation is the only one under way: the page may be switched.
    pub(crate) fn is_alone(&self) -> bool {
        self.under_way() <= 1 || planted::is(Bug::PageTurnedUnderReservation)
    }

    /// Reservations under way at one moment of this call, whatever handlers come.
    pub(crate) fn under_way(&self) -> u64 {
        loop {
            let ended = self.0[ENDED].load(Relaxed);
            compiler_fence(SeqCst);
            #[cfg(steps)]
            crate::protocol::steps::between();
            let begun = self.0[BEGUN].load(Relaxed);
            compiler_fence(SeqCst);
            if self.0[ENDED].load(Relaxed) == ended {
                return begun.wrapping_sub(ended);
            }
        }
    }
}
