//! Whose a store is: its identity, made once, and the lock of the one collector that writes to it.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::{StoreError, io_at};

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
        let path = root.join("store.id");
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let mut file = options.open(&path).map_err(io_at("open", &path))?;
        lock(&file, root)?;
        let id = id(&mut file).map_err(io_at("write", &path))?;
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
            Err(error) => return Err(io_at("lock", &root.join("store.id"))(error.into())),
        }
    }
}

/// What the file says; made if it says nothing.
fn id(file: &mut File) -> io::Result<[u8; 16]> {
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
    Ok(id)
}
