//! The identity of a store, and the lock of the one collector that writes to it.
//!
//! `store.id` says that a directory is a store, and which one: streamers meet the same id again
//! after a restart. Its open file holds the lock, so the lock ends with the collector, however that
//! ends.

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

use super::error::{NotAStore, StoreError, io_at};

/// The directory that a file system makes in its root.
const LOST_FOUND: &str = "lost+found";
/// Only its owner may open it: any process that can open it could hold its lock.
const MODE: u32 = 0o600;
const BYTES: usize = size_of::<StoreId>();

/// How long a collector waits for another one to leave the store: it may be about to end.
pub const WITHIN: Duration = Duration::from_secs(20);
/// How often to look whether it has.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A store that this process holds until this is dropped.
#[derive(Debug)]
pub(super) struct Identity {
    pub(super) id: [u8; 16],
    _locked: File,
}

impl Identity {
    /// Takes the store at `root`, and makes its identity if it has none. Waits as long as this for a
    /// collector that is about to end.
    ///
    /// # Errors
    /// Another collector holds the store, or its identity cannot be used.
    pub(super) fn take(root: &Path, within: Duration) -> Result<Self, StoreError> {
        let path = root.join(ID_FILE);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        // A link could lead anywhere, and opening a pipe would wait for its other end.
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits();
        options.mode(MODE).custom_flags(flags.cast_signed());
        let mut file = options.open(&path).map_err(io_at("open", &path))?;
        lock(&file, root, within)?;
        let about = file.metadata().map_err(io_at("stat", &path))?;
        if !about.is_file() {
            return Err(not_ours(&path, NotAStore::NoRegularFile));
        }
        let bytes = first_bytes(&mut file).map_err(io_at("read", &path))?;
        // This fails where another user owns the file, who then opened it to us on purpose.
        let _ = file.set_permissions(Permissions::from_mode(MODE));
        let id = match parse(&bytes) {
            Ok(id) => id,
            // A power loss while a collector made it leaves it torn, and the store still empty.
            Err(NotAStore::Torn { .. })
                if bytes.is_empty() || is_blank(root, &[ID_FILE]).unwrap_or(false) =>
            {
                make(&mut file, root).map_err(io_at("write", &path))?
            }
            Err(source) => return Err(not_ours(&path, source)),
        };
        Ok(Self { id, _locked: file })
    }
}

/// Whether another collector has the store at `root` now: a start waits for its end.
#[must_use]
pub fn is_taken(root: &Path) -> bool {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits();
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(flags.cast_signed());
    let file = options.open(root.join(ID_FILE));
    let locked = file.map(|file| flock(&file, FlockOperation::NonBlockingLockShared));
    locked.is_ok_and(|locked| locked == Err(Errno::WOULDBLOCK))
}

/// Locks the open identity for this process.
fn lock(file: &File, root: &Path, within: Duration) -> Result<(), StoreError> {
    let begun = Instant::now();
    loop {
        match flock(file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(()),
            Err(Errno::WOULDBLOCK | Errno::INTR) if begun.elapsed() < within => {
                thread::sleep(LOOK_EVERY);
            }
            Err(Errno::WOULDBLOCK) => {
                return Err(StoreError::Taken {
                    root: root.to_owned(),
                    within,
                });
            }
            Err(error) => return Err(io_at("lock", &root.join(ID_FILE))(error.into())),
        }
    }
}

fn not_ours(path: &Path, source: NotAStore) -> StoreError {
    let path = path.to_owned();
    StoreError::NotOurs { path, source }
}

/// The first bytes of a file, at most one more than an identity has.
fn first_bytes(file: &mut File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(BYTES + 1);
    file.take(BYTES as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The identity in the content of a `store.id`.
fn parse(bytes: &[u8]) -> Result<[u8; 16], NotAStore> {
    let (found, expected) = (bytes.len(), BYTES);
    if is_torn(bytes) {
        return Err(NotAStore::Torn { found, expected });
    }
    if STORE_MAGIC.starts_with(bytes) || bytes.starts_with(&STORE_MAGIC) {
        let Ok((about, rest)) = StoreId::read_from_prefix(bytes) else {
            return Err(NotAStore::Torn { found, expected });
        };
        return match about.version {
            1..=STORE_VERSION if rest.is_empty() => Ok(about.id),
            1..=STORE_VERSION | 0 => Err(NotAStore::Foreign { found, expected }),
            newer => Err(NotAStore::Newer {
                found: newer,
                newest: STORE_VERSION,
            }),
        };
    }
    Err(NotAStore::Foreign { found, expected })
}

/// Whether a power loss can have left this of a new identity: a part of its beginning, and zeros up to a
/// size that was on the disk before the bytes.
fn is_torn(bytes: &[u8]) -> bool {
    let written = bytes.iter().rposition(|byte| *byte != 0);
    let written = &bytes[..written.map_or(0, |last| last + 1)];
    bytes.len() <= BYTES && STORE_MAGIC.starts_with(written)
}

/// Writes a new identity and makes it durable: without it nothing in a store would be found again.
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

/// Whether a directory holds nothing but entries of these names and what its file system put there.
pub(super) fn is_blank(directory: &Path, known: &[&str]) -> io::Result<bool> {
    for entry in fs::read_dir(directory)? {
        let name = entry?.file_name();
        if name != LOST_FOUND && known.iter().all(|known| name != OsStr::new(known)) {
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
    fn an_identity_is_read() {
        assert_eq!(parse(&bytes(STORE_VERSION)), Ok([7; 16]));
    }

    #[test]
    fn a_newer_store_is_refused_by_its_version() {
        let mut longer = bytes(STORE_VERSION + 1);
        assert_eq!(
            parse(&longer),
            Err(NotAStore::Newer {
                found: 2,
                newest: STORE_VERSION
            })
        );
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
                Err(NotAStore::Torn {
                    found: cut,
                    expected: BYTES
                }),
                "{cut} bytes"
            );
        }
    }

    #[test]
    fn a_beginning_of_an_identity_with_zeros_up_to_its_size_is_torn() {
        let whole = bytes(STORE_VERSION);
        for written in 0..=STORE_MAGIC.len() {
            let mut left = whole.clone();
            left[written..].fill(0);
            let (found, expected) = (BYTES, BYTES);
            let torn = NotAStore::Torn { found, expected };
            assert_eq!(parse(&left), Err(torn), "{written} bytes");
        }
        assert!(!is_torn(&[0; BYTES + 1]), "another's");
    }

    #[test]
    fn anything_else_is_foreign() {
        for other in [
            vec![7; 16],
            vec![7; 17],
            vec![7; 33],
            bytes(0),
            [bytes(1), vec![0]].concat(),
        ] {
            let found = other.len();
            let expected = BYTES;
            assert_eq!(parse(&other), Err(NotAStore::Foreign { found, expected }));
        }
    }
}
