//! The leases of consumers that come for sessions of a directory, present and future: for all, or for
//! those that carry a tag. Each is a shared lock of one byte of the open directory. It ends with its
//! holder, however that ends.
//!
//! A collector's streamer reads each session of its host to the end, so dead sessions should wait
//! for it. Without a lease they are removed beyond a cap when the next program starts. The lease is
//! how that program knows; it is asked once at a start, and no program waits for it.
//!
//! The recorder of a program that it starts takes the lease of a tag, and the program's sessions carry
//! that tag. A session with the option `wait` is so told at its start that a consumer comes, who has not
//! found it yet.
//!
//! A lease promises nothing: a holder that hangs keeps dead sessions until half of the file system is in
//! use ([`crate::clean::before_start`]).

use std::fs::File;
use std::io;
use std::path::Path;

use rustix::fs::{Mode, OFlags};

use crate::system::file_lock;

/// Byte of the directory that is locked for all sessions.
const BYTE: u64 = 0;
/// Bits of the bytes that stand for tags: the number of a byte is a positive `off_t`.
const TAG_BITS: u64 = (1 << 62) - 1;

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

/// Announces a consumer of the sessions that carry a tag, for as long as it is held.
#[derive(Debug)]
pub struct TagLease {
    /// The open directory, with the lock.
    _directory: File,
}

impl TagLease {
    /// Takes the lease of `tag`, `key=value`, in `dir`, which must exist.
    ///
    /// # Errors
    /// As [`AllLease::take`].
    pub fn take(dir: &Path, tag: &str) -> io::Result<Self> {
        let file = open(dir)?;
        file_lock::hold_shared(&file, byte_of(tag))?;
        Ok(Self { _directory: file })
    }
}

/// The byte that stands for a tag: FNV-1a of its text. Two tags with the same byte are taken for one.
fn byte_of(tag: &str) -> u64 {
    let hash = tag.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    1 + (hash & (TAG_BITS - 1))
}

/// Whether a consumer comes for the sessions of this directory that carry this tag.
#[must_use]
pub fn is_held_for(dir: &Path, tag: &str) -> bool {
    open(dir).is_ok_and(|file| file_lock::holder(&file, byte_of(tag)).is_some())
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
