//! Why a library was not loaded. In each case the target is as it was.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Why a library was not loaded: what, where, found, expected.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// There is no such process.
    #[error("pid {pid}: no such process")]
    NoProcess {
        /// The process.
        pid: i32,
    },
    /// The kernel does not let us trace it.
    #[error(
        "pid {pid}: ptrace refused ({reason}); start it with 'ringmark run' or give CAP_SYS_PTRACE"
    )]
    NotPermitted {
        /// The process.
        pid: i32,
        /// What stands against it, as far as can be seen.
        reason: String,
    },
    /// Another process traces it, a debugger as a rule.
    #[error("pid {pid}: traced by pid {tracer} already; a process has one tracer")]
    TracedAlready {
        /// The process.
        pid: i32,
        /// Process id of the tracer that holds it.
        tracer: i32,
    },
    /// A kind of process that cannot be loaded into.
    #[error("pid {pid}: {reason}")]
    Unsuitable {
        /// The process.
        pid: i32,
        /// What it is.
        reason: &'static str,
    },
    /// A seccomp filter does not allow what loading needs, or does not say whether it does.
    #[error("pid {pid}: thread {tid} runs under seccomp: {reason}")]
    Seccomp {
        /// The process.
        pid: i32,
        /// The thread.
        tid: i32,
        /// What the filter does to which call, and what to do.
        reason: String,
    },
    /// The library is no file that can be loaded.
    #[error("pid {pid}: {path} {found}")]
    NotUsable {
        /// The process.
        pid: i32,
        /// The library.
        path: PathBuf,
        /// What was found.
        found: &'static str,
    },
    /// The target sees neither the library nor a `/proc`, by which it could open a copy.
    #[error(
        "pid {pid}: its file system has neither {path} nor /proc, by which a copy is loaded; mount one there ('mount -t proc proc ITS-ROOT/proc')"
    )]
    NoProc {
        /// The process.
        pid: i32,
        /// The library.
        path: PathBuf,
    },
    /// No thread came to a place where loading is safe. Each was let go on as it was.
    #[error("pid {pid}: no thread came to a place where loading is safe in {limit:?}: {threads}")]
    NoSafePlace {
        /// The process.
        pid: i32,
        /// How long it was waited for.
        limit: Duration,
        /// What kept the threads.
        threads: String,
    },
    /// A thread does not stop, or another process runs in the same memory. The process goes on as it was.
    #[error("pid {pid}: its threads cannot be stopped together: {tid} {why}")]
    NotStopped {
        /// The process.
        pid: i32,
        /// The thread, or the other process.
        tid: i32,
        /// What keeps it.
        why: &'static str,
    },
    /// The target's loader said no.
    #[error("pid {pid}: dlopen {path}: {message}")]
    Loader {
        /// The process.
        pid: i32,
        /// The library.
        path: PathBuf,
        /// What the program's loader says about it.
        message: String,
    },
    /// The library was being loaded and the time for that was over: it goes on.
    #[error("pid {pid}: thread {tid} has been in dlopen for {waited:?}; it was left there")]
    StillLoading {
        /// The process.
        pid: i32,
        /// The thread.
        tid: i32,
        /// How long.
        waited: Duration,
    },
    /// A step failed.
    #[error("pid {pid}: {what}: {error}")]
    Failed {
        /// The process.
        pid: i32,
        /// The step.
        what: &'static str,
        /// The system's reason.
        error: io::Error,
    },
}
