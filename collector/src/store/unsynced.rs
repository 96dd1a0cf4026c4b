//! Files and names that were written and may not be on the disk.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::error::{StoreError, io_at};
use super::session_directories;

/// What was written and may not be on the disk.
#[derive(Debug, Default)]
pub(super) struct Unsynced {
    /// With the bytes of each before what was written to it.
    files: Vec<(Arc<File>, u64)>,
    /// New files that have no name yet, or whose names may not be there.
    names: Vec<PathBuf>,
}

impl Unsynced {
    /// Adds a file that is written, or was found with these bytes.
    pub(super) fn writing(&mut self, file: &Arc<File>, bytes: u64) {
        if !self.files.iter().any(|(known, _)| Arc::ptr_eq(known, file)) {
            self.files.push((file.clone(), bytes));
        }
    }

    pub(super) fn named(&mut self, path: PathBuf) {
        self.names.push(path);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.files.is_empty() && self.names.is_empty()
    }

    /// A new file gets its name when it is on the disk, and with it what was written before: after
    /// a loss of power only the last one that has a name may lack something.
    pub(super) fn sync(&self, root: &Path) -> Result<(), StoreError> {
        for (file, _) in &self.files {
            file.sync_data().map_err(io_at("sync", root))?;
        }
        for name in &self.names {
            fs::rename(session_directories::unnamed(name), name).map_err(io_at("name", name))?;
            sync_name(name, root).map_err(io_at("sync", name))?;
        }
        Ok(())
    }

    /// Cuts files to what they were before. What was found in a file stays.
    pub(super) fn cut(&self, root: &Path) -> Result<(), StoreError> {
        let mut cut = self
            .files
            .iter()
            .map(|(file, bytes)| match file.metadata() {
                Ok(about) if about.len() <= *bytes => Ok(()),
                _ => file.set_len(*bytes),
            });
        cut.try_for_each(|cut| cut.map_err(io_at("cut", root)))
    }

    /// Adds what was written later.
    pub(super) fn then(&mut self, later: Self) {
        let files = later.files.iter();
        files.for_each(|(file, bytes)| self.writing(file, *bytes));
        self.names.extend(later.names);
    }
}

/// Returns when a new file's name is on the disk.
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
