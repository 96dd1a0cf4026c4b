//! The identity of a file, whatever its name.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

/// Device and inode of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct FileId {
    /// The file system's device.
    pub device: u64,
    /// The file's number there.
    pub inode: u64,
}

impl FileId {
    /// The identity that `stat` tells.
    #[must_use]
    pub fn of(about: &Metadata) -> Self {
        Self {
            device: about.dev(),
            inode: about.ino(),
        }
    }
}
