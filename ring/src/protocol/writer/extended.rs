//! Records after a TIME_EXTEND: the first tick of the open page lies so far back that 32 bits of
//! ticks do not reach.
//!
//! A thread that records seldom leaves its page open for long: with a counter of 3 GHz, 32 bits are
//! 1.4 seconds. Its next event could switch the page, but then a slow thread would use a page for
//! each event and overwrite its own history. So the record is preceded by one with the whole tick:
//!
//! ```text
//!  │ TIME_EXTEND, 1 payload word │ tick │ header, ticks 0 │ payload … │
//!    ▲ the commit is stored here          ▲ written before it
//! ```
//!
//! Both are one reservation: they become readable at once, or are cancelled as one span.

use core::sync::atomic::Ordering::Relaxed;

use ringmark_format::TypeId;
use ringmark_format::record::{self, TIME_EXTEND_WORDS};

use super::{PAYLOAD_WORDS_MAX, Writer};
use crate::protocol::reservation::Reservation;
use crate::protocol::sync::AtomicU64;

impl Writer {
    /// Reserves a record in a page that is old and has room: the first thing to try after
    /// [`Writer::reserve`], whose `now` is still good. `None` for everything else, and then nothing
    /// is changed, as there. A tick from before the page counts as too far as well.
    ///
    /// Inlined into one cold function: a reservation that is handed on is six words to copy, and
    /// the copy waits for the stores.
    #[inline(always)]
    pub fn reserve_extended(
        &self,
        type_id: TypeId,
        payload_words: u64,
        now: u64,
    ) -> Option<Reservation<'_>> {
        let words = record::record_words(payload_words) + TIME_EXTEND_WORDS;
        self.counts.begin();
        let ticks = now.wrapping_sub(self.tick_base.load(Relaxed));
        let at = self.cursor.load(Relaxed);
        let next = at.wrapping_add(words as usize);
        let fits = payload_words <= PAYLOAD_WORDS_MAX && next <= self.end.load(Relaxed);
        if fits && ticks > u64::from(u32::MAX) {
            // SAFETY: invariants 1 and 5: `at` up to `next` lies in the open page.
            let header = unsafe { &*at };
            if self.claim(header, next, words) {
                return Some(self.extended(header, type_id, payload_words, now));
            }
        }
        self.counts.end();
        None
    }

    /// A reservation after a TIME_EXTEND record at `header`. Its own header is written now; storing
    /// the TIME_EXTEND's header commits both.
    #[inline(always)]
    pub(super) fn extended(
        &self,
        header: &AtomicU64,
        type_id: TypeId,
        payload_words: u64,
        now: u64,
    ) -> Reservation<'_> {
        let place: *const AtomicU64 = header;
        // SAFETY: invariant 3: the reservation holds the TIME_EXTEND and the record after it.
        let tick = unsafe { &*place.wrapping_add(1) };
        // SAFETY: invariant 3, as above.
        let inner = unsafe { &*place.wrapping_add(TIME_EXTEND_WORDS as usize) };
        tick.store(now, Relaxed);
        inner.store(record::pack(0, type_id, payload_words), Relaxed);
        let commit = record::pack(0, TypeId(record::TIME_EXTEND), 1);
        let words = record::record_words(payload_words);
        Reservation::new(self, inner, commit, payload_words, words).behind_extension(header)
    }
}
