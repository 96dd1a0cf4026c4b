//! Bugs that a test can plant, to see that the single-step harness catches them. Only under
//! `--cfg planted`; in any other build `is` is the constant `false` and nothing is left of them.

use core::sync::atomic::Ordering::{Relaxed, SeqCst};
use core::sync::atomic::{AtomicPtr, compiler_fence};

use crate::protocol::sync::AtomicU64;

/// A bug of the writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub(crate) enum Bug {
    /// A record's header word is stored before its payload.
    CommitBeforePayload = 1,
    /// A page is zeroed and filled again without `generation := BUSY`.
    PageReusedWithoutBusy,
    /// Reservations are counted behind the commit, when the record is no longer under way.
    CountAndCommitApart,
    /// The cursor moves in front of the mark, instead of behind one compare-exchange.
    BumpAndBusyApart,
    /// A handler turns the page although the context that it interrupted holds a reservation.
    PageTurnedUnderReservation,
}

#[cfg(planted)]
static PLANTED: core::sync::atomic::AtomicU64 = core::sync::atomic::AtomicU64::new(0);

/// Plants the bug of this name; `false`: there is none.
#[cfg(planted)]
pub fn plant(name: &str) -> bool {
    let bug = match name {
        "commit-before-payload" => Bug::CommitBeforePayload,
        "page-reused-without-busy" => Bug::PageReusedWithoutBusy,
        "count-and-commit-apart" => Bug::CountAndCommitApart,
        "bump-and-busy-apart" => Bug::BumpAndBusyApart,
        "page-turned-under-reservation" => Bug::PageTurnedUnderReservation,
        _ => return false,
    };
    PLANTED.store(bug as u64, core::sync::atomic::Ordering::Relaxed);
    true
}

/// Whether this bug is planted.
#[cfg(planted)]
#[inline(always)]
pub(crate) fn is(bug: Bug) -> bool {
    PLANTED.load(core::sync::atomic::Ordering::Relaxed) == bug as u64
}

/// Whether this bug is planted: never.
#[cfg(not(planted))]
#[inline(always)]
pub(crate) const fn is(_bug: Bug) -> bool {
    false
}

/// [`Bug::BumpAndBusyApart`]: moves the cursor, then marks the record without looking. `false`: it
/// is not planted, and nothing is done.
#[inline(always)]
pub(crate) fn bump_before_mark(
    cursor: &AtomicPtr<AtomicU64>,
    next: *mut AtomicU64,
    header: &AtomicU64,
    busy: u64,
) -> bool {
    let is_planted = is(Bug::BumpAndBusyApart);
    if is_planted {
        cursor.store(next, Relaxed);
        compiler_fence(SeqCst);
        header.store(busy, Relaxed);
    }
    is_planted
}

/// [`Bug::CommitBeforePayload`]: stores the header word when the record is reserved.
#[inline(always)]
pub(crate) fn commit_before_payload(header: &AtomicU64, commit: u64) {
    if is(Bug::CommitBeforePayload) {
        header.store(commit, Relaxed);
    }
}
