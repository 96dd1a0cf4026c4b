//! Where the texts of one event go: onto the stack, or, if they are too long for that, into its record.
//!
//! # Invariant
//!
//! 1. The first `used` of the bytes on the stack were written.

use core::mem::MaybeUninit;

use ringmark_format::align8;
use ringmark_ring::Reservation;

use super::kinds::FIELDS_MAX;

/// Bytes of all texts of one event that are gathered on the stack.
const STACK_BYTES: usize = 3072;
/// What a text ends in that was cut, and bytes that were.
const CUT: &str = "…";

/// Takes texts and bytes, one after the other.
pub(super) trait Sink {
    /// Begins the next one.
    fn begin(&mut self);
    /// Goes on with a text.
    fn push(&mut self, more: &str);
    /// Goes on with bytes.
    fn push_bytes(&mut self, more: &[u8]);
    /// Ends it; returns its place: offset, and length in the upper half.
    fn end(&mut self) -> u64;
}

/// Texts on the stack, each padded to whole words.
pub(super) struct Stack {
    bytes: [MaybeUninit<u8>; STACK_BYTES],
    used: usize,
    /// Where the present one starts.
    start: usize,
    /// How long it is, also where it did not fit.
    length: usize,
    is_short: bool,
}

impl Stack {
    #[inline(always)]
    pub(super) fn new() -> Self {
        Self {
            bytes: [const { MaybeUninit::uninit() }; STACK_BYTES],
            used: 0,
            start: 0,
            length: 0,
            is_short: false,
        }
    }

    /// Whether a text did not fit. Then the places have the right lengths, and no text is whole.
    #[inline(always)]
    pub(super) fn is_short(&self) -> bool {
        self.is_short
    }

    /// All texts.
    #[inline(always)]
    pub(super) fn bytes(&self) -> &[u8] {
        let written = &self.bytes[..self.used];
        // SAFETY: invariant 1, and MaybeUninit<u8> has the layout of u8.
        unsafe { core::slice::from_raw_parts(written.as_ptr().cast(), written.len()) }
    }
}

impl Sink for Stack {
    #[inline(always)]
    fn begin(&mut self) {
        self.start = self.used;
        self.length = 0;
    }

    #[inline(always)]
    fn push(&mut self, more: &str) {
        self.push_bytes(more.as_bytes());
    }

    #[inline]
    fn push_bytes(&mut self, more: &[u8]) {
        self.length += more.len();
        match self.bytes[self.used..].get_mut(..more.len()) {
            Some(room) => {
                for (to, from) in room.iter_mut().zip(more) {
                    to.write(*from);
                }
                self.used += more.len();
            }
            None => self.is_short = true,
        }
    }

    #[inline(always)]
    fn end(&mut self) -> u64 {
        let whole = align8(self.used);
        for padding in &mut self.bytes[self.used..whole] {
            padding.write(0);
        }
        self.used = whole;
        self.start as u64 | (self.length as u64) << 32
    }
}

/// How long the texts of a record are, and how much of each fits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rooms {
    lengths: [usize; FIELDS_MAX + 1],
    texts: usize,
    /// No text gets more.
    most: usize,
}

impl Rooms {
    /// For texts of these lengths, in `bytes`. Where they do not fit, the longest are cut.
    pub(super) fn new(lengths: impl Iterator<Item = usize>, bytes: usize) -> Self {
        let mut rooms = Self {
            lengths: [0; FIELDS_MAX + 1],
            texts: 0,
            most: bytes,
        };
        for (to, length) in rooms.lengths.iter_mut().zip(lengths) {
            *to = length;
            rooms.texts += 1;
        }
        let (mut fits, mut too_much) = (0, bytes / 8 + 1);
        while fits + 1 < too_much {
            let words = usize::midpoint(fits, too_much);
            rooms.most = 8 * words;
            match rooms.bytes() <= bytes {
                true => fits = words,
                false => too_much = words,
            }
        }
        rooms.most = 8 * fits;
        rooms
    }

    /// Bytes of the room of the text with this number: a multiple of 8, with room for the mark.
    fn room(&self, text: usize) -> usize {
        match self.lengths[..self.texts].get(text) {
            Some(length) => align8(length + CUT.len()).min(self.most),
            None => 0,
        }
    }

    /// Bytes of all rooms.
    pub(super) fn bytes(&self) -> usize {
        (0..self.texts).map(|text| self.room(text)).sum()
    }
}

/// Texts that go into their record. One that its room is too small for ends in "…".
pub(super) struct InRecord<'w> {
    pub(super) to: Reservation<'w>,
    rooms: Rooms,
    /// Number of the next text.
    next: usize,
    /// Where the present one starts in the payload.
    start: usize,
    room: usize,
    used: usize,
    /// Its last bytes that fill no word yet.
    bits: u64,
    is_cut: bool,
}

impl<'w> InRecord<'w> {
    /// For texts that begin at this payload word.
    pub(super) fn new(to: Reservation<'w>, first_word: usize, rooms: Rooms) -> Self {
        Self {
            to,
            rooms,
            next: 0,
            start: 8 * first_word,
            room: 0,
            used: 0,
            bits: 0,
            is_cut: false,
        }
    }

    /// Takes what fits; `end`: where `more` may be cut.
    fn take(&mut self, more: &[u8], end: impl FnOnce(usize) -> usize) {
        let Some(left) = (self.room.checked_sub(CUT.len() + self.used)).filter(|_| !self.is_cut)
        else {
            return;
        };
        if more.len() <= left {
            return self.copy(more);
        }
        self.is_cut = true;
        self.copy(&more[..end(left)]);
        self.copy(CUT.as_bytes());
    }

    fn copy(&mut self, bytes: &[u8]) {
        let ahead = (align8(self.used) - self.used).min(bytes.len());
        let (ahead, bytes) = bytes.split_at(ahead);
        self.copy_few(ahead);
        let (whole, rest) = bytes.split_at(bytes.len() / 8 * 8);
        self.to.set_bytes((self.start + self.used) / 8, whole);
        self.used += whole.len();
        self.copy_few(rest);
    }

    fn copy_few(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.bits |= u64::from(*byte) << (8 * (self.used % 8));
            self.used += 1;
            if self.used.is_multiple_of(8) {
                self.flush((self.start + self.used) / 8 - 1);
            }
        }
    }

    fn flush(&mut self, word: usize) {
        self.to.set_word(word, self.bits);
        self.bits = 0;
    }
}

impl Sink for InRecord<'_> {
    fn begin(&mut self) {
        self.start += self.room;
        self.room = self.rooms.room(self.next);
        self.next += 1;
        self.used = 0;
        self.is_cut = false;
    }

    fn push(&mut self, more: &str) {
        let is_end = |end: &usize| more.is_char_boundary(*end);
        self.take(more.as_bytes(), |end| {
            (0..=end).rev().find(is_end).unwrap_or(0)
        });
    }

    fn push_bytes(&mut self, more: &[u8]) {
        self.take(more, |end| end);
    }

    fn end(&mut self) -> u64 {
        if !self.used.is_multiple_of(8) {
            self.flush((self.start + self.used) / 8);
        }
        self.start as u64 | (self.used as u64) << 32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_texts_are_cut() {
        let rooms = |lengths: &[usize], bytes| {
            let rooms = Rooms::new(lengths.iter().copied(), bytes);
            assert!(rooms.bytes() <= bytes, "{rooms:?}");
            (0..lengths.len())
                .map(|text| rooms.room(text))
                .collect::<Vec<_>>()
        };
        assert_eq!(rooms(&[5, 6, 0], 1000), [8, 16, 8]);
        assert_eq!(rooms(&[5000, 24, 5000], 1032), [496, 32, 496]);
        assert_eq!(rooms(&[5000], 4096), [4096]);
        assert_eq!(rooms(&[10, 10], 16), [8, 8]);
        assert_eq!(rooms(&[], 16), [0; 0]);
    }
}
