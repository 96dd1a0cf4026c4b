//! What can be wrong with a ring file. Each text says what was found and what was expected; the
//! caller adds the path.

use ringmark_format::VERSION_MAJOR;
use ringmark_format::session::SessionHeader;

use crate::system::mapping::MapError;

/// What is wrong with a file that should be a ring file.
///
/// All cases but [`RingFileError::Map`] and [`RingFileError::Starting`] are final: the file will
/// not become readable. Only the header is judged here. Damage further inside shows when pages are
/// read, and does not keep the rest from being read.
#[derive(Debug)]
pub enum RingFileError {
    /// It could not be opened or mapped.
    Map(MapError),
    /// It does not start with the magic.
    NotARingFile {
        /// The first bytes.
        found: [u8; 8],
    },
    /// It is smaller than a header.
    TooSmall {
        /// Size of the file in bytes.
        bytes: u64,
    },
    /// It is smaller than its header says.
    Truncated {
        /// Size of the file in bytes.
        found: u64,
        /// What the header says.
        expected: u64,
    },
    /// Its major version is newer than this reader's.
    NewerMajor {
        /// The file's.
        found: u16,
    },
    /// It was written on a machine of the other byte order. A ring file is read where it was
    /// written; trace files are not bound to a machine.
    ForeignEndian,
    /// A number in the header is impossible.
    Header {
        /// Which.
        field: &'static str,
        /// What the header has there.
        found: u64,
    },
    /// The session is still being set up: worth another look in a moment.
    Starting,
}

impl std::fmt::Display for RingFileError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Map(error) => error.fmt(f),
            Self::NotARingFile { found } => {
                let text = found.escape_ascii();
                write!(
                    f,
                    "not a ring file: starts with \"{text}\", expected \"RINGMARK\""
                )
            }
            Self::TooSmall { bytes } => {
                let least = SessionHeader::BYTES;
                write!(
                    f,
                    "truncated header: {bytes} bytes, a ring file has at least {least}"
                )
            }
            Self::Truncated { found, expected } => write!(
                f,
                "ring file has {found} bytes, expected {expected}: it was truncated"
            ),
            Self::NewerMajor { found } => write!(
                f,
                "format version {found} is newer than this reader's ({VERSION_MAJOR}): use a newer ringmark"
            ),
            Self::ForeignEndian => write!(f, "written on a big-endian machine"),
            Self::Header { field, found } => {
                write!(f, "header field {field} is {found:#x}, which is impossible")
            }
            Self::Starting => write!(f, "the session is still starting"),
        }
    }
}

impl std::error::Error for RingFileError {}

impl From<MapError> for RingFileError {
    fn from(error: MapError) -> Self {
        Self::Map(error)
    }
}
