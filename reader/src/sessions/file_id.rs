//! The identity of a file, independent of its name.

use std::fs::{File, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Device and inode of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct FileId {
    /// Number of the file system's device.
    pub device: u64,
    /// Number of the file in that file system.
    pub inode: u64,
}

impl FileId {
    /// The identity in the metadata of a file.
    #[must_use]
    pub fn of(about: &Metadata) -> Self {
        Self {
            device: about.dev(),
            inode: about.ino(),
        }
    }
}

/// Whether `path` names the file that is open as `file`.
pub(crate) fn same_file(path: &Path, file: &File) -> bool {
    match (std::fs::symlink_metadata(path), file.metadata()) {
        (Ok(a), Ok(b)) => FileId::of(&a) == FileId::of(&b),
        _ => false,
    }
}
