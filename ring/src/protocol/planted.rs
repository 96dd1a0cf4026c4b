//! Bugs that a test can plant, to see that the single-step harness catches them. Only under
//! `--cfg planted`; in any other build `is` is the constant `false` and nothing is left of them.
//!
//! A test that has never failed shows little. Each bug here was chosen because a hand could make it
//! in a small change of the writer, and because all other tests would still pass on most machines.
//!
//! The line that reserves and commits does not name them. Each stands in the small function of the
//! step that it breaks, or in a function below that does nothing while its bug is not planted.

use core::sync::atomic::Ordering::{Relaxed, SeqCst};
use core::sync::atomic::compiler_fence;

use crate::protocol::sync::AtomicU64;
use crate::protocol::sync::private::AtomicPtr;

/// A bug of the writer, with the step that it breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub(crate) enum Bug {
    /// A record's header word is stored before its payload.
    CommitBeforePayload = 1,
    /// A page is zeroed and filled again without `generation := BUSY`.
    PageReusedWithoutBusy,
    /// Records are counted after the commit, when their reservations are no longer under way.
    CountAndCommitApart,
    /// The cursor moves before the mark, and the mark is a plain store.
    BumpAndBusyApart,
    /// A handler switches the page although the context that it interrupted holds a reservation.
    PageSwitchedUnderReservation,
    /// A frame of the stack of open spans is filled before it is claimed.
    FrameBeforeClaim,
}

#[cfg(planted)]
static PLANTED: core::sync::atomic::AtomicU64 = core::sync::atomic::AtomicU64::new(0);

/// Plants the bug of this name in place of the last one, for the whole process; `false`: no bug has
/// this name.
#[cfg(planted)]
pub fn plant(name: &str) -> bool {
    let bug = match name {
        "commit-before-payload" => Bug::CommitBeforePayload,
        "page-reused-without-busy" => Bug::PageReusedWithoutBusy,
        "count-and-commit-apart" => Bug::CountAndCommitApart,
        "bump-and-busy-apart" => Bug::BumpAndBusyApart,
        "page-switched-under-reservation" => Bug::PageSwitchedUnderReservation,
        "frame-before-claim" => Bug::FrameBeforeClaim,
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

/// [`Bug::FrameBeforeClaim`]: the serial number for a frame with this head, which is not claimed.
/// `None`: it is not planted.
#[inline(always)]
pub(crate) fn claimed_later(head: u64) -> Option<u32> {
    is(Bug::FrameBeforeClaim).then_some((head as u32).wrapping_add(1))
}
