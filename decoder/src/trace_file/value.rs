//! Typed values, borrowed from the payload of a record.

use ringmark_format::schema::Kind;

/// A value as a payload holds it. Integers keep their sign but not their width.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<'a> {
    /// Unsigned, up to 64 bits.
    U64(u64),
    /// Signed, up to 64 bits.
    I64(i64),
    /// Unsigned, 128 bits.
    U128(u128),
    /// Signed, 128 bits.
    I128(i128),
    /// IEEE 754, 32 bits.
    F32(f32),
    /// IEEE 754, 64 bits.
    F64(f64),
    /// True or false.
    Bool(bool),
    /// A Unicode scalar value.
    Char(char),
    /// Text, not known to be UTF-8.
    Str(&'a [u8]),
    /// Bytes.
    Bytes(&'a [u8]),
    /// Values of this kind side by side in the first slice; the second is the whole payload.
    Array(Kind, &'a [u8], &'a [u8]),
    /// An optional value that is not there.
    None,
    /// The payload is too short for it, it points outside, or it is no value of its kind.
    Missing,
}

#[inline]
fn front<const N: usize>(bytes: &[u8]) -> Option<[u8; N]> {
    bytes.first_chunk().copied()
}

/// What a (offset, length) pair points at.
fn pointed<'a>(fixed: &[u8], payload: &'a [u8]) -> Option<&'a [u8]> {
    let pair = u64::from_le_bytes(front(fixed)?);
    let (offset, bytes) = (pair as u32 as usize, (pair >> 32) as usize);
    if bytes == 0 {
        return Some(&[]);
    }
    payload.get(offset..)?.get(..bytes)
}

impl<'a> Value<'a> {
    /// Reads one value of `kind` from the front of `fixed`. Text and bytes lie elsewhere in
    /// `payload`, where their offset and length point.
    ///
    /// `None`: too short, or it points outside.
    #[inline]
    #[must_use]
    pub fn read(kind: Kind, fixed: &[u8], payload: &'a [u8]) -> Option<Self> {
        Some(match kind {
            Kind::U64 => Self::U64(u64::from_le_bytes(front(fixed)?)),
            Kind::U32 => Self::U64(u32::from_le_bytes(front(fixed)?).into()),
            Kind::U16 => Self::U64(u16::from_le_bytes(front(fixed)?).into()),
            Kind::U8 => Self::U64((*fixed.first()?).into()),
            Kind::I64 => Self::I64(i64::from_le_bytes(front(fixed)?)),
            Kind::I32 => Self::I64(i32::from_le_bytes(front(fixed)?).into()),
            Kind::I16 => Self::I64(i16::from_le_bytes(front(fixed)?).into()),
            Kind::I8 => Self::I64(i8::from_le_bytes(front(fixed)?).into()),
            Kind::U128 => Self::U128(u128::from_le_bytes(front(fixed)?)),
            Kind::I128 => Self::I128(i128::from_le_bytes(front(fixed)?)),
            Kind::F32 => Self::F32(f32::from_le_bytes(front(fixed)?)),
            Kind::F64 => Self::F64(f64::from_le_bytes(front(fixed)?)),
            Kind::Bool => Self::Bool(*fixed.first()? != 0),
            Kind::Char => {
                let code = u32::from_le_bytes(front(fixed)?);
                char::from_u32(code).map_or(Self::Missing, Self::Char)
            }
            Kind::Str => Self::Str(pointed(fixed, payload)?),
            Kind::Bytes => Self::Bytes(pointed(fixed, payload)?),
        })
    }

    /// The value itself, or [`Value::Missing`] for text and bytes that `budget` does not cover.
    #[inline]
    pub(crate) fn within(self, budget: &mut usize) -> Self {
        if let Self::Str(bytes) | Self::Bytes(bytes) = self {
            match budget.checked_sub(bytes.len()) {
                Some(left) => *budget = left,
                None => return Self::Missing,
            }
        }
        self
    }

    /// The values of an array in order; none for a value that is no array.
    pub fn items(self) -> impl Iterator<Item = Value<'a>> {
        let (kind, bytes, payload) = match self {
            Self::Array(kind, bytes, payload) => (kind, bytes, payload),
            _ => (Kind::U8, &[][..], &[][..]),
        };
        bytes
            .chunks_exact(kind.fixed_bytes())
            .map(move |fixed| Value::read(kind, fixed, payload).unwrap_or(Value::Missing))
    }
}
