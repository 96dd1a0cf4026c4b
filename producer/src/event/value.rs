//! Values that an event can carry, and how they become payload words.

use core::fmt::{self, Write};

use crate::ring::Reservation;
use ringmark_format::align8;
use ringmark_format::schema::Kind;

/// Something that can be an argument of an event.
///
/// `encode` must write the fixed part at `offset` (aligned to `min(size, 8)`) and may write
/// `dynamic_bytes()` bytes through [`Encoder::dynamic`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an argument of an event",
    label = "found `{Self}`, expected a number, `bool`, `char`, text, bytes, or an array of them",
    note = "record its text instead: `name = ?value` (Debug) or `name = %value` (Display)"
)]
pub trait Value {
    /// How one value is read back.
    const KIND: Kind;
    /// 0: one value; n: an array of n.
    const COUNT: u16 = 0;
    /// Bytes of the fixed part.
    const BYTES: usize = Self::KIND.fixed_bytes();
    /// Whether the value may be absent; then `BYTES` is twice the size of one that is there.
    const OPTIONAL: bool = false;
    /// Whether it stands for a value that must not be recorded.
    const REDACTED: bool = false;

    /// Bytes behind the fixed part.
    #[inline(always)]
    fn dynamic_bytes(&self) -> usize {
        0
    }

    /// Writes the value.
    fn encode(&self, to: &mut Encoder<'_, '_>, offset: usize);
}

/// Alignment of a fixed part of this kind.
pub(crate) const fn alignment(kind: Kind) -> usize {
    let bytes = kind.fixed_bytes();
    if bytes < 8 { bytes } else { 8 }
}

/// Turns values into payload words, in ascending order of their offsets.
pub struct Encoder<'e, 'w> {
    to: &'e mut Reservation<'w>,
    word: usize,
    bits: u64,
    dynamic: usize,
}

impl<'e, 'w> Encoder<'e, 'w> {
    /// An encoder whose dynamic bytes start behind `fixed_bytes`.
    #[inline(always)]
    pub fn new(to: &'e mut Reservation<'w>, fixed_bytes: usize) -> Self {
        Self {
            to,
            word: 0,
            bits: 0,
            dynamic: align8(fixed_bytes),
        }
    }

    /// Puts up to 8 bytes at `offset`; they do not cross a word.
    #[inline(always)]
    pub fn bits(&mut self, offset: usize, value: u64) {
        if offset / 8 != self.word {
            self.to.set_word(self.word, self.bits);
            self.word = offset / 8;
            self.bits = 0;
        }
        self.bits |= value << (offset % 8 * 8);
    }

    /// Puts bytes behind the fixed part, and their place at `offset`.
    #[inline(always)]
    pub fn dynamic(&mut self, offset: usize, bytes: &[u8]) {
        self.bits(offset, self.dynamic as u64 | (bytes.len() as u64) << 32);
        self.to.set_bytes(self.dynamic / 8, bytes);
        self.dynamic += align8(bytes.len());
    }

    /// Writes what is left.
    #[inline(always)]
    pub fn finish(self) {
        self.to.set_word(self.word, self.bits);
    }
}

macro_rules! integers {
    ($($type:ty, $unsigned:ty, $kind:ident;)*) => { $(
        impl Value for $type {
            const KIND: Kind = Kind::$kind;

            #[inline(always)]
            fn encode(&self, to: &mut Encoder<'_, '_>, offset: usize) {
                to.bits(offset, u64::from(*self as $unsigned));
            }
        }
    )* };
}

integers! {
    u8, u8, U8;
    u16, u16, U16;
    u32, u32, U32;
    u64, u64, U64;
    i8, u8, I8;
    i16, u16, I16;
    i32, u32, I32;
    i64, u64, I64;
    bool, u8, Bool;
    char, u32, Char;
}

impl Value for usize {
    const KIND: Kind = Kind::U64;

    #[inline(always)]
    fn encode(&self, to: &mut Encoder<'_, '_>, offset: usize) {
        to.bits(offset, *self as u64);
    }
}

impl Value for isize {
    const KIND: Kind = Kind::I64;

    #[inline(always)]
    fn encode(&self, to: &mut Encoder<'_, '_>, offset: usize) {
        to.bits(offset, *self as u64);
    }
}

impl Value for u128 {
    const KIND: Kind = Kind::U128;

    #[inline(always)]
    fn encode(&self, to: &mut Encoder<'_, '_>, offset: usize) {
        to.bits(offset, *self as u64);
        to.bits(offset + 8, (*self >> 64) as u64);
    }
}

impl Value for i128 {
    const KIND: Kind = Kind::I128;

    #[inline(always)]
    fn encode(&self, to: &mut Encoder<'_, '_>, offset: usize) {
        (*self as u128).encode(to, offset);
    }
}

impl Value for f32 {
    const KIND: Kind = Kind::F32;

    #[inline(always)]
    fn encode(&self, to: &mut Encoder<'_, '_>, offset: usize) {
        to.bits(offset, u64::from(self.to_bits()));
    }
}

impl Value for f64 {
    const KIND: Kind = Kind::F64;

    #[inline(always)]
    fn encode(&self, to: &mut Encoder<'_, '_>, offset: usize) {
        to.bits(offset, self.to_bits());
    }
}

impl Value for str {
    const KIND: Kind = Kind::Str;

    #[inline(always)]
    fn dynamic_bytes(&self) -> usize {
        align8(self.len())
    }

    #[inline(always)]
    fn encode(&self, to: &mut Encoder<'_, '_>, offset: usize) {
        to.dynamic(offset, self.as_bytes());
    }
}

impl Value for String {
    const KIND: Kind = Kind::Str;

    #[inline(always)]
    fn dynamic_bytes(&self) -> usize {
        self.as_str().dynamic_bytes()
    }

    #[inline(always)]
    fn encode(&self, to: &mut Encoder<'_, '_>, offset: usize) {
        self.as_str().encode(to, offset);
    }
}

/// `&[u8]` is bytes; other slices have no fixed length and are no values.
impl Value for [u8] {
    const KIND: Kind = Kind::Bytes;

    #[inline(always)]
    fn dynamic_bytes(&self) -> usize {
        align8(self.len())
    }

    #[inline(always)]
    fn encode(&self, to: &mut Encoder<'_, '_>, offset: usize) {
        to.dynamic(offset, self);
    }
}

impl<T: Value, const N: usize> Value for [T; N] {
    const KIND: Kind = T::KIND;
    const COUNT: u16 = {
        assert!(
            N > 0 && N <= u16::MAX as usize,
            "an array argument has 1 to 65535 values"
        );
        assert!(T::COUNT == 0, "arrays of arrays are no arguments");
        assert!(!T::OPTIONAL, "arrays of options are no arguments");
        N as u16
    };
    const BYTES: usize = T::BYTES * N;
    const REDACTED: bool = T::REDACTED;

    #[inline(always)]
    fn dynamic_bytes(&self) -> usize {
        self.iter().map(Value::dynamic_bytes).sum()
    }

    #[inline(always)]
    fn encode(&self, to: &mut Encoder<'_, '_>, offset: usize) {
        for (i, value) in self.iter().enumerate() {
            value.encode(to, offset + i * T::BYTES);
        }
    }
}

impl<T: Value + ?Sized> Value for &T {
    const KIND: Kind = T::KIND;
    const COUNT: u16 = T::COUNT;
    const BYTES: usize = T::BYTES;
    const OPTIONAL: bool = T::OPTIONAL;
    const REDACTED: bool = T::REDACTED;

    #[inline(always)]
    fn dynamic_bytes(&self) -> usize {
        (**self).dynamic_bytes()
    }

    #[inline(always)]
    fn encode(&self, to: &mut Encoder<'_, '_>, offset: usize) {
        (**self).encode(to, offset);
    }
}

/// `None` is recorded as absent: readers show `none`, and null in JSON.
impl<T: Value> Value for Option<T> {
    const KIND: Kind = T::KIND;
    const COUNT: u16 = {
        assert!(T::COUNT == 0, "options of arrays are no arguments");
        assert!(!T::OPTIONAL, "options of options are no arguments");
        0
    };
    const BYTES: usize = 2 * T::BYTES;
    const OPTIONAL: bool = true;
    const REDACTED: bool = T::REDACTED;

    #[inline(always)]
    fn dynamic_bytes(&self) -> usize {
        self.as_ref().map_or(0, Value::dynamic_bytes)
    }

    #[inline(always)]
    fn encode(&self, to: &mut Encoder<'_, '_>, offset: usize) {
        if let Some(value) = self {
            value.encode(to, offset);
        }
        to.bits(offset + T::BYTES, u64::from(self.is_some()));
    }
}

/// Longest text that [`debug`] and [`display`] keep, in bytes; longer ones end in "…".
pub(crate) const TEXT_BYTES_MAX: usize = 512;

/// A value as text, in a buffer on the stack: formatting does not allocate.
#[derive(Clone, Copy)]
pub struct Text {
    bytes: [u8; TEXT_BYTES_MAX],
    length: usize,
    cut: bool,
}

impl Text {
    const fn empty() -> Self {
        Self {
            bytes: [0; TEXT_BYTES_MAX],
            length: 0,
            cut: false,
        }
    }

    /// The text itself, cut if it is too long.
    pub(crate) fn copy(text: &str) -> Self {
        let mut copy = Self::empty();
        // Writing into the buffer does not fail.
        let _ = copy.write_str(text);
        copy
    }

    /// The value's `Debug` text; `?value` in the macros.
    pub fn debug<T: fmt::Debug + ?Sized>(value: &T) -> Self {
        Self::of(format_args!("{value:?}"))
    }

    /// The value's `Display` text; `%value` in the macros.
    pub fn display<T: fmt::Display + ?Sized>(value: &T) -> Self {
        Self::of(format_args!("{value}"))
    }

    fn of(arguments: fmt::Arguments<'_>) -> Self {
        let mut text = Self::empty();
        // A failing formatter leaves what it wrote so far.
        let _ = text.write_fmt(arguments);
        text
    }

    fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

impl Write for Text {
    fn write_str(&mut self, more: &str) -> fmt::Result {
        const ELLIPSIS: &str = "…";
        if self.cut {
            return Ok(());
        }
        let room = TEXT_BYTES_MAX - ELLIPSIS.len() - self.length;
        let mut take = more.len().min(room);
        while !more.is_char_boundary(take) {
            take -= 1;
        }
        self.push(&more.as_bytes()[..take]);
        if take < more.len() {
            self.cut = true;
            self.push(ELLIPSIS.as_bytes());
        }
        Ok(())
    }
}

impl Text {
    fn push(&mut self, bytes: &[u8]) {
        self.bytes[self.length..self.length + bytes.len()].copy_from_slice(bytes);
        self.length += bytes.len();
    }
}

impl Value for Text {
    const KIND: Kind = Kind::Str;

    fn dynamic_bytes(&self) -> usize {
        align8(self.length)
    }

    fn encode(&self, to: &mut Encoder<'_, '_>, offset: usize) {
        to.dynamic(offset, self.as_bytes());
    }
}

/// A value that must not be recorded: its place says so.
#[derive(Debug, Clone, Copy)]
pub struct Redacted;

impl Value for Redacted {
    const KIND: Kind = Kind::Str;
    const REDACTED: bool = true;

    fn dynamic_bytes(&self) -> usize {
        align8(Self::TEXT.len())
    }

    fn encode(&self, to: &mut Encoder<'_, '_>, offset: usize) {
        to.dynamic(offset, Self::TEXT.as_bytes());
    }
}

impl Redacted {
    const TEXT: &'static str = "[redacted]";
}

/// Keeps a value out of the trace; the field is there, its value never is.
pub fn redact<T: ?Sized>(_value: &T) -> Redacted {
    Redacted
}
