//! Records behind a TIME_EXTEND: the open page is old, its first tick lies so far back that 32 bits
//! of ticks do not reach.

use core::sync::atomic::Ordering::Relaxed;

use ringmark_format::TypeId;
use ringmark_format::record::{self, TIME_EXTEND_WORDS};

use super::{PAYLOAD_WORDS_MAX, Writer};
use crate::protocol::reservation::Reservation;
use crate::protocol::sync::AtomicU64;

impl Writer {
    /// Reserves a record in a page that is old and has room: the first thing to try after
    /// [`Writer::reserve`], whose `now` is still good. `None` for everything else, as there.
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
            // SAFETY: invariant 1: `at` up to `next` lies in the open page, which is mapped for ever.
            let header = unsafe { &*at };
            if self.claim(header, next, words) {
                return Some(self.extended(header, type_id, payload_words, now));
            }
        }
        self.counts.end();
        None
    }

    /// A reservation behind a TIME_EXTEND record. Its own header is written now; storing the
    /// TIME_EXTEND's header commits both.
    #[inline(always)]
    pub(super) fn extended(
        &self,
        header: &AtomicU64,
        type_id: TypeId,
        payload_words: u64,
        now: u64,
    ) -> Reservation<'_> {
        let place: *const AtomicU64 = header;
        // SAFETY: the two words of the TIME_EXTEND and the record behind it were reserved.
        let tick = unsafe { &*place.wrapping_add(1) };
        // SAFETY: as above.
        let inner = unsafe { &*place.wrapping_add(TIME_EXTEND_WORDS as usize) };
        tick.store(now, Relaxed);
        inner.store(record::pack(0, type_id, payload_words), Relaxed);
        let commit = record::pack(0, TypeId(record::TIME_EXTEND), 1);
        let words = record::record_words(payload_words);
        Reservation::new(self, inner, commit, payload_words, words).behind_extension(header)
    }
}
