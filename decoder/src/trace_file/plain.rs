//! Values that were recorded as bytes, read back as values of a type.

use bytemuck::AnyBitPattern;
use ringmark_format::schema::Kind;

use crate::trace_file::value::Value;

/// Why a recorded value is not read as values of a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CastError {
    /// The value is a number, a text or an array of numbers, or it is missing.
    #[error("found a value that was not recorded as bytes, expected bytes or an array of u8")]
    NotBytes,
    /// The bytes are no whole number of values.
    #[error("found {found} bytes, expected a multiple of {expected}, the size of the type")]
    Size {
        /// Bytes of the recorded value.
        found: usize,
        /// Bytes of one value of the type; 0 if the type has none, and then nothing is read.
        expected: usize,
    },
    /// The bytes lie where a value of the type must not: [`Value::copy_slice`] reads them.
    #[error("found bytes {found} after a multiple of {expected}, the alignment of the type")]
    Alignment {
        /// Bytes between the last aligned address and the value.
        found: usize,
        /// Alignment of the type in bytes.
        expected: usize,
    },
}

impl<'a> Value<'a> {
    /// The bytes of the value: those of [`Value::Bytes`], or of an array of `u8`.
    fn plain_bytes(self) -> Result<&'a [u8], CastError> {
        match self {
            Self::Bytes(bytes) | Self::Array(Kind::U8, bytes, _) => Ok(bytes),
            _ => Err(CastError::NotBytes),
        }
    }

    /// The value's bytes, as many whole values of `T`.
    fn plain_parts<T>(self) -> Result<&'a [u8], CastError> {
        let bytes = self.plain_bytes()?;
        let (found, expected) = (bytes.len(), size_of::<T>());
        if expected == 0 || !found.is_multiple_of(expected) {
            return Err(CastError::Size { found, expected });
        }
        Ok(bytes)
    }

    /// The recorded bytes as values of `T`, where they lie. Where a payload lies in memory is
    /// chance, so a `T` that is aligned to more than one byte needs [`Value::copy_slice`] as well.
    ///
    /// ```
    /// use ringmark_decoder::{CastError, Value};
    ///
    /// let value = Value::Bytes(&[1, 2, 3, 4]);
    /// assert_eq!(value.cast_slice::<[u8; 2]>(), Ok(&[[1, 2], [3, 4]][..]));
    /// let error = value.cast_slice::<[u8; 3]>().unwrap_err();
    /// assert_eq!(error, CastError::Size { found: 4, expected: 3 });
    /// ```
    ///
    /// # Errors
    /// The value was not recorded as bytes, or their number or their place does not fit `T`.
    pub fn cast_slice<T: AnyBitPattern>(self) -> Result<&'a [T], CastError> {
        let bytes = self.plain_parts::<T>()?;
        bytemuck::try_cast_slice(bytes).map_err(|_| CastError::Alignment {
            found: bytes.as_ptr().addr() % align_of::<T>(),
            expected: align_of::<T>(),
        })
    }

    /// The recorded bytes as values of `T`, copied: they may lie anywhere.
    ///
    /// ```
    /// use ringmark_decoder::Value;
    ///
    /// let payload = [0, 1, 0, 0, 0, 2, 0, 0, 0];
    /// let value = Value::Bytes(&payload[1..]);
    /// assert_eq!(value.copy_slice::<u32>(), Ok(vec![1, 2]));
    /// ```
    ///
    /// # Errors
    /// The value was not recorded as bytes, or their number does not fit `T`.
    pub fn copy_slice<T: AnyBitPattern>(self) -> Result<Vec<T>, CastError> {
        let bytes = self.plain_parts::<T>()?;
        let values = bytes.chunks_exact(size_of::<T>());
        Ok(values.map(bytemuck::pod_read_unaligned).collect())
    }
}
