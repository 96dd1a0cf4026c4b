//! What a caller needs that may wait for room in a full ring, or go on in another one, instead of
//! losing its event. The wait itself is the caller's; `own_rings` has the other rings.
//!
//! ```text
//!  reserve_or_decide ──full──▶ the caller decides ──▶ waits ──▶ reserve_or_decide ──▶ tell_wait
//!                  │                   │                 └─in vain─▶ lose
//!                  │                   ├─ no reader: ──────────────▶ lose
//!                  │                   └─ a handler: forget_full ──▶ lose
//!                  └──nested──▶ the caller decides ──▶ reserve_or_decide in another ring
//!                                      └─ there is none ───────────▶ lose
//! ```
//!
//! A ring that was found full is known to be full until a page of it is released, so that all that
//! comes in between is lost without a question, also in the handlers that interrupt a wait. Where
//! the event that found it full was a handler's, this is forgotten: its thread is to be asked itself.
//!
//! A ring is full in discard mode only. The caller waits with no reservation under way, so that handlers of its thread
//! are not held up: they lose their events as in any full ring, and the caller's own is counted as
//! lost only when the caller gives up.

use core::sync::atomic::Ordering::Relaxed;

use ringmark_format::TypeId;
use ringmark_format::counters::Cause;

use super::Writer;
use crate::protocol::clock_sample::ClockSample;
use crate::protocol::reservation::Reservation;

impl Writer {
    /// As [`Writer::reserve_cold`], but an event that finds the ring full, is nested, or finds a page
    /// without memory, is not counted as lost: the caller tries again, here or in another ring, or calls
    /// [`Writer::lose`].
    ///
    /// # Errors
    /// As there.
    pub fn reserve_or_decide(
        &self,
        type_id: TypeId,
        payload_words: u64,
        now: u64,
        base: &dyn Fn(u64) -> ClockSample,
    ) -> Result<Reservation<'_>, Cause> {
        let is_left = |cause| matches!(cause, Cause::RingFull | Cause::Nested | Cause::NoMemory);
        let is_lost = |cause| !is_left(cause);
        self.reserve_or_lose(type_id, payload_words, now, base, is_lost)
    }

    /// Whether the ring was found full and no page has been released since.
    #[must_use]
    pub fn is_known_full(&self) -> bool {
        let ring = self.ring();
        ring.is_some_and(|ring| self.full.holds(ring.slot.consumed()))
    }

    /// Makes the next event look at the ring again, although it is full: the one that found it full
    /// was not the one to decide whether to wait.
    pub fn forget_full(&self) {
        self.full.forget();
    }

    /// Counts one event of this ring as lost.
    pub fn lose(&self, cause: Cause) {
        if let Some(ring) = self.ring() {
            ring.slot.count_lost(cause);
        }
    }

    /// Whether no reservation is under way in this ring: no code that holds one here was interrupted
    /// by the caller. One in another ring of the thread may have been left for ever.
    #[must_use]
    pub fn holds_nothing(&self) -> bool {
        self.counts.under_way() == 0
    }

    /// Counts a wait of `ns` nanoseconds that took from one tick to the other. A record should tell
    /// of it: see [`Writer::tell_wait`].
    pub fn count_wait(&self, ns: u64, from: u64, to: u64) {
        let Some(ring) = self.ring() else { return };
        ring.slot.count_wait(ns);
        if self.untold_wait[0].load(Relaxed) == 0 {
            self.untold_wait[0].store(from.max(1), Relaxed);
        }
        self.untold_wait[1].store(to, Relaxed);
    }

    /// Writes the record of a wait that none tells of yet, if the open page has room: a finished span
    /// of this type.
    pub fn tell_wait(&self, type_id: TypeId) {
        let [from, to] = &self.untold_wait;
        if from.load(Relaxed) == 0 {
            return;
        }
        let (began, ended) = (from.load(Relaxed), to.load(Relaxed));
        if let Some(mut record) = self.reserve(type_id, 1, ended) {
            from.store(0, Relaxed);
            record.set_word(0, ended.saturating_sub(began));
            record.commit();
        }
    }
}
