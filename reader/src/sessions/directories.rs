//! The session directories: this user's, and for root those of all users.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use ringmark_ring::session_dir;

/// The session directories to look into: this user's; for root, every user's below `/dev/shm`, too.
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

/// The [`directories`] and the parent in which new ones appear: a reader that watches these misses
/// no session.
pub(crate) fn watched() -> Vec<PathBuf> {
    let mut watched = directories();
    watched.push(PathBuf::from("/dev/shm"));
    watched
}

/// Directories named `ringmark-<uid>` below `parent`, of any owner.
pub(crate) fn users_directories(parent: &Path) -> impl Iterator<Item = PathBuf> {
    let is_directory = |path: &PathBuf| fs::symlink_metadata(path).is_ok_and(|m| m.is_dir());
    named_directories(parent).filter(is_directory)
}

/// Entries named `ringmark-<uid>` below `parent`, directories or not.
pub(crate) fn named_directories(parent: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    paths.filter(|path| uid_in_name(path).is_some())
}

/// The user id in the name of a session directory.
pub(crate) fn uid_in_name(directory: &Path) -> Option<u32> {
    let name = directory.file_name()?.to_str()?;
    name.strip_prefix("ringmark-")?.parse().ok()
}

/// Whether the owner of a directory is the user in its name. Another user could put one there.
fn is_owned_by_its_name(directory: &Path) -> bool {
    let owner = fs::symlink_metadata(directory)
        .ok()
        .map(|about| about.uid());
    owner.is_some() && owner == uid_in_name(directory)
}
