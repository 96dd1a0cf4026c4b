//! The lease of those who come for all sessions of a directory, present and future: a shared lock of
//! the open directory. It ends with its holder, however that ends.

use std::fs::File;
use std::io;
use std::path::Path;

use rustix::fs::{Mode, OFlags};

use crate::system::lock;

/// Byte of the directory that is locked.
const BYTE: u64 = 0;

/// Says that somebody comes for all sessions of a directory, for as long as it is there.
#[derive(Debug)]
pub struct AllLease(File);

impl AllLease {
    /// Takes it. Several may hold it.
    ///
    /// # Errors
    /// What `open` or `fcntl` said.
    pub fn take(dir: &Path) -> io::Result<Self> {
        let file = open(dir)?;
        lock::hold_shared(&file, BYTE)?;
        Ok(Self(file))
    }

    /// Whether others hold it, too.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        lock::is_held_by_other_file(&self.0, BYTE)
    }
}

/// Whether anybody comes for all sessions of this directory.
#[must_use]
pub fn is_held(dir: &Path) -> bool {
    open(dir).is_ok_and(|file| lock::holder(&file, BYTE).is_some())
}

fn open(dir: &Path) -> io::Result<File> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::RDONLY;
    Ok(File::from(rustix::fs::open(dir, flags, Mode::empty())?))
}
