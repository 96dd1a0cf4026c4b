//! Every ordering on shared words, by label (table in the crate's documentation).
//!
//! In a normal build each function is a constant. Under loom, `weaken` makes one of them Relaxed,
//! or leaves one fence out, so that a test can show that it is needed.
//!
//! # A new ordering
//!
//! 1. A line in `orderings!` with a label of its own, and the label of its partner.
//! 2. A row in the table of the crate's documentation: where, with which partner, and what a reader
//!    would see without it.
//! 3. The label in a comment at each place that calls the function.
//! 4. A model in `tests/loom_*.rs` that fails when the label is weakened.
//!
//! The tests of style compare all four. Relaxed needs none of it: it orders nothing, and stands
//! where a word is private to a thread, or is published by another word.

use core::sync::atomic::Ordering;

#[cfg(loom)]
static WEAKENED: std::sync::Mutex<Option<&'static str>> = std::sync::Mutex::new(None);

/// Weakens the ordering with this label, or several (`"W1+W4"`), for the models that follow.
#[cfg(loom)]
pub fn weaken(label: Option<&'static str>) {
    *WEAKENED.lock().unwrap_or_else(|e| e.into_inner()) = label;
}

#[cfg(loom)]
fn weakened(label: &str) -> bool {
    WEAKENED
        .lock()
        .unwrap_or_else(|e| e.into_inner())
        .is_some_and(|w| w.split('+').any(|one| one == label))
}

#[cfg(not(loom))]
#[inline(always)]
const fn weakened(_label: &str) -> bool {
    false
}

macro_rules! orderings {
    ($($(#[$meta:meta])* $name:ident = $label:literal $ordering:ident;)*) => { $(
        $(#[$meta])*
        #[inline(always)]
        pub(crate) fn $name() -> Ordering {
            if weakened($label) { Ordering::Relaxed } else { Ordering::$ordering }
        }
    )* };
}

orderings! {
    page_open_release = "W2" Release; // [W2] pairs with [R1]
    commit_release = "W3" Release; // [W3] pairs with [R2]
    produced_release = "W4" Release; // [W4] pairs with [R3]
    consumed_release = "C1" Release; // [C1] pairs with [P1]
    consumed_acquire = "P1" Acquire; // [P1] pairs with [C1]
    page_open_acquire = "R1" Acquire; // [R1] pairs with [W2]
    header_acquire = "R2" Acquire; // [R2] pairs with [W3]
    produced_acquire = "R3" Acquire; // [R3] pairs with [W4]
    state_release = "T1" Release; // [T1] pairs with [T2]
    state_acquire = "T2" Acquire; // [T2] pairs with [T1]
    schema_release = "S1" Release; // [S1] pairs with [S2]
    schema_acquire = "S2" Acquire; // [S2] pairs with [S1]
    mail_release = "M1" Release; // [M1] pairs with [M2]
    mail_acquire = "M2" Acquire; // [M2] pairs with [M1]
    owner_release = "O2" Release; // [O2] pairs with [O3]
    owner_acquire = "O3" Acquire; // [O3] pairs with [O2]
    frame_release = "F2" Release; // [F2] pairs with [F3]
    frame_acquire = "F3" Acquire; // [F3] pairs with [F2]
    lock_acquire = "L1" Acquire; // [L1] pairs with [L2]
    lock_release = "L2" Release; // [L2] pairs with [L1]
    current_acquire = "L3" Acquire; // [L3] pairs with [L4]
    current_release = "L4" Release; // [L4] pairs with [L3]
    lease_acquire = "L5" Acquire; // [L5] pairs with [L6]
    lease_release = "L6" Release; // [L6] pairs with [L5]
}

/// After `generation := BUSY`, before the page is zeroed. A fence and not a Release store, because
/// it orders the stores that come after it.
#[inline(always)]
pub(crate) fn switch_fence() {
    if !weakened("W1") {
        crate::protocol::sync::fence(Ordering::Release); // [W1] pairs with [R4]
    }
}

/// After the copy, before `generation` is loaded again. A fence and not an Acquire load, because
/// it orders the loads that came before it.
#[inline(always)]
pub(crate) fn recheck_fence() {
    if !weakened("R4") {
        crate::protocol::sync::fence(Ordering::Acquire); // [R4] pairs with [W1]
    }
}

/// After `ring_id := 0`, before the new owner is written: for a slot's owner what [`switch_fence`]
/// is for a page.
pub(crate) fn owner_fence() {
    if !weakened("O1") {
        crate::protocol::sync::fence(Ordering::Release); // [O1] pairs with [O4]
    }
}

/// After the owner was read, before the ring id is loaded again: for a slot's owner what
/// [`recheck_fence`] is for a page.
pub(crate) fn owner_recheck_fence() {
    if !weakened("O4") {
        crate::protocol::sync::fence(Ordering::Acquire); // [O4] pairs with [O1]
    }
}

/// After a frame of the stack of open spans was claimed, before it is filled: its head was free, and
/// a reader that sees a new word of it sees that its head is no longer the old one.
#[inline(always)]
pub(crate) fn frame_fence() {
    if !weakened("F1") {
        crate::protocol::sync::fence(Ordering::Release); // [F1] pairs with [F4]
    }
}

/// After a frame was copied, before its head is loaded again.
#[inline(always)]
pub(crate) fn frame_recheck_fence() {
    if !weakened("F4") {
        crate::protocol::sync::fence(Ordering::Acquire); // [F4] pairs with [F1]
    }
}

/// After a condition began to hold, before what depends on it is taken away: of two threads that each write one word
/// and look at the other's, one sees what the other wrote.
pub(crate) fn withdrawal_fence() {
    if !weakened("G1") {
        crate::protocol::sync::fence(Ordering::SeqCst); // [G1] pairs with [G2]
    }
}

/// The other side: after it was given back, before the condition is looked at.
pub(crate) fn giving_back_fence() {
    if !weakened("G2") {
        crate::protocol::sync::fence(Ordering::SeqCst); // [G2] pairs with [G1]
    }
}
