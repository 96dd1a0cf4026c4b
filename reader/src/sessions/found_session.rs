//! A ring file that was found, and how it is opened.
//!
//! Between finding and opening, another user may exchange the file. So what was known of the place
//! is kept, and the open file is checked against it.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use ringmark_ring::session_dir::{self, OpenFor};

use crate::error::{ReaderError, io_at};

/// A place where a ring file can be opened.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FoundSession {
    /// Path of the file, or of a descriptor in `/proc`.
    pub path: PathBuf,
    /// The path is a link in `/proc` that has to be followed; any other link is refused.
    descriptor: bool,
    /// User id of the owner of the directory: no other user's file belongs there.
    owner: Option<u32>,
}

impl FoundSession {
    /// The ring file at `path`. A link there will be refused.
    #[must_use]
    pub fn at(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            descriptor: false,
            owner: None,
        }
    }

    /// A ring file in a directory that belongs to `owner`.
    pub(crate) fn in_directory(path: PathBuf, owner: u32) -> Self {
        Self {
            path,
            descriptor: false,
            owner: Some(owner),
        }
    }

    /// A ring file that is reached through a descriptor in `/proc`.
    pub(crate) fn descriptor(path: PathBuf) -> Self {
        Self {
            path,
            descriptor: true,
            owner: None,
        }
    }

    /// Opens the file.
    ///
    /// # Errors
    /// It cannot be opened, or belongs to a user whose file does not belong there.
    pub(crate) fn open(&self, purpose: OpenFor) -> Result<File, ReaderError> {
        let opened = if self.descriptor {
            fs::OpenOptions::new()
                .read(true)
                .write(purpose == OpenFor::Writing)
                .custom_flags(rustix::fs::OFlags::NONBLOCK.bits() as i32)
                .open(&self.path)
        } else {
            session_dir::open(&self.path, purpose)
        };
        let file = opened.map_err(|error| match self.foreign_owner() {
            Some(foreign) if error.kind() == io::ErrorKind::PermissionDenied => foreign,
            _ => io_at("open", &self.path)(error),
        })?;
        let owner = file.metadata().map_err(io_at("fstat", &self.path))?.uid();
        let own = session_dir::uid();
        // Root may read the files of all users, but in a session directory only its owner's.
        let expected = match self.owner {
            Some(directory) => directory,
            None if own == 0 => owner,
            None => own,
        };
        if owner != expected {
            let path = self.path.clone();
            return Err(ReaderError::ForeignOwner {
                path,
                owner,
                expected,
            });
        }
        Ok(file)
    }

    /// The error for a file of another user than its directory's; `None`: it is not such a file.
    fn foreign_owner(&self) -> Option<ReaderError> {
        let expected = self.owner?;
        let owner = fs::symlink_metadata(&self.path).ok()?.uid();
        (owner != expected).then(|| ReaderError::ForeignOwner {
            path: self.path.clone(),
            owner,
            expected,
        })
    }
}
