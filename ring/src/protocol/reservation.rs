//! A reserved record: write the payload, then commit by one store, or cancel.
//!
//! A reservation owns words of a page (invariant 3 of [`crate::writer`]): its header word is BUSY,
//! and no other context writes its words. Readers see the BUSY header and step over the record.
//! The store of the final header word publishes the payload (`[W3]`), so a reader that sees it sees
//! the whole record, in whatever order several reservations end.
//!
//! As long as one is under way, its page is neither switched nor sealed. A reservation that is
//! kept for long therefore costs events: those that no longer fit in its page are lost with cause
//! NESTED. One that is never ended, after `longjmp` or `mem::forget`, keeps its page open until its
//! thread ends; see `own_rings`.

use core::sync::atomic::Ordering::Relaxed;

use ringmark_format::record;

use crate::protocol::order;
use crate::protocol::sync::AtomicU64;
use crate::protocol::writer::Writer;

/// A reserved record. Dropped without commit, also by a panic that unwinds: cancelled.
///
/// Not `Send`: it belongs to the thread whose ring it lies in, because the counts of its writer
/// are updated without a bus lock. The payload is not zeroed beforehand by this type, but the page
/// is when it is switched: a word that is not set reads as 0.
#[must_use = "a reservation that is dropped is cancelled"]
pub struct Reservation<'w> {
    writer: &'w Writer,
    /// Where the commit is stored: the record's header, or that of the TIME_EXTEND before it.
    header: *const AtomicU64,
    /// First payload word.
    payload: *const AtomicU64,
    /// What a commit stores.
    commit: u64,
    payload_words: u64,
    /// All words that `header` spans: what a cancel leaves for readers to step over.
    words: u64,
}

/// What code that is not Rust needs to know to write a record, and to commit or cancel it.
///
/// It has no `Drop`: one that is forgotten stays under way. `ringmark.h` mirrors the layout.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct RawReservation {
    /// The writer, whose `ended` counts one more after the commit.
    pub writer: *const Writer,
    /// Where the commit is stored.
    pub header: *const u64,
    /// First payload word.
    pub payload: *const u64,
    /// What a commit stores.
    pub commit: u64,
    /// What a cancel stores.
    pub cancel: u64,
}

impl RawReservation {
    /// Commits the record, as [`Reservation::commit`].
    ///
    /// # Safety
    /// It came from [`Reservation::into_raw`], or was made as that makes it, on this thread; it was
    /// neither committed nor cancelled. Otherwise it would change a record of another context.
    pub unsafe fn commit(&self) {
        // SAFETY: as the caller promises.
        unsafe { self.finish(self.commit) };
    }

    /// Cancels the record: its words stay in the page, and readers step over them.
    ///
    /// # Safety
    /// As [`RawReservation::commit`].
    pub unsafe fn cancel(&self) {
        // SAFETY: as the caller promises.
        unsafe { self.finish(self.cancel) };
    }

    unsafe fn finish(&self, header_word: u64) {
        // SAFETY: invariant 5 of the writer: the header word lies in a page that stays mapped.
        let header = unsafe { &*self.header.cast::<AtomicU64>() };
        // SAFETY: invariant 6: a writer is never freed.
        let writer = unsafe { &*self.writer };
        header.store(header_word, order::commit_release()); // [W3]
        writer.counts.end();
    }
}

impl<'w> Reservation<'w> {
    /// Leaves commit or cancel to the caller, for code that has no destructors or other ones.
    #[must_use]
    pub fn into_raw(self) -> RawReservation {
        let left = core::mem::ManuallyDrop::new(self);
        RawReservation {
            writer: left.writer,
            header: left.header.cast(),
            payload: left.payload.cast(),
            commit: left.commit,
            cancel: record::pack_span(record::CANCELLED, left.words),
        }
    }

    /// The record of `words` words at `header`, which is marked BUSY; storing `commit` there will
    /// commit it. Writes the second header word of a long record: readers need it only once the
    /// record is committed.
    #[inline(always)]
    pub(crate) fn new(
        writer: &'w Writer,
        header: &AtomicU64,
        commit: u64,
        payload_words: u64,
        words: u64,
    ) -> Self {
        let place: *const AtomicU64 = header;
        let head_words = if payload_words < record::LONG { 1 } else { 2 };
        debug_assert!(
            head_words + payload_words <= words,
            "invariant 3: the payload is inside the record"
        );
        let payload = place.wrapping_add(head_words as usize);
        if payload_words >= record::LONG {
            // SAFETY: invariant 3: the record of a long payload has a second header word.
            let length = unsafe { &*place.wrapping_add(1) };
            length.store(payload_words, Relaxed);
        }
        Self {
            writer,
            header: place,
            payload,
            commit,
            payload_words,
            words,
        }
    }

    /// The words of a frame in the stack of open spans, to be filled like a payload. It is never
    /// committed: the frame's own head publishes them.
    #[inline(always)]
    pub(crate) fn in_frame(
        writer: &'w Writer,
        words: &[AtomicU64],
    ) -> core::mem::ManuallyDrop<Self> {
        core::mem::ManuallyDrop::new(Self {
            writer,
            header: core::ptr::null(),
            payload: words.as_ptr(),
            commit: 0,
            payload_words: words.len() as u64,
            words: 0,
        })
    }

    /// Has `fill` write into memory of the caller's as if it were a payload: to look at what a record
    /// would hold.
    pub fn fill_words(writer: &'w Writer, words: &[AtomicU64], fill: impl FnOnce(&mut Self)) {
        fill(&mut Self::in_frame(writer, words));
    }

    /// The same record after a TIME_EXTEND at `header`, whose commit commits both: to readers
    /// they appear at once, or as one BUSY or CANCELLED span.
    pub(crate) fn behind_extension(mut self, header: &AtomicU64) -> Self {
        self.header = header;
        self.words += record::TIME_EXTEND_WORDS;
        self
    }

    /// Payload size in words, as it was requested: 0 to [`crate::writer::PAYLOAD_WORDS_MAX`].
    #[inline(always)]
    #[must_use]
    pub fn payload_words(&self) -> u64 {
        self.payload_words
    }

    /// Writes payload word `index`; beyond the payload nothing happens. Words may be set in any
    /// order, and more than once, until the commit.
    #[inline(always)]
    pub fn set_word(&mut self, index: usize, value: u64) {
        if (index as u64) < self.payload_words {
            // SAFETY: invariant 3: `payload_words` words from `payload` on belong to this record,
            // or to this frame (invariant 3 of the stack of open spans).
            let word = unsafe { &*self.payload.wrapping_add(index) };
            word.store(value, Relaxed);
        }
    }

    /// Writes `bytes` at payload word `first_word`, zero-padded to whole words. Bytes beyond the
    /// payload are left out.
    #[inline]
    pub fn set_bytes(&mut self, first_word: usize, bytes: &[u8]) {
        let (whole, rest) = bytes.as_chunks::<8>();
        for (i, chunk) in whole.iter().enumerate() {
            self.set_word(first_word + i, u64::from_le_bytes(*chunk));
        }
        if !rest.is_empty() {
            let mut last = [0; 8];
            last[..rest.len()].copy_from_slice(rest);
            self.set_word(first_word + whole.len(), u64::from_le_bytes(last));
        }
    }

    /// Commits: one store, after which every reader sees the whole record, also if the program is
    /// killed at the next instruction.
    #[inline(always)]
    pub fn commit(self) {
        let done = core::mem::ManuallyDrop::new(self);
        done.finish(done.commit);
    }

    #[inline(always)]
    fn finish(&self, header_word: u64) {
        // SAFETY: invariants 3 and 5 of the writer: this record's header, in a mapped page.
        let header = unsafe { &*self.header };
        header.store(header_word, order::commit_release()); // [W3]
        self.writer.counts.end();
    }
}

impl Drop for Reservation<'_> {
    #[inline]
    fn drop(&mut self) {
        self.finish(record::pack_span(record::CANCELLED, self.words));
    }
}
