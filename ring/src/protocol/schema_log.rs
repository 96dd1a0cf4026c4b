//! The schema stream of a session: append-only bytes in extents, published by one length.
//!
//! Event types are described once, when they are registered, and never changed or removed. A reader
//! that has taken the stream up to some length goes on from there. It takes the schema before the
//! pages that need it: a type is published before the first record of that type.
//!
//! ```text
//!  session state:  schema_bytes [S1]   extents: (offset, bytes) (offset, bytes) (0, 0) …
//!                        │                         │               │
//!  file:                 │             ┌───────────▼───┐   ┌───────▼───────┐
//!                        │             │ entry entry … │   │ entry  · · ·  │
//!                        │             └───────────────┘   └──────▲────────┘
//!                        └────────────────────────────────────────┘ the stream ends here
//! ```
//!
//! One length publishes everything before it, the extents' places included: an extent is written
//! to the list before the length reaches into it.

use core::mem::offset_of;
use core::sync::atomic::Ordering::Relaxed;

use ringmark_format::session::{Extent, SCHEMA_EXTENTS, SessionState};

use crate::protocol::order;
use crate::protocol::sync::AtomicU64;

/// The schema stream has no room for the entry: the extents are full and no more can be had.
/// Records of types that are not in the schema are readable as raw words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SchemaExhausted;

/// Words of the session's state, which holds the stream's length and the list of its extents.
pub const STATE_WORDS: usize = size_of::<SessionState>() / 8;

/// Access to the schema stream of a ring file: the producer appends, readers read.
///
/// Readers bound every extent by the file, so a damaged list makes the stream shorter and nothing
/// else. What the bytes mean is for the parser in the format crate.
#[derive(Clone, Copy)]
pub struct SchemaLog<'f> {
    state: &'f [AtomicU64; STATE_WORDS],
    /// The whole file: extents state their offsets in it.
    file: &'f [AtomicU64],
}

impl<'f> SchemaLog<'f> {
    /// The stream whose length and extents `state` holds, and whose bytes lie in `file`.
    #[must_use]
    pub fn over(state: &'f [AtomicU64; STATE_WORDS], file: &'f [AtomicU64]) -> Self {
        Self { state, file }
    }

    /// The state word at this byte offset.
    fn word(&self, offset: usize) -> &'f AtomicU64 {
        &self.state[offset / 8]
    }

    /// Published length of the stream in bytes, a multiple of 8. Everything before it is there
    /// (`[S2]`). In a damaged file it may be larger than [`SchemaLog::capacity`].
    #[must_use]
    pub fn published(&self) -> u64 {
        let word = self.word(offset_of!(SessionState, schema_bytes));
        word.load(order::schema_acquire()) // [S2]
    }

    /// Copies the stream from byte `from` up to the published length; empty if there is nothing
    /// new. Shorter if extents are damaged.
    #[must_use]
    pub fn read(&self, from: u64) -> Vec<u8> {
        self.read_at_most(from, u64::MAX)
    }

    /// As [`SchemaLog::read`], but at most `bytes`: a reader bounds what it takes at once, because
    /// a damaged length could ask for the whole file.
    #[must_use]
    pub fn read_at_most(&self, from: u64, bytes: u64) -> Vec<u8> {
        let end = self.published().min(from.saturating_add(bytes));
        let mut out = Vec::new();
        let mut start = 0;
        for index in 0..SCHEMA_EXTENTS {
            let Some(words) = self.extent(index) else {
                break;
            };
            let extent_end = start + words.len() as u64 * 8;
            let first = from.max(start).min(extent_end);
            let last = end.min(extent_end);
            if first < last {
                copy_words(
                    &words[((first - start) / 8) as usize..((last - start) / 8) as usize],
                    &mut out,
                );
            }
            start = extent_end;
        }
        out
    }

    /// Bytes that all extents together hold; what is left of them is this less the published
    /// length.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        (0..SCHEMA_EXTENTS)
            .map_while(|i| self.extent(i))
            .map(|words| words.len() as u64 * 8)
            .sum()
    }

    /// Appends whole entries. Called by the producer only, under its control lock: the length is
    /// read and stored without a compare-exchange.
    ///
    /// # Errors
    /// There is no room; nothing was published, and the caller may add an extent and try again.
    pub fn append(&self, bytes: &[u8]) -> Result<(), SchemaExhausted> {
        debug_assert!(bytes.len().is_multiple_of(8));
        let length = self.published();
        if length + bytes.len() as u64 > self.capacity() {
            return Err(SchemaExhausted);
        }
        let mut left = bytes.as_chunks::<8>().0;
        let mut before = (length / 8) as usize;
        for words in (0..SCHEMA_EXTENTS).map_while(|i| self.extent(i)) {
            let room = words.get(before..).unwrap_or_default();
            let (now, later) = left.split_at(left.len().min(room.len()));
            for (word, chunk) in room.iter().zip(now) {
                word.store(u64::from_le_bytes(*chunk), Relaxed);
            }
            left = later;
            before = before.saturating_sub(words.len());
        }
        let word = self.word(offset_of!(SessionState, schema_bytes));
        word.store(length + bytes.len() as u64, order::schema_release()); // [S1]
        Ok(())
    }

    /// Adds an extent of allocated space after the others. Called by the producer only, under its
    /// control lock. Readers see it with the next length that is published.
    ///
    /// # Errors
    /// All places for extents are taken.
    pub fn add_extent(&self, extent: Extent) -> Result<(), SchemaExhausted> {
        let free = (0..SCHEMA_EXTENTS).find(|i| self.extent(*i).is_none());
        let index = free.ok_or(SchemaExhausted)?;
        let at = offset_of!(SessionState, schema_extents) + index * Extent::BYTES;
        self.word(at).store(extent.offset, Relaxed);
        self.word(at + 8).store(extent.bytes, Relaxed);
        Ok(())
    }

    fn extent(&self, index: usize) -> Option<&'f [AtomicU64]> {
        let at = offset_of!(SessionState, schema_extents) + index * Extent::BYTES;
        let offset = self.word(at).load(Relaxed);
        let bytes = self.word(at + 8).load(Relaxed);
        if bytes == 0 || !offset.is_multiple_of(8) || !bytes.is_multiple_of(8) {
            return None;
        }
        let first = usize::try_from(offset / 8).ok()?;
        let count = usize::try_from(bytes / 8).ok()?;
        self.file.get(first..first.checked_add(count)?)
    }
}

fn copy_words(words: &[AtomicU64], out: &mut Vec<u8>) {
    for word in words {
        out.extend_from_slice(&word.load(Relaxed).to_le_bytes());
    }
}
