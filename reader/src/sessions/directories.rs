//! The session directories of this user, and for root of all users.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use ringmark_ring::session_dir;

/// Directories to look into: this user's; for root, every user's below `/dev/shm`, too.
#[must_use]
pub fn directories() -> Vec<PathBuf> {
    let own = session_dir::path();
    let mut found = vec![own.clone()];
    if session_dir::uid() == 0 && std::env::var_os("RINGMARK_DIR").is_none() {
        let others = users_directories(Path::new("/dev/shm"));
        found.extend(others.filter(|d| *d != own && is_owned_by_its_name(d)));
    }
    found
}

/// The [`directories`], and where others of them may come to be: a reader that watches these misses
/// none.
pub(crate) fn watched() -> Vec<PathBuf> {
    let mut watched = directories();
    watched.push(PathBuf::from("/dev/shm"));
    watched
}

/// `ringmark-<uid>` directories below `parent`, of any owner.
pub(crate) fn users_directories(parent: &Path) -> impl Iterator<Item = PathBuf> {
    let is_directory = |path: &PathBuf| fs::symlink_metadata(path).is_ok_and(|m| m.is_dir());
    named_directories(parent).filter(is_directory)
}

/// Entries with such a name below `parent`.
pub(crate) fn named_directories(parent: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    paths.filter(|path| uid_in_name(path).is_some())
}

/// The user that the name of a session directory tells.
pub(crate) fn uid_in_name(directory: &Path) -> Option<u32> {
    let name = directory.file_name()?.to_str()?;
    name.strip_prefix("ringmark-")?.parse().ok()
}

/// Whether a directory is its user's, not one that another user put in its place. (In a user
/// namespace the numbers differ: there this is not asked.)
fn is_owned_by_its_name(directory: &Path) -> bool {
    let owner = fs::symlink_metadata(directory)
        .ok()
        .map(|about| about.uid());
    owner.is_some() && owner == uid_in_name(directory)
}
