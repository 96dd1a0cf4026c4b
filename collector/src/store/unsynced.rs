//! Files and names that were written and may not be durable.
//!
//! New files get their names here, in the order in which they were begun, each once it is durable.
//! So after a power loss only the last file with a name may lack something.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use super::error::{StoreError, io_at};
use super::session_directories;

/// How far syncing a session is.
#[derive(Debug, Default)]
pub(super) struct SyncState {
    unsynced: Unsynced,
    /// A sync failed: nothing can be added, and what is not durable must go.
    has_failed: bool,
    /// Held by the thread that syncs the session.
    turn: Arc<Mutex<()>>,
}

impl SyncState {
    /// Adds a file that is being written, or was found; it has `bytes_before` bytes now.
    pub(super) fn add_file(&mut self, file: &Arc<File>, bytes_before: u64) {
        self.unsynced.add_file(file, bytes_before);
    }

    /// Adds the name that a new file will get.
    pub(super) fn add_name(&mut self, path: PathBuf) {
        self.unsynced.names.push(path);
    }

    /// The lock of the thread that syncs the session.
    pub(super) fn turn(&self) -> Arc<Mutex<()>> {
        self.turn.clone()
    }

    /// Whether anything is to be synced.
    pub(super) fn has_unsynced(&self) -> bool {
        !self.unsynced.is_empty()
    }

    /// Whether a sync failed.
    pub(super) fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// Refuses any use of a session whose sync failed.
    ///
    /// # Errors
    /// It did; `directory` is where the session lies.
    pub(super) fn check(&self, directory: &Path) -> Result<(), StoreError> {
        if !self.has_failed {
            return Ok(());
        }
        let source = io::Error::other("a sync failed, it is found again");
        Err(io_at("use", directory)(source))
    }

    /// Takes what is to be synced now.
    pub(super) fn take(&mut self) -> Unsynced {
        std::mem::take(&mut self.unsynced)
    }

    /// Takes note that a sync of `taken` failed: neither that nor what came since is durable.
    pub(super) fn fail(&mut self, mut taken: Unsynced) {
        taken.append(self.take());
        self.unsynced = taken;
        self.has_failed = true;
    }

    /// Cuts the files back to what is durable.
    ///
    /// # Errors
    /// A file cannot be cut.
    pub(super) fn cut(&self, root: &Path) -> Result<(), StoreError> {
        self.unsynced.cut(root)
    }
}

/// What was written and may not be durable.
#[derive(Debug, Default)]
pub(super) struct Unsynced {
    files: Vec<UnsyncedFile>,
    /// The final names of new files, which they do not have yet.
    names: Vec<PathBuf>,
}

/// A file that was written.
#[derive(Debug)]
struct UnsyncedFile {
    file: Arc<File>,
    /// Its first bytes that are durable, or were found: what is cut back to if a sync fails.
    bytes_before: u64,
}

impl Unsynced {
    fn add_file(&mut self, file: &Arc<File>, bytes_before: u64) {
        let is_it = |known: &UnsyncedFile| Arc::ptr_eq(&known.file, file);
        if !self.files.iter().any(is_it) {
            let file = file.clone();
            self.files.push(UnsyncedFile { file, bytes_before });
        }
    }

    /// Whether everything is durable.
    pub(super) fn is_empty(&self) -> bool {
        self.files.is_empty() && self.names.is_empty()
    }

    /// Makes the files durable, then gives new ones their names.
    ///
    /// # Errors
    /// What `fsync` or `rename` said.
    pub(super) fn sync(&self, root: &Path) -> Result<(), StoreError> {
        for written in &self.files {
            written.file.sync_data().map_err(io_at("sync", root))?;
        }
        for name in &self.names {
            fs::rename(session_directories::unnamed(name), name).map_err(io_at("name", name))?;
            sync_name(name, root).map_err(io_at("sync", name))?;
        }
        Ok(())
    }

    /// Cuts the files back to what they held before. What was found in a file stays.
    ///
    /// # Errors
    /// A file cannot be cut.
    fn cut(&self, root: &Path) -> Result<(), StoreError> {
        let mut cut = self.files.iter().map(|written| {
            let bytes = written.bytes_before;
            match written.file.metadata() {
                Ok(about) if about.len() <= bytes => Ok(()),
                _ => written.file.set_len(bytes),
            }
        });
        cut.try_for_each(|cut| cut.map_err(io_at("cut", root)))
    }

    /// Adds what was written later than this.
    fn append(&mut self, later: Self) {
        for written in &later.files {
            self.add_file(&written.file, written.bytes_before);
        }
        self.names.extend(later.names);
    }
}

/// Makes a new file's name durable, and those of the directories above it.
fn sync_name(path: &Path, root: &Path) -> io::Result<()> {
    let mut directory = path.parent();
    while let Some(here) = directory {
        File::open(here)?.sync_all()?;
        if here == root {
            break;
        }
        directory = here.parent();
    }
    Ok(())
}
