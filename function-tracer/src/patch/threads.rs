//! Which threads may be in the middle of a site while it is switched.

use std::fs;
use std::os::unix::fs::MetadataExt;

/// Whether other code than the caller's may be in the middle of a site.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Threads {
    /// One thread, and it has not run code with sites yet: the program's start.
    NotYet,
    /// Any number of threads, anywhere. Always right.
    Running,
}

/// Whether this is the process's only thread: its directory of threads has three links then.
pub(crate) fn is_alone() -> bool {
    fs::metadata("/proc/self/task").is_ok_and(|data| data.nlink() == 3)
}
