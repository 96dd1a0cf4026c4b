//! The values of one event, gathered on the stack: nothing is reserved while a `Debug`
//! implementation of the program runs.
//!
//! # Invariants
//!
//! 1. The first `count` of the words were written.
//! 2. The first `used` of the bytes for texts were written.

use core::fmt::{self, Write};
use core::mem::MaybeUninit;

use ringmark_format::align8;
use tracing_core::field::{Field, Visit};

use super::kinds::{ABSENT, BOOL, BYTES, F64, FIELDS_MAX, I64, I128, Kinds, STR, U64, U128};

const WORDS_MAX: usize = 2 * FIELDS_MAX;
/// Bytes of all texts of one event; what does not fit ends in "…".
pub(super) const TEXT_BYTES: usize = 3072;
const ELLIPSIS: &str = "…";

/// The values, in the order of their fields. `words` up to `count` are there.
pub(super) struct Values {
    pub(super) kinds: Kinds,
    /// Index of the next field.
    next: usize,
    count: usize,
    /// Words that are places of texts.
    places: u64,
    words: [MaybeUninit<u64>; WORDS_MAX],
    texts: Texts,
}

impl Values {
    /// No values.
    #[inline(always)]
    pub(super) fn new() -> Self {
        Self {
            kinds: Kinds::NONE,
            next: 0,
            count: 0,
            places: 0,
            words: [const { MaybeUninit::uninit() }; WORDS_MAX],
            texts: Texts {
                bytes: [const { MaybeUninit::uninit() }; TEXT_BYTES],
                used: 0,
            },
        }
    }

    /// The words of all values. The place of a text counts from the start of the texts.
    #[inline(always)]
    pub(super) fn words(&self) -> &[u64] {
        let written = &self.words[..self.count];
        // SAFETY: invariant 1, and MaybeUninit<u64> has the layout of u64.
        unsafe { core::slice::from_raw_parts(written.as_ptr().cast(), written.len()) }
    }

    /// Which of the words are places of texts, lowest bit first.
    #[inline(always)]
    pub(super) fn places(&self) -> impl Iterator<Item = usize> {
        let mut left = self.places;
        core::iter::from_fn(move || {
            let first = left.trailing_zeros();
            left &= left.wrapping_sub(1);
            (first < u64::BITS).then_some(first as usize)
        })
    }

    /// All texts, each padded to whole words.
    #[inline(always)]
    pub(super) fn texts(&self) -> &[u8] {
        let written = &self.texts.bytes[..self.texts.used];
        // SAFETY: invariant 2, and MaybeUninit<u8> has the layout of u8.
        unsafe { core::slice::from_raw_parts(written.as_ptr().cast(), written.len()) }
    }

    /// Goes on to `field`. `false`: it comes again, or too late, and is not recorded.
    #[inline(always)]
    fn advance(&mut self, field: &Field, code: u8) -> bool {
        let index = field.index();
        if index != self.next && !self.skip_to(index) {
            return false;
        }
        if index >= FIELDS_MAX {
            return false;
        }
        self.kinds.add(index, code);
        self.next = index + 1;
        true
    }

    /// Marks the fields up to `index` as absent.
    #[cold]
    fn skip_to(&mut self, index: usize) -> bool {
        while self.next < index.min(FIELDS_MAX) {
            self.kinds.add(self.next, ABSENT);
            self.next += 1;
        }
        self.next == index
    }

    #[inline(always)]
    fn push(&mut self, word: u64) {
        if let Some(place) = self.words.get_mut(self.count) {
            place.write(word);
            self.count += 1;
        }
    }

    #[inline(always)]
    fn put(&mut self, field: &Field, code: u8, word: u64) {
        if self.advance(field, code) {
            self.push(word);
        }
    }

    fn put_wide(&mut self, field: &Field, code: u8, value: u128) {
        if self.advance(field, code) {
            self.push(value as u64);
            self.push((value >> 64) as u64);
        }
    }

    #[inline]
    fn put_text(&mut self, field: &Field, code: u8, write: impl FnOnce(&mut Text<'_>)) {
        if self.advance(field, code) {
            let place = self.texts.add(write);
            self.places |= 1 << self.count;
            self.push(place);
        }
    }

    /// Gives the fields after the last one, up to `fields`, an empty text.
    fn fill_to(&mut self, fields: usize) {
        while self.next < fields.min(FIELDS_MAX) {
            self.kinds.add(self.next, STR);
            self.places |= 1 << self.count;
            self.push(0);
            self.next += 1;
        }
    }
}

impl Visit for Values {
    #[inline]
    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, U64, value);
    }

    #[inline]
    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, I64, value as u64);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, F64, value.to_bits());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, BOOL, u64::from(value));
    }

    fn record_u128(&mut self, field: &Field, value: u128) {
        self.put_wide(field, U128, value);
    }

    fn record_i128(&mut self, field: &Field, value: i128) {
        self.put_wide(field, I128, value as u128);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put_text(field, STR, |text| text.push(value));
    }

    fn record_bytes(&mut self, field: &Field, value: &[u8]) {
        self.put_text(field, BYTES, |text| text.push_bytes(value));
    }

    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        self.put_text(field, STR, |text| {
            // A formatter that fails leaves what it wrote so far.
            let _ = write!(text, "{value}");
            let mut source = value.source();
            while let Some(error) = source {
                let _ = write!(text, ": {error}");
                source = error.source();
            }
        });
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put_text(field, STR, |text| {
            let _ = write!(text, "{value:?}");
        });
    }
}

/// Turns every value into text, absent ones into empty text: for the rare site whose fields come
/// in ever new combinations.
pub(super) struct AsText<'v>(pub(super) &'v mut Values);

impl AsText<'_> {
    /// Gives the fields that did not come, of `fields`, an empty text.
    pub(super) fn finish(self, fields: usize) {
        self.0.fill_to(fields);
    }
}

impl Visit for AsText<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.fill_to(field.index());
        self.0.record_str(field, value);
    }

    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        self.0.fill_to(field.index());
        self.0.record_error(field, value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.fill_to(field.index());
        self.0.record_debug(field, value);
    }
}

struct Texts {
    bytes: [MaybeUninit<u8>; TEXT_BYTES],
    /// A multiple of 8.
    used: usize,
}

impl Texts {
    /// Adds one text; returns its place: offset, and length in the upper half.
    #[inline]
    fn add(&mut self, write: impl FnOnce(&mut Text<'_>)) -> u64 {
        let start = self.used;
        let mut text = Text {
            room: &mut self.bytes[start..],
            used: 0,
            cut: false,
        };
        write(&mut text);
        let bytes = text.used;
        for padding in &mut text.room[bytes..align8(bytes)] {
            padding.write(0);
        }
        self.used = start + align8(bytes);
        start as u64 | (bytes as u64) << 32
    }
}

/// One text that is being written. Its room is a multiple of 8.
struct Text<'r> {
    room: &'r mut [MaybeUninit<u8>],
    used: usize,
    cut: bool,
}

impl Text<'_> {
    /// Adds what fits; the rest becomes "…", if that fits.
    #[inline]
    fn push(&mut self, more: &str) {
        if self.cut {
            return;
        }
        if more.len() + ELLIPSIS.len() <= self.room.len() - self.used {
            return self.copy(more.as_bytes());
        }
        self.cut = true;
        let Some(mut take) = (self.room.len() - self.used).checked_sub(ELLIPSIS.len()) else {
            return;
        };
        while !more.is_char_boundary(take) {
            take -= 1;
        }
        self.copy(&more.as_bytes()[..take]);
        self.copy(ELLIPSIS.as_bytes());
    }

    /// Adds the bytes that fit.
    fn push_bytes(&mut self, more: &[u8]) {
        let take = more.len().min(self.room.len() - self.used);
        self.copy(&more[..take]);
    }

    #[inline]
    fn copy(&mut self, bytes: &[u8]) {
        let room = &mut self.room[self.used..self.used + bytes.len()];
        for (to, from) in room.iter_mut().zip(bytes) {
            to.write(*from);
        }
        self.used += bytes.len();
    }
}

impl Write for Text<'_> {
    #[inline]
    fn write_str(&mut self, more: &str) -> fmt::Result {
        self.push(more);
        Ok(())
    }
}
