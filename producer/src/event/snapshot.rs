//! Values as they are when a call begins, for a record that is written when it ends.

use ringmark_format::align8;
use ringmark_format::schema::Kind;

use super::text::{TEXT_BYTES_MAX, Text};
use super::value::{Encoder, Redacted, Value};

/// A value that can be kept while the function that it was given to uses it up.
///
/// Numbers are copied; of a text or a byte slice at most 512 bytes are kept, on the stack.
pub trait Snapshot {
    /// What is kept.
    type Kept: Value;

    /// Keeps the value as it is now.
    fn snapshot(&self) -> Self::Kept;
}

macro_rules! copied {
    ($($type:ty)*) => { $(
        impl Snapshot for $type {
            type Kept = Self;

            #[inline(always)]
            fn snapshot(&self) -> Self {
                *self
            }
        }
    )* };
}

copied! { u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize f32 f64 bool char Text Redacted }

impl<T: Value + Copy, const N: usize> Snapshot for [T; N] {
    type Kept = Self;

    #[inline(always)]
    fn snapshot(&self) -> Self {
        *self
    }
}

impl<T: Snapshot + ?Sized> Snapshot for &T {
    type Kept = T::Kept;

    #[inline(always)]
    fn snapshot(&self) -> T::Kept {
        (**self).snapshot()
    }
}

impl<T: Snapshot> Snapshot for Option<T> {
    type Kept = Option<T::Kept>;

    #[inline(always)]
    fn snapshot(&self) -> Self::Kept {
        self.as_ref().map(Snapshot::snapshot)
    }
}

impl Snapshot for str {
    type Kept = Text;

    fn snapshot(&self) -> Text {
        Text::copy(self)
    }
}

impl Snapshot for String {
    type Kept = Text;

    fn snapshot(&self) -> Text {
        Text::copy(self)
    }
}

/// The first bytes of a byte slice.
#[derive(Debug, Clone, Copy)]
pub struct KeptBytes {
    bytes: [u8; TEXT_BYTES_MAX],
    length: usize,
}

impl Snapshot for [u8] {
    type Kept = KeptBytes;

    fn snapshot(&self) -> KeptBytes {
        let length = self.len().min(TEXT_BYTES_MAX);
        let mut bytes = [0; TEXT_BYTES_MAX];
        bytes[..length].copy_from_slice(&self[..length]);
        KeptBytes { bytes, length }
    }
}

impl Value for KeptBytes {
    const KIND: Kind = Kind::Bytes;

    fn dynamic_bytes(&self) -> usize {
        align8(self.length)
    }

    fn encode(&self, to: &mut Encoder<'_, '_>, offset: usize) {
        to.dynamic(offset, &self.bytes[..self.length]);
    }
}
