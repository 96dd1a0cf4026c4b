//! The lease of consumers that come for all sessions of a directory, present and future: a shared
//! lock of the open directory. It ends with its holder, however that ends.
//!
//! A collector's streamer reads each session of its host to the end, so dead sessions should wait
//! for it. Without a lease they are removed beyond a cap when the next program starts. The lease is
//! how that program knows; it is asked once at a start, and no program waits for it.
//!
//! It promises nothing: a holder that hangs keeps dead sessions until half of the file system is in
//! use ([`crate::clean::before_start`]).

use std::fs::File;
use std::io;
use std::path::Path;

use rustix::fs::{Mode, OFlags};

use crate::system::file_lock;

/// Byte of the directory that is locked.
const BYTE: u64 = 0;

/// Announces a consumer that comes for all sessions of a directory, for as long as it is held.
#[derive(Debug)]
pub struct AllLease(File);

impl AllLease {
    /// Takes the lease of `dir`, which must exist. Several consumers may hold it at once.
    ///
    /// # Errors
    /// The error of `open` or `fcntl`; a link in place of the directory is one.
    pub fn take(dir: &Path) -> io::Result<Self> {
        let file = open(dir)?;
        file_lock::hold_shared(&file, BYTE)?;
        Ok(Self(file))
    }

    /// Whether other processes hold it, too: each session is consumed by one of them only.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        file_lock::is_held_by_other_file(&self.0, BYTE)
    }
}

/// Whether a consumer comes for all sessions of this directory. `false` also where the directory
/// cannot be opened.
#[must_use]
pub fn is_held(dir: &Path) -> bool {
    open(dir).is_ok_and(|file| file_lock::holder(&file, BYTE).is_some())
}

fn open(dir: &Path) -> io::Result<File> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::RDONLY;
    Ok(File::from(rustix::fs::open(dir, flags, Mode::empty())?))
}
