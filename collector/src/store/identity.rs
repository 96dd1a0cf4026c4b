//! Whose a store is: its identity, made once, and the lock of the one collector that writes to it.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use ringmark_decoder::store::ID_FILE;
use ringmark_format::store::{STORE_MAGIC, STORE_VERSION, StoreId};
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;
use zerocopy::{FromBytes, IntoBytes};

use super::error::{StoreError, io_at};

/// The directory that a file system makes in its root.
const LOST_FOUND: &str = "lost+found";
/// Only its owner may open it: a process that can open it can hold its lock.
const MODE: u32 = 0o600;
const BYTES: usize = size_of::<StoreId>();

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
        let path = root.join(ID_FILE);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        // A link may lead to anything, and a pipe have us wait.
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits();
        options.mode(MODE).custom_flags(flags.cast_signed());
        let mut file = options.open(&path).map_err(io_at("open", &path))?;
        lock(&file, root)?;
        let about = file.metadata().map_err(io_at("stat", &path))?;
        if !about.is_file() {
            return Err(not_ours(&path, "found no regular file".to_owned()));
        }
        let bytes = begin_of(&mut file).map_err(io_at("read", &path))?;
        // Where another user owns it this fails; then it was opened to us on purpose.
        let _ = file.set_permissions(Permissions::from_mode(MODE));
        let id = match parse(&bytes) {
            Ok(id) => id,
            // The power went while a collector made it: then there is nothing else.
            Err(Unusable::Torn(_)) if bytes.is_empty() || is_blank(root).unwrap_or(false) => {
                make(&mut file, root).map_err(io_at("write", &path))?
            }
            Err(why) => return Err(not_ours(&path, why.to_string())),
        };
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
            Err(error) => return Err(io_at("lock", &root.join(ID_FILE))(error.into())),
        }
    }
}

/// Why the content of a `store.id` is no identity.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
enum Unusable {
    #[error("found {0} bytes, expected {BYTES}: it is no store's identity")]
    Torn(usize),
    #[error("found {0} bytes or more, expected {BYTES} bytes that begin with RMKSTORE")]
    Foreign(usize),
    #[error(
        "found a store of version {0}, expected {STORE_VERSION} or older: use a newer ringmark for it"
    )]
    Newer(u32),
}

fn not_ours(path: &Path, found: String) -> StoreError {
    StoreError::NotOurs {
        path: path.to_owned(),
        what: format!("{found}; name another directory"),
    }
}

/// Bytes of the file, one more than an identity has at most.
fn begin_of(file: &mut File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(BYTES + 1);
    file.take(BYTES as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The identity in the content of a `store.id`.
fn parse(bytes: &[u8]) -> Result<[u8; 16], Unusable> {
    if STORE_MAGIC.starts_with(bytes) || bytes.starts_with(&STORE_MAGIC) {
        let Ok((about, rest)) = StoreId::read_from_prefix(bytes) else {
            return Err(Unusable::Torn(bytes.len()));
        };
        return match about.version {
            1..=STORE_VERSION if rest.is_empty() => Ok(about.id),
            1..=STORE_VERSION | 0 => Err(Unusable::Foreign(bytes.len())),
            newer => Err(Unusable::Newer(newer)),
        };
    }
    match bytes.len() {
        // Before version 1 there was nothing but the id.
        16 => Ok(bytes.try_into().expect("16 bytes")),
        0..16 => Err(Unusable::Torn(bytes.len())),
        found => Err(Unusable::Foreign(found)),
    }
}

/// Writes a new identity, and has it on the disk: nothing in a store is worth anything without it.
fn make(file: &mut File, root: &Path) -> io::Result<[u8; 16]> {
    let mut id = [0; 16];
    rustix::rand::getrandom(&mut id, rustix::rand::GetRandomFlags::empty())?;
    let about = StoreId {
        magic: STORE_MAGIC,
        version: STORE_VERSION,
        reserved: 0,
        id,
    };
    file.set_len(0)?;
    file.rewind()?;
    file.write_all(about.as_bytes())?;
    file.sync_all()?;
    File::open(root)?.sync_all()?;
    Ok(id)
}

/// Whether there is nothing in a directory but what its file system has put there, and an identity.
pub(super) fn is_blank(directory: &Path) -> io::Result<bool> {
    for entry in fs::read_dir(directory)? {
        let name = entry?.file_name();
        if ![LOST_FOUND, ID_FILE]
            .iter()
            .any(|of| name == OsStr::new(of))
        {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(version: u32) -> Vec<u8> {
        let about = StoreId {
            magic: STORE_MAGIC,
            version,
            reserved: 0,
            id: [7; 16],
        };
        about.as_bytes().to_owned()
    }

    #[test]
    fn an_identity_of_each_version_is_read() {
        assert_eq!(parse(&bytes(STORE_VERSION)), Ok([7; 16]));
        assert_eq!(parse(&[9; 16]), Ok([9; 16]), "before version 1");
    }

    #[test]
    fn a_newer_store_is_refused_by_its_version() {
        let mut longer = bytes(STORE_VERSION + 1);
        assert_eq!(parse(&longer), Err(Unusable::Newer(2)));
        longer.push(0);
        let why = parse(&longer).unwrap_err().to_string();
        assert!(why.contains("version 2, expected 1 or older"), "{why}");
    }

    #[test]
    fn every_beginning_of_an_identity_is_torn() {
        let whole = bytes(STORE_VERSION);
        for cut in 0..whole.len() {
            assert_eq!(
                parse(&whole[..cut]),
                Err(Unusable::Torn(cut)),
                "{cut} bytes"
            );
        }
    }

    #[test]
    fn anything_else_is_foreign() {
        for other in [
            vec![7; 17],
            vec![7; 33],
            bytes(0),
            [bytes(1), vec![0]].concat(),
        ] {
            let found = other.len();
            assert_eq!(parse(&other), Err(Unusable::Foreign(found)));
        }
    }
}
