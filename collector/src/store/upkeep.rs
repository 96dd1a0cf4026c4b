//! What people do with a store by hand: they remove what a host sent.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ringmark_decoder::store as files;

use super::error::{StoreError, io_at};
use super::free_space::FreeSpace;
use super::identity::Identity;
use super::session_directories;
use super::usage::{check_is_store, place};

/// What was removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Removed {
    /// Number of files.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Bytes that are free on a store's file system.
///
/// # Errors
/// Those of `statvfs`.
pub fn free_bytes(root: &Path) -> io::Result<u64> {
    FreeSpace::of(root).map(|space| space.free_bytes)
}

/// A store that no collector uses while this is there.
#[derive(Debug)]
pub struct IdleStore {
    root: PathBuf,
    _identity: Identity,
}

impl IdleStore {
    /// Takes a store.
    ///
    /// # Errors
    /// It is no store, or a collector uses it.
    pub fn take(root: &Path) -> Result<Self, StoreError> {
        check_is_store(root)?;
        Ok(Self {
            root: root.to_owned(),
            _identity: Identity::take(root, Duration::ZERO)?,
        })
    }

    /// Removes all that a host sent: segments, their indexes, what was cut off them, and what was not
    /// durable yet. Other files in the host's directories stay.
    ///
    /// # Errors
    /// A file cannot be removed; those before it are gone.
    pub fn remove_host(&self, host: &str) -> Result<Removed, StoreError> {
        let is_its = |file: &Path| is_of_store(file) && place(file)[0] == host;
        let mut removed = Removed::default();
        let found = files::files_of_store(&self.root, is_its);
        for file in found.map_err(io_at("read", &self.root))? {
            remove(&file, &mut removed)?;
            session_directories::remove_empty(&file, &self.root);
        }
        Ok(removed)
    }
}

/// Whether a collector made a file, by its name.
fn is_of_store(file: &Path) -> bool {
    let is = |ending: &&str| files::parse_with(file, ending).is_some();
    [".rmk", ".idx", ".new", ".idx.new"].iter().any(is) || files::is_copy(file)
}

fn remove(file: &Path, removed: &mut Removed) -> Result<(), StoreError> {
    let about = fs::symlink_metadata(file).map_err(io_at("stat", file))?;
    fs::remove_file(file).map_err(io_at("remove", file))?;
    removed.files += 1;
    removed.bytes += about.len();
    Ok(())
}
