//! Why a session did not start.

use std::fmt;
use std::io;
use std::path::PathBuf;

use ringmark_format::session::Clock;

use crate::ring::RingFileError;
use crate::ring::room::FREE_SPACE;
use crate::ring::session_dir::DirError;

use super::filter::EXPECTED;
use super::options::OptionError;

/// Why a session did not start. The program goes on without tracing.
///
/// ```
/// use ringmark::{Session, StartError};
///
/// let error = Session::builder().filter("http=loud").start().unwrap_err();
/// assert!(matches!(&error, StartError::Filter { found } if found == "http=loud"));
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum StartError {
    /// An option cannot be used.
    Option(OptionError),
    /// A directive of the filter cannot be read.
    Filter {
        /// The directive that cannot be read.
        found: String,
    },
    /// The session directory was refused: it belongs to another user, others may write to it,
    /// it is no directory, or it could not be made.
    Dir(DirError),
    /// A system call failed.
    Io {
        /// The step that failed.
        step: &'static str,
        /// The ring file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file that was just laid out cannot be used.
    File(RingFileError),
    /// There is less memory than the smallest session needs. `limit` names what has to be raised,
    /// or freed.
    NoSpace {
        /// The session directory or the ring file.
        path: PathBuf,
        /// Bytes that are needed.
        needed: u64,
        /// Bytes that may be taken.
        available: u64,
        /// The limit that leaves no more.
        limit: &'static str,
    },
    /// A session runs with other options.
    Running {
        /// The first option that differs.
        option: &'static str,
    },
    /// The session of this process was closed by [`Session::close`](crate::Session::close), after
    /// which no other one starts.
    Closed,
    /// Ringmark does not trace on this system or processor; the program runs untraced.
    Unsupported {
        /// System and processor that the program was built for.
        found: String,
    },
    /// Another copy of the library in this process has a session with another clock, or one of the
    /// two has the clock `none`: the records of a process are put in one order by their ticks.
    OtherClock {
        /// The clock of the session that runs.
        running: Clock,
        /// The clock of the session that was to start.
        wanted: Clock,
    },
}

impl StartError {
    /// Whether the file system that holds the session directory is full.
    pub(crate) fn is_lack_of_room(&self) -> bool {
        use io::ErrorKind::{QuotaExceeded, StorageFull};
        match self {
            Self::NoSpace { limit, .. } => *limit == FREE_SPACE,
            Self::Io { source, .. } => matches!(source.kind(), StorageFull | QuotaExceeded),
            _ => false,
        }
    }
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Option(error) => error.fmt(f),
            Self::Filter { found } => {
                write!(f, "filter: found {found:?}, expected {EXPECTED}")
            }
            Self::Dir(error) => error.fmt(f),
            Self::Io { step, path, source } => write!(f, "{}: {step}: {source}", path.display()),
            Self::File(error) => error.fmt(f),
            Self::NoSpace {
                path,
                needed,
                available,
                limit,
            } => write!(
                f,
                "{}: a session needs {needed} bytes, {available} may be taken ({limit})",
                path.display()
            ),
            Self::Running { option } => {
                write!(f, "a session runs already, with another value of {option}")
            }
            Self::Closed => write!(f, "the session of this process was closed"),
            Self::Unsupported { found } => {
                write!(
                    f,
                    "Ringmark traces on Linux with glibc on x86-64 or aarch64, found {found}"
                )
            }
            Self::OtherClock {
                running: Clock::None,
                ..
            } => write!(
                f,
                "clock: another copy of the ringmark library in this process has a session with \
                 clock none, which no other session can be merged with"
            ),
            Self::OtherClock { running, wanted } => write!(
                f,
                "clock: found {}, expected {}, as another copy of the ringmark library in this \
                 process has it",
                wanted.name(),
                running.name()
            ),
        }
    }
}

impl std::error::Error for StartError {}
