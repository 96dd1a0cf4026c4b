//! The rings of one thread: more than one only where a reservation stayed open in a full page.
//!
//! Such a reservation was left by `longjmp` or `mem::forget`, or it is held, by another coroutine of
//! the thread or by the context that a handler interrupts. Nothing tells these apart, and nothing has to:
//! the thread goes on in another ring, and no page of the first one is used again while a reservation
//! is open there. The context that has it may be in the middle of a page switch, or about to reserve,
//! and goes on there undisturbed. When none is open any more, the ring is taken up again, before any
//! other one is. At thread exit all are sealed.
//!
//! | an event finds the page full, and another reservation open | it |
//! | --- | --- |
//! | its thread has another ring without one | goes on there |
//! | it is in no signal handler | goes on in a new ring: what was left would hold up the thread for ever |
//! | it is in one | is lost, but for one in a thousand: its context is likely to end the reservation soon |
//! | its thread has [`RINGS_MAX`] rings | is lost |
//!
//! So a reservation that was left costs no other event, and its ring until the thread ends. A thread
//! has at most one ring more than reservations that it left or holds.
//!
//! ```text
//!          join                       ┌──────────── next ─────────────┐
//!   ┌───────────────┐  next  ┌────────▼──────┐  next  ┌───────────────┴┐
//!   │ first ring    │───────▶│ second ring   │───────▶│ third ring     │
//!   │ ABANDONED     │        │ ACTIVE        │        │ ABANDONED      │
//!   └───────▲───────┘        └───────────────┘        └────────────────┘
//! ```
//!
//! A thread's rings form a circle through `next`; a thread with one ring has null there. Only the
//! thread and its handlers touch the links, and `join` inserts with two stores, so a handler in
//! between finds the old circle.

use core::ptr;
use core::sync::atomic::Ordering::Relaxed;

use ringmark_format::slot::state;

use crate::protocol::writer::{HANDLER_GOES_ON_AFTER, RINGS_MAX, Writer};

impl Writer {
    /// Makes `other`, just attached, one more ring of this writer's thread. Called by that thread
    /// only: the links are private to it.
    pub fn join(&'static self, other: &'static Self) {
        debug_assert!(!ptr::eq(self, other) && other.next_own().is_none());
        // Spans that are open in this thread end there, whichever ring is current by then.
        other.share_stack(self);
        let after = self.next_own().unwrap_or(self);
        other.next.store(ptr::from_ref(after).cast_mut(), Relaxed);
        self.next.store(ptr::from_ref(other).cast_mut(), Relaxed);
    }

    /// Another ring of this thread, in which no reservation is open: the first choice of a nested event.
    /// `None`: the thread has no other ring, or all wait for a reservation.
    #[must_use]
    pub fn idle_other(&'static self) -> Option<&'static Self> {
        self.others().find(|other| other.is_idle())
    }

    /// Goes on in `other`, a ring of the same thread: this one is set aside as ABANDONED, which
    /// tells readers that its open page may stay as it is for long.
    pub fn change_to(&self, other: &Self) {
        debug_assert!(!ptr::eq(self, other) && other.is_attached());
        other.nested_lost.store(0, Relaxed);
        other.share_stack(self);
        other.publish_state(state::ACTIVE);
        self.publish_state(state::ABANDONED);
    }

    /// Whether to claim one more ring for this thread: its event is nested, and it has no idle ring.
    ///
    /// `is_in_handler` says whether a signal handler runs, and takes long: it is asked for the first of
    /// several nested events in a row, and then more and more seldom, as a search in vain is.
    pub fn wants_another(&'static self, is_in_handler: impl FnOnce() -> bool) -> bool {
        let lost = self.nested_lost.load(Relaxed);
        let is_due = lost.is_power_of_two() || lost.is_multiple_of(HANDLER_GOES_ON_AFTER);
        let is_allowed = || lost >= HANDLER_GOES_ON_AFTER || !is_in_handler();
        is_due && self.others().count() + 1 < RINGS_MAX && is_allowed()
    }

    /// Seals this ring and all others of its thread, which ends. Open reservations in them stay
    /// BUSY for ever: readers step over them.
    pub fn seal_all(&'static self) {
        // The next owner of a sealed ring changes its writer: it is not looked at again.
        let mut next = self.next_own();
        self.seal();
        while let Some(other) = next.filter(|other| !ptr::eq(*other, self)) {
            next = other.next_own();
            other.seal();
        }
    }

    pub(crate) fn others(&'static self) -> impl Iterator<Item = &'static Self> {
        let is_other = move |writer: &&'static Self| !ptr::eq(*writer, self);
        let next = self.next_own().filter(is_other);
        core::iter::successors(next, move |writer| writer.next_own().filter(is_other))
    }

    /// The rings of a thread form a circle; `None`: this is the only one.
    fn next_own(&self) -> Option<&'static Self> {
        let next = self.next.load(Relaxed);
        // SAFETY: invariant 6 of the writer: null, or stored by `join` from a `&'static`.
        unsafe { next.as_ref() }
    }

    fn is_idle(&self) -> bool {
        self.is_attached() && self.counts.under_way() == 0
    }
}
