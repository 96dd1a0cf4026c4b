//! What can go wrong between a session and a dump.

use std::io;
use std::path::PathBuf;

use ringmark_ring::RingFileError;
use ringmark_ring::session_dir::DirError;

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

    /// The record of removals of a session directory cannot be used: nothing there was removed.
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
        /// On what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file belongs to another user.
    #[error("{}: belongs to uid {owner}, expected {expected}", path.display())]
    ForeignOwner {
        /// The file.
        path: PathBuf,
        /// Its owner.
        owner: u32,
        /// Who we are.
        expected: u32,
    },
    /// Another recorder consumes the session.
    #[error("{}: already being recorded by {}; a discard session has one recorder", path.display(), holder_text(*holder))]
    Busy {
        /// The ring file.
        path: PathBuf,
        /// Process that holds it, if it could be found.
        holder: Option<u32>,
    },
    /// The ring file was truncated.
    #[error("{}: ring file has {found} bytes, expected {expected}: it was truncated", path.display())]
    Truncated {
        /// The ring file.
        path: PathBuf,
        /// Its size now.
        found: u64,
        /// Its size as the header states it.
        expected: u64,
    },
    /// There is no such process, and no session of it either.
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
        /// Why, in its own words, where it wanted to be traced.
        reason: Option<String>,
    },
    /// The process belongs to another user.
    #[error("pid {pid}: reading /proc/{pid}/{file}: not permitted{reason}")]
    NotPermitted {
        /// The process.
        pid: u32,
        /// What was to be read there.
        file: &'static str,
        /// Whose it is, and who may.
        reason: String,
    },
    /// Nothing was found where sessions live.
    #[error("no sessions in {}", directory.display())]
    NoSessions {
        /// The directory.
        directory: PathBuf,
    },
    /// Writing the dump failed. What lies before `offset` is a valid dump.
    #[error(
        "{name}: {action} at offset {offset}: {source}; {offset} bytes before it are a valid dump"
    )]
    Output {
        /// Name of the output.
        name: String,
        /// What was tried: to write, or to sync.
        action: &'static str,
        /// Where the failed batch would have started.
        offset: u64,
        /// What the system said.
        source: io::Error,
    },
    /// A rotating dump's next file could not be made. The files before it are a valid dump.
    #[error("{}: {action}: {source}; the dump ends with the files before it", path.display())]
    NextFile {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A collector cannot be reached, or refused us.
    #[error("{address}: {source}")]
    Collector {
        /// Where it is.
        address: String,
        /// What it, or the system, said.
        source: io::Error,
    },
    /// A request to the traced process came to nothing.
    #[error("pid {pid}: {reason}")]
    Control {
        /// The process.
        pid: u32,
        /// Why.
        reason: String,
    },
    /// A request that the traced process has begun, and not ended.
    #[error(
        "pid {pid}: it began what was asked and has not ended it after {:.1} s: it may still do so, or have stopped half way; 'ringmark trace status -p {pid}' shows what is on", waited.as_secs_f64()
    )]
    Unfinished {
        /// The process.
        pid: u32,
        /// Since the request.
        waited: std::time::Duration,
    },
}

impl ReaderError {
    /// Whether the reader of a pipe went away: nothing to complain about.
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

    /// Whether a session is still being set up: look again later.
    #[must_use]
    pub fn is_starting(&self) -> bool {
        // A ring file gets its name when it is whole: one that is not was damaged.
        let source = match self {
            Self::RingFile { source, .. } => source,
            _ => return false,
        };
        matches!(source, RingFileError::Starting)
    }

    /// Whether descriptors or memory were short: look again later.
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
             is set, and 'ringmark trace start -p {pid}' traces functions of others"
        ),
    }
}

fn holder_text(holder: Option<u32>) -> String {
    match holder {
        Some(pid) => format!("pid {pid}"),
        None => "another process".to_owned(),
    }
}

/// Ties an I/O error to an action and a path.
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
