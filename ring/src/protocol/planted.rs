//! Bugs that a test can plant, to see that the single-step harness catches them. Only under
//! `--cfg planted`; in any other build `is` is the constant `false` and nothing is left of them.

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
