//! The values of one event, gathered on the stack: nothing is reserved while a `Debug`
//! implementation of the program runs.

use core::fmt::{self, Write};
use core::mem::MaybeUninit;

use ringmark_format::align8;
use ringmark_format::schema::Kind;
use tracing_core::field::{Field, Visit};

/// Fields of one event that are recorded; later ones are not.
pub(super) const FIELDS_MAX: usize = 32;
/// Bytes of all texts of one event; what does not fit ends in "…".
pub(super) const TEXT_BYTES: usize = 3072;
const ELLIPSIS: &str = "…";

/// Which fields are there, and of what kind: four bits a field. 0: not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Kinds(pub(super) u128);

impl Kinds {
    const KINDS: [Kind; 8] = [
        Kind::U64,
        Kind::I64,
        Kind::F64,
        Kind::Bool,
        Kind::U128,
        Kind::I128,
        Kind::Str,
        Kind::Bytes,
    ];

    /// What field `index` is.
    pub(super) fn get(self, index: usize) -> Option<Kind> {
        let code = (self.0 >> (4 * index)) & 15;
        Self::KINDS.get((code as usize).wrapping_sub(1)).copied()
    }

    /// `fields` fields, all of them texts.
    pub(super) fn all_texts(fields: usize) -> Self {
        (0..fields.min(FIELDS_MAX)).fold(Self(0), |kinds, index| kinds.with(index, STR))
    }

    #[inline]
    fn with(self, index: usize, code: u8) -> Self {
        Self(self.0 | u128::from(code) << (4 * index))
    }
}

const U64: u8 = 1;
const I64: u8 = 2;
const F64: u8 = 3;
const BOOL: u8 = 4;
const U128: u8 = 5;
const I128: u8 = 6;
const STR: u8 = 7;
const BYTES: u8 = 8;

/// The values. Words of a field are there if its kind is set; text bytes up to `used`.
pub(super) struct Values {
    pub(super) kinds: Kinds,
    low: [MaybeUninit<u64>; FIELDS_MAX],
    high: [MaybeUninit<u64>; FIELDS_MAX],
    texts: Texts,
}

impl Values {
    /// No values.
    #[inline(always)]
    pub(super) fn new() -> Self {
        Self {
            kinds: Kinds(0),
            low: [const { MaybeUninit::uninit() }; FIELDS_MAX],
            high: [const { MaybeUninit::uninit() }; FIELDS_MAX],
            texts: Texts {
                bytes: [const { MaybeUninit::uninit() }; TEXT_BYTES],
                used: 0,
            },
        }
    }

    /// The one word of field `index`, or the low one of two: 0 if it is not there. A text's word
    /// counts its offset from the start of the texts.
    #[inline(always)]
    pub(super) fn low(&self, index: usize) -> u64 {
        if self.kinds.get(index).is_none() {
            return 0;
        }
        // SAFETY: every kind is set together with its low word.
        unsafe { self.low[index].assume_init() }
    }

    /// The high word of a field with two; 0 if it has none.
    #[inline(always)]
    pub(super) fn high(&self, index: usize) -> u64 {
        if !matches!(self.kinds.get(index), Some(Kind::U128 | Kind::I128)) {
            return 0;
        }
        // SAFETY: these kinds are set together with their high word.
        unsafe { self.high[index].assume_init() }
    }

    /// All texts, each padded to whole words.
    #[inline(always)]
    pub(super) fn texts(&self) -> &[u8] {
        let written = &self.texts.bytes[..self.texts.used];
        // SAFETY: `used` bytes were written; MaybeUninit<u8> has the layout of u8.
        unsafe { core::slice::from_raw_parts(written.as_ptr().cast(), written.len()) }
    }

    #[inline]
    fn put(&mut self, field: &Field, code: u8, word: u64) {
        let index = field.index();
        // A field that comes twice keeps its first value.
        if index < FIELDS_MAX && self.kinds.get(index).is_none() {
            self.low[index].write(word);
            self.kinds = self.kinds.with(index, code);
        }
    }

    #[inline]
    fn put_wide(&mut self, field: &Field, code: u8, value: u128) {
        if let Some(high) = self.high.get_mut(field.index()) {
            if self.kinds.get(field.index()).is_none() {
                high.write((value >> 64) as u64);
            }
            self.put(field, code, value as u64);
        }
    }

    #[inline]
    fn put_text(&mut self, field: &Field, write: impl FnOnce(&mut Text<'_>)) {
        let word = self.texts.add(write);
        self.put(field, STR, word);
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
        self.put_text(field, |text| text.push(value));
    }

    fn record_bytes(&mut self, field: &Field, value: &[u8]) {
        let word = self.texts.add(|text| text.push_bytes(value));
        self.put(field, BYTES, word);
    }

    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        self.put_text(field, |text| {
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
        self.put_text(field, |text| {
            let _ = write!(text, "{value:?}");
        });
    }
}

/// Turns every value into text: for the rare site whose fields come in ever new combinations.
pub(super) struct AsText<'v>(pub(super) &'v mut Values);

impl AsText<'_> {
    /// Gives the fields that are not there an empty text.
    pub(super) fn fill(self, fields: usize) {
        for index in 0..fields.min(FIELDS_MAX) {
            if self.0.kinds.get(index).is_none() {
                self.0.low[index].write(0);
                self.0.kinds = self.0.kinds.with(index, STR);
            }
        }
    }
}

impl Visit for AsText<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.record_str(field, value);
    }

    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        self.0.record_error(field, value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
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
