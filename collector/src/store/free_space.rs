//! What is free on the store's file system.

use std::io;
use std::path::Path;

use rustix::fs::statvfs;

/// Sizes of a file system, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FreeSpace {
    /// All of it.
    pub(super) whole_bytes: u64,
    /// What we may still write.
    pub(super) free_bytes: u64,
}

impl FreeSpace {
    /// Asks the file system on which `path` lies.
    ///
    /// # Errors
    /// Those of `statvfs`.
    pub(super) fn of(path: &Path) -> io::Result<Self> {
        let about = statvfs(path)?;
        let bytes = |blocks: u64| blocks.saturating_mul(about.f_frsize);
        Ok(Self {
            whole_bytes: bytes(about.f_blocks),
            free_bytes: bytes(about.f_bavail),
        })
    }
}
