//! Removing sessions whose process is gone. Live ones are never touched.

use std::path::PathBuf;

use ringmark_ring::clean::{self, Uncounted};
pub use ringmark_ring::clean::{DEAD_BYTES_MAX, DeadSession};
use ringmark_ring::session_dir;

use crate::error::ReaderError;
use crate::sessions::directories::directories;
use crate::sessions::leases::DirectoryRemovals;

/// For each session directory, what was ever removed there before it was read.
#[must_use]
pub fn removals() -> Vec<DirectoryRemovals> {
    let places = directories().into_iter();
    places.filter_map(DirectoryRemovals::of).collect()
}

/// What a removal of dead sessions did.
#[derive(Debug, Default)]
pub struct Removal {
    /// The sessions that were removed.
    pub removed: Vec<DeadSession>,
    /// Why a directory was left alone: it is foreign, or its record of removals cannot be used.
    pub refused: Vec<ReaderError>,
}

/// Removes the oldest dead sessions of every session directory until the rest takes at most
/// `keep_bytes` there.
#[must_use]
pub fn remove_dead(keep_bytes: u64) -> Removal {
    remove_dead_in(&directories(), keep_bytes)
}

/// As [`remove_dead`], in these directories. One that does not exist has nothing to remove.
#[must_use]
pub fn remove_dead_in(directories: &[PathBuf], keep_bytes: u64) -> Removal {
    let mut removal = Removal::default();
    let is_there = |dir: &&PathBuf| std::fs::symlink_metadata(dir).is_ok();
    for directory in directories.iter().filter(is_there) {
        match session_dir::check(directory) {
            Ok(()) => match clean::remove_beyond(directory, keep_bytes) {
                Ok(gone) => removal.removed.extend(gone),
                Err(Uncounted { path, source }) => {
                    removal
                        .refused
                        .push(ReaderError::Uncounted { path, source });
                }
            },
            Err(error) => removal.refused.push(error.into()),
        }
    }
    removal
}
