//! What can go wrong between a session and a dump or a collector.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use ringmark_ring::session_dir::DirError;
use ringmark_ring::{MapError, RingFileError};

/// An error of the reader: what, where, found, expected.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReaderError {
    /// A file is not a usable ring file.
    #[error("{}: {source}", path.display())]
    RingFile {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: RingFileError,
    },
    /// The session directory was refused.
    #[error(transparent)]
    Directory(#[from] DirError),

    /// The record of removals of a session directory cannot be used, so nothing was removed there.
    #[error(
        "{}: {source}: nothing can be counted in it, so no session is removed there; \
         move it away to begin a new one", path.display()
    )]
    Uncounted {
        /// The record.
        path: PathBuf,
        /// What is wrong with it.
        source: io::Error,
    },
    /// A system call on a path failed.
    #[error("{}: {action}: {source}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// The path it was tried on.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file belongs to another user.
    #[error("{}: belongs to uid {owner}, expected {expected}", path.display())]
    ForeignOwner {
        /// The file.
        path: PathBuf,
        /// User id of its owner.
        owner: u32,
        /// User id that may own it: ours, or that of its directory's owner.
        expected: u32,
    },
    /// Another recorder consumes the session, which can have only one.
    #[error("{}: already being recorded by {}; a discard session has one recorder", path.display(), holder_text(*holder))]
    Busy {
        /// The ring file.
        path: PathBuf,
        /// Process id of that recorder, if it could be found.
        holder: Option<u32>,
    },
    /// The ring file was truncated.
    #[error("{}: ring file has {found} bytes, expected {expected}: it was truncated", path.display())]
    Truncated {
        /// The ring file.
        path: PathBuf,
        /// Its size now, in bytes.
        found: u64,
        /// Its size when it was mapped, in bytes.
        expected: u64,
    },
    /// There is no such process, and it left no session either.
    #[error("pid {pid}: no such process, and it left no session")]
    NoSuchProcess {
        /// The process.
        pid: u32,
    },
    /// The process runs, but has no session.
    #[error("pid {pid}: not traced: {}", not_traced(*pid, reason.as_deref()))]
    NotTraced {
        /// The process.
        pid: u32,
        /// Why tracing is off in it, from the note that it left, if it left one.
        reason: Option<String>,
    },
    /// The process belongs to another user.
    #[error("pid {pid}: reading /proc/{pid}/{file}: not permitted{reason}")]
    NotPermitted {
        /// The process.
        pid: u32,
        /// Which file of `/proc/PID` was to be read.
        file: &'static str,
        /// Who owns the process, and who may read it: the end of the message.
        reason: String,
    },
    /// A directory holds no session.
    #[error("no sessions in {}", directory.display())]
    NoSessions {
        /// The directory.
        directory: PathBuf,
    },
    /// Writing the dump failed. The bytes before `offset` are a valid dump.
    #[error(
        "{name}: {action} at offset {offset}: {source}; {offset} bytes before it are a valid dump"
    )]
    Output {
        /// Name of the output.
        name: String,
        /// What was tried: "write" or "sync".
        action: &'static str,
        /// Offset at which the failed batch would have started.
        offset: u64,
        /// What the system said.
        source: io::Error,
    },
    /// The next file of a rotating dump could not be made. The files before it are a valid dump.
    #[error("{}: {action}: {source}; the dump ends with the files before it", path.display())]
    NextFile {
        /// What was tried.
        action: &'static str,
        /// The path it was tried on.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A collector cannot be reached, refused the stream, or did not make it durable in time.
    #[error("{address}: {source}")]
    Collector {
        /// Where the collector was expected to listen.
        address: String,
        /// What it, or the system, said.
        source: io::Error,
    },
    /// A request to the traced process was not carried out.
    #[error("pid {pid}: {reason}")]
    Control {
        /// The process.
        pid: u32,
        /// Why.
        reason: String,
    },
    /// The mailbox of the traced process could not be mapped.
    #[error("pid {pid}: mapping its mailbox: {source}")]
    Mailbox {
        /// The process.
        pid: u32,
        /// What the system said.
        source: MapError,
    },
    /// The traced process has begun a request and not ended it.
    #[error(
        "pid {pid}: it began the request and has not ended it after {:.1} s: it may still do so, or have stopped half way; 'ringmark trace status -p {pid}' shows what is on", waited.as_secs_f64()
    )]
    Unfinished {
        /// The process.
        pid: u32,
        /// Time since the request.
        waited: Duration,
    },
}

impl ReaderError {
    /// Whether the reader of a pipe went away, which is no reason to complain.
    #[must_use]
    pub fn is_closed_pipe(&self) -> bool {
        self.output_kind() == Some(io::ErrorKind::BrokenPipe)
    }

    /// Whether the disk, or the user's share of it, is full.
    #[must_use]
    pub fn is_no_space(&self) -> bool {
        use io::ErrorKind::{QuotaExceeded, StorageFull};
        matches!(self.output_kind(), Some(StorageFull | QuotaExceeded))
    }

    /// Whether a session is still being set up: a later look will find it.
    #[must_use]
    pub fn is_starting(&self) -> bool {
        // A ring file gets its name once it is whole, so any other error means damage.
        let source = match self {
            Self::RingFile { source, .. } => source,
            _ => return false,
        };
        matches!(source, RingFileError::Starting)
    }

    /// Whether descriptors or memory were short: a later try may succeed.
    #[must_use]
    pub fn is_shortage(&self) -> bool {
        use rustix::io::Errno;
        let source = match self {
            Self::Io { source, .. } => source.raw_os_error(),
            Self::RingFile {
                source: RingFileError::Map(error),
                ..
            } => error.source.raw_os_error(),
            _ => None,
        };
        let short = [Errno::MFILE, Errno::NFILE, Errno::NOMEM];
        source.is_some_and(|number| short.contains(&Errno::from_raw_os_error(number)))
    }

    /// What kind of error writing the dump met, if it was one.
    fn output_kind(&self) -> Option<io::ErrorKind> {
        match self {
            Self::Output { source, .. } | Self::NextFile { source, .. } => Some(source.kind()),
            _ => None,
        }
    }
}

fn not_traced(pid: u32, reason: Option<&str>) -> String {
    match reason {
        Some(reason) => format!("tracing is off in it: {reason}"),
        None => format!(
            "it has no ringmark session; a program that uses ringmark starts one where RINGMARK=1 \
             is set, and 'ringmark profile -p {pid}' shows where the time of any other goes"
        ),
    }
}

fn holder_text(holder: Option<u32>) -> String {
    match holder {
        Some(pid) => format!("pid {pid}"),
        None => "another process".to_owned(),
    }
}

/// Makes an error of a failed system call from its action and path.
pub(crate) fn io_at(
    action: &'static str,
    path: impl Into<PathBuf>,
) -> impl FnOnce(io::Error) -> ReaderError {
    let path = path.into();
    move |source| ReaderError::Io {
        action,
        path,
        source,
    }
}
