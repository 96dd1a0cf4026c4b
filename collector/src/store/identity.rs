//! Whose a store is: its identity, made once, and the lock of the one collector that writes to it.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;

use super::error::{StoreError, io_at};

/// The file that makes a directory a store.
pub(super) const FILE: &str = "store.id";
/// The directory that a file system makes in its root.
const LOST_FOUND: &str = "lost+found";
/// Only its owner may open it: a process that can open it can hold its lock.
const MODE: u32 = 0o600;

/// How long a collector that was told to end may take to leave the store to the next one.
const WITHIN: Duration = Duration::from_secs(20);
/// How often is looked whether it has.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A store that is ours until this is dropped, or this process is gone.
#[derive(Debug)]
pub(super) struct Identity {
    pub(super) id: [u8; 16],
    _locked: File,
}

impl Identity {
    /// Takes the store at `root`; waits for one that ends.
    ///
    /// # Errors
    /// Another collector has it, or its file cannot be used.
    pub(super) fn take(root: &Path) -> Result<Self, StoreError> {
        let path = root.join(FILE);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        // A link may lead to anything, and a pipe have us wait.
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits();
        options.mode(MODE).custom_flags(flags.cast_signed());
        let mut file = options.open(&path).map_err(io_at("open", &path))?;
        lock(&file, root)?;
        let about = file.metadata().map_err(io_at("stat", &path))?;
        let found = about.len();
        // The power went while a collector made it: then there is nothing else.
        let is_torn = || found < 16 && is_blank(root).unwrap_or(false);
        if !about.is_file() || !([0, 16].contains(&found) || is_torn()) {
            let what = format!(
                "found {found} bytes, expected 16: it is no store's identity; name another directory"
            );
            return Err(StoreError::NotOurs { path, what });
        }
        // Where another user owns it this fails; then it was opened to us on purpose.
        let _ = file.set_permissions(Permissions::from_mode(MODE));
        let id = id(&mut file, root).map_err(io_at("write", &path))?;
        Ok(Self { id, _locked: file })
    }
}

fn lock(file: &File, root: &Path) -> Result<(), StoreError> {
    let begun = Instant::now();
    loop {
        match flock(file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(()),
            Err(Errno::WOULDBLOCK | Errno::INTR) if begun.elapsed() < WITHIN => {
                thread::sleep(LOOK_EVERY);
            }
            Err(Errno::WOULDBLOCK) => {
                return Err(StoreError::Taken {
                    root: root.to_owned(),
                    within: WITHIN,
                });
            }
            Err(error) => return Err(io_at("lock", &root.join(FILE))(error.into())),
        }
    }
}

/// What the file says; made if it says nothing, and on the disk then: nothing in a store is worth
/// anything without it.
fn id(file: &mut File, root: &Path) -> io::Result<[u8; 16]> {
    let mut bytes = Vec::with_capacity(16);
    file.read_to_end(&mut bytes)?;
    if let Ok(id) = bytes.try_into() {
        return Ok(id);
    }
    let mut id = [0; 16];
    rustix::rand::getrandom(&mut id, rustix::rand::GetRandomFlags::empty())?;
    file.set_len(0)?;
    file.rewind()?;
    file.write_all(&id)?;
    file.sync_all()?;
    File::open(root)?.sync_all()?;
    Ok(id)
}

/// Whether there is nothing in a directory but what its file system has put there, and an identity.
pub(super) fn is_blank(directory: &Path) -> io::Result<bool> {
    for entry in fs::read_dir(directory)? {
        let name = entry?.file_name();
        if ![LOST_FOUND, FILE].iter().any(|of| name == OsStr::new(of)) {
            return Ok(false);
        }
    }
    Ok(true)
}
