//! Values that an event can carry, and how they become payload words.

use crate::description::Place;
use crate::ring::Reservation;
use ringmark_format::align8;
use ringmark_format::schema::Kind;

/// A type whose values can be arguments of events.
///
/// Implemented for integers, floats, `bool`, `char`, `str`, `String`, `[u8]`, arrays of them,
/// `Option` of them and references to them. A program implements it for types of its own that are
/// recorded as one of these kinds.
///
/// A value has a fixed part, whose place in the payload is known at compile time, and may have
/// dynamic bytes after all fixed parts.
///
/// ```
/// use ringmark::{Encoder, Kind, Session, Value, event};
///
/// struct Port(u16);
///
/// impl Value for Port {
///     const KIND: Kind = Kind::U16;
///
///     fn encode(&self, to: &mut Encoder<'_, '_>, offset: usize) {
///         self.0.encode(to, offset);
///     }
/// }
///
/// assert_eq!((Port::BYTES, Port::COUNT), (2, 0));
/// let session = Session::builder().start().expect("a session");
/// event!("accepted", port = Port(80));
/// assert_eq!(session.records(), 1);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an argument of an event",
    label = "found `{Self}`, expected a number, `bool`, `char`, text, bytes, or an array of them",
    note = "record its text instead: `name = ?value` (Debug) or `name = %value` (Display)"
)]
pub trait Value {
    /// How readers read one value's bytes.
    const KIND: Kind;
    /// 0: one value; n: an array of n.
    const COUNT: u16 = 0;
    /// Bytes of the fixed part, of all values of an array.
    const BYTES: usize = Self::KIND.fixed_bytes();
    /// Whether the value may be absent; then `BYTES` is twice the size of one that is there.
    const OPTIONAL: bool = false;
    /// Whether the value was replaced, so that it is not recorded.
    const REDACTED: bool = false;

    /// Bytes after the fixed parts that this value takes: a multiple of 8.
    #[inline(always)]
    fn dynamic_bytes(&self) -> usize {
        0
    }

    /// Writes the fixed part at `offset`, which is aligned to the kind's size or to 8, and
    /// `dynamic_bytes()` bytes through [`Encoder::dynamic`].
    fn encode(&self, to: &mut Encoder<'_, '_>, offset: usize);
}

impl Place {
    /// The place of a `T`, `offset` bytes from the payload's start.
    ///
    /// # Panics
    /// From 4 GiB on: in a constant, when the program is compiled.
    #[must_use]
    pub const fn of<T: Value>(offset: usize) -> Self {
        assert!(offset <= u32::MAX as usize, "a payload has less than 4 GiB");
        Self {
            kind: T::KIND,
            count: T::COUNT,
            offset: offset as u32,
            optional: T::OPTIONAL,
        }
    }
}

/// Alignment of a fixed part of this kind.
pub(crate) const fn alignment(kind: Kind) -> usize {
    let bytes = kind.fixed_bytes();
    if bytes < 8 { bytes } else { 8 }
}

/// Writes values into a record's payload, in ascending order of their offsets.
///
/// ```
/// use ringmark::{Encoder, Kind, Session, Value, event};
///
/// struct Host(&'static str);
///
/// impl Value for Host {
///     const KIND: Kind = Kind::Str;
///
///     fn dynamic_bytes(&self) -> usize {
///         self.0.len().next_multiple_of(8)
///     }
///
///     fn encode(&self, to: &mut Encoder<'_, '_>, offset: usize) {
///         to.dynamic(offset, self.0.as_bytes());
///     }
/// }
///
/// let session = Session::builder().start().expect("a session");
/// event!("resolved", host = Host("example.org"));
/// assert_eq!(session.records(), 1);
/// ```
pub struct Encoder<'e, 'w> {
    to: &'e mut Reservation<'w>,
    word: usize,
    bits: u64,
    dynamic: usize,
    /// Bytes beyond are left out; `None`: there is room for all.
    end: Option<usize>,
}

impl<'e, 'w> Encoder<'e, 'w> {
    /// An encoder whose dynamic bytes start after `fixed_bytes`.
    #[inline(always)]
    pub(crate) fn new(to: &'e mut Reservation<'w>, fixed_bytes: usize) -> Self {
        Self {
            to,
            word: 0,
            bits: 0,
            dynamic: align8(fixed_bytes),
            end: None,
        }
    }

    /// An encoder into a place of `end` bytes, which may be too small.
    #[inline(always)]
    pub(crate) fn cut(to: &'e mut Reservation<'w>, fixed_bytes: usize, end: usize) -> Self {
        Self {
            end: Some(end),
            ..Self::new(to, fixed_bytes)
        }
    }

    /// Puts up to 8 bytes at `offset`; they do not cross a word of 8 bytes.
    #[inline(always)]
    pub fn bits(&mut self, offset: usize, value: u64) {
        if offset / 8 != self.word {
            self.to.set_word(self.word, self.bits);
            self.word = offset / 8;
            self.bits = 0;
        }
        self.bits |= value << (offset % 8 * 8);
    }

    /// Puts bytes after the fixed parts, and their place at `offset`.
    #[inline(always)]
    pub fn dynamic(&mut self, offset: usize, bytes: &[u8]) {
        self.bits(offset, self.dynamic as u64 | (bytes.len() as u64) << 32);
        let kept = match self.end {
            None => bytes,
            Some(end) => &bytes[..bytes.len().min(end.saturating_sub(self.dynamic))],
        };
        self.to.set_bytes(self.dynamic / 8, kept);
        self.dynamic += align8(bytes.len());
    }

    /// Writes the last word.
    #[inline(always)]
    pub(crate) fn finish(self) {
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

/// A value that was kept out of the trace; made by [`redact`].
///
/// ```
/// use ringmark::{Redacted, Value, redact};
///
/// let kept_out: Redacted = redact("hunter2");
/// assert!(Redacted::REDACTED);
/// assert_eq!(format!("{kept_out:?}"), "Redacted");
/// ```
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

/// Keeps a value out of the trace: the field is described and marked, its value is not recorded.
///
/// ```
/// use ringmark::{Session, event, redact};
///
/// let session = Session::builder().keep(ringmark::Keep::Never).start().expect("a session");
/// let password = String::from("correct horse battery");
/// event!("login", user = "me", password = redact(&password));
/// let file = std::fs::read(session.path()).expect("the ring file");
/// assert!(!file.windows(password.len()).any(|bytes| bytes == password.as_bytes()));
/// ```
pub fn redact<T: ?Sized>(_value: &T) -> Redacted {
    Redacted
}
