//! Why the content of a container could not be encoded or decoded.

use core::fmt;

use crate::block::CONTENT_BYTES_MAX;

/// Why content could not be encoded or decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CodecError {
    /// No codec has this number.
    Unknown {
        /// As found.
        codec: u8,
    },
    /// The content is larger than [`CONTENT_BYTES_MAX`].
    TooLarge {
        /// Bytes as declared.
        bytes: u64,
    },
    /// LZ4 could not be decoded, or expands past the declared size.
    Malformed,
    /// The content decoded to another size than declared.
    Size {
        /// Bytes that came out.
        found: u64,
        /// Bytes that the header declares.
        expected: u64,
    },
    /// The filtered streams contradict each other.
    Filter,
}

impl fmt::Display for CodecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { codec } => write!(f, "unknown codec {codec}, known are 0, 1 and 2"),
            Self::TooLarge { bytes } => {
                write!(f, "content of {bytes} bytes, at most {CONTENT_BYTES_MAX}")
            }
            Self::Malformed => f.write_str("LZ4 malformed, or expanding past the declared size"),
            Self::Size { found, expected } => {
                write!(f, "content decodes to {found} bytes, expected {expected}")
            }
            Self::Filter => f.write_str("the filtered streams contradict each other"),
        }
    }
}

impl core::error::Error for CodecError {}
