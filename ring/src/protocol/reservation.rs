//! A reserved record: write the payload, then commit by one store, or cancel.

use core::sync::atomic::Ordering::Relaxed;

use ringmark_format::record;

use crate::protocol::order;
use crate::protocol::planted;
use crate::protocol::sync::AtomicU64;
use crate::protocol::writer::Writer;

/// A reserved record. Dropped without commit: cancelled.
///
/// Not `Send`: it belongs to the thread whose ring it lies in.
#[must_use = "a reservation that is dropped is cancelled"]
pub struct Reservation<'w> {
    writer: &'w Writer,
    header: *const AtomicU64,
    payload: *const AtomicU64,
    commit: u64,
    payload_words: u64,
    words: u64,
}

/// What code that is not Rust needs to know to write a record, and to commit or cancel it.
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
    /// Commits the record.
    ///
    /// # Safety
    /// It came from [`Reservation::into_raw`] or was made as that makes it, on this thread; it was
    /// neither committed nor cancelled.
    pub unsafe fn commit(&self) {
        // SAFETY: as the caller says.
        unsafe { self.finish(self.commit) };
    }

    /// Gives the record up.
    ///
    /// # Safety
    /// As [`RawReservation::commit`].
    pub unsafe fn cancel(&self) {
        // SAFETY: as the caller says.
        unsafe { self.finish(self.cancel) };
    }

    unsafe fn finish(&self, header_word: u64) {
        // SAFETY: the header word of a reservation, in a page that is mapped for ever.
        let header = unsafe { &*self.header.cast::<AtomicU64>() };
        // SAFETY: writers live for ever.
        let writer = unsafe { &*self.writer };
        header.store(header_word, order::commit_release()); // [W3]
        writer.counts.end_record();
    }
}

impl<'w> Reservation<'w> {
    /// Leaves commit or cancel to the caller.
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

    /// The record of `words` words at `header`; storing `commit` there will commit it.
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
        let payload = place.wrapping_add(head_words);
        if payload_words >= record::LONG {
            // SAFETY: the reservation has a second header word for the length.
            let length = unsafe { &*place.wrapping_add(1) };
            length.store(payload_words, Relaxed);
        }
        planted::commit_before_payload(header, commit);
        Self {
            writer,
            header: place,
            payload,
            commit,
            payload_words,
            words,
        }
    }

    /// The same record behind a TIME_EXTEND at `header`: that one's commit commits both.
    pub(crate) fn behind_extension(mut self, header: &AtomicU64) -> Self {
        self.header = header;
        self.words += record::TIME_EXTEND_WORDS;
        self
    }

    /// Payload size in words.
    #[inline(always)]
    #[must_use]
    pub fn payload_words(&self) -> u64 {
        self.payload_words
    }

    /// Writes payload word `index`; beyond the payload nothing happens.
    #[inline(always)]
    pub fn set_word(&mut self, index: usize, value: u64) {
        if (index as u64) < self.payload_words {
            // SAFETY: `payload_words` words behind `payload` belong to this reservation.
            let word = unsafe { &*self.payload.wrapping_add(index) };
            word.store(value, Relaxed);
        }
    }

    /// Writes `bytes` at payload word `first_word`, zero-padded to whole words.
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

    /// Commits: one store, after which every reader sees the whole record.
    #[inline(always)]
    pub fn commit(self) {
        let done = core::mem::ManuallyDrop::new(self);
        done.finish(done.commit);
    }

    #[inline(always)]
    fn finish(&self, header_word: u64) {
        // SAFETY: the header word of this reservation, in a page that is mapped for ever.
        let header = unsafe { &*self.header };
        header.store(header_word, order::commit_release()); // [W3]
        self.writer.counts.end_record();
    }
}

impl Drop for Reservation<'_> {
    #[inline]
    fn drop(&mut self) {
        self.finish(record::pack_span(record::CANCELLED, self.words));
    }
}
