//! Removing sessions whose process is gone: oldest first, beyond a cap.

use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use ringmark_format::attribute::{Attributes, tag};
use ringmark_format::session::SessionHeader;

use crate::clock;
use crate::identity::{self, Liveness};
use crate::ring_file::Geometry;
use crate::session_dir;

/// Bytes that the dead sessions of one user may keep in a session directory.
pub const DEAD_BYTES_MAX: u64 = 64 << 20;

/// A session whose process is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadSession {
    /// Its ring file.
    pub path: PathBuf,
    /// Allocated bytes.
    pub bytes: u64,
    /// Time of the last change of the file, in ns since 1970. Writes through the map are none: it is
    /// about when the session started.
    pub changed_ns: i128,
    /// A recorder started its program and comes for it (tag `run=…`), unless it was killed.
    pub is_awaited: bool,
}

/// Dead sessions in `dir`, in no order. Files that are no ring files, that belong to somebody else
/// than the directory, or that a foreign process holds, are left out.
#[must_use]
pub fn dead_sessions(dir: &Path) -> Vec<DeadSession> {
    let files = session_dir::ring_files(dir).unwrap_or_default();
    let Ok(owner) = fs::symlink_metadata(dir).map(|about| about.uid()) else {
        return Vec::new();
    };
    let dead = files
        .into_iter()
        .filter_map(|path| dead_session(path, owner));
    dead.collect()
}

fn dead_session(path: PathBuf, owner: u32) -> Option<DeadSession> {
    let file = session_dir::open(&path, true).ok()?;
    let about = file.metadata().ok()?;
    if about.uid() != owner {
        return None;
    }
    let header = crate::ring_file::read_geometry(&file)
        .map(|g: Geometry| g.header)
        .ok()?;
    let dead = identity::liveness(&header, &file) == Liveness::Dead;
    dead.then(|| DeadSession {
        is_awaited: is_awaited(&header, &file, about.mtime()),
        path,
        bytes: about.blocks() * 512,
        changed_ns: i128::from(about.mtime()) * 1_000_000_000 + i128::from(about.mtime_nsec()),
    })
}

/// A recorder that has not come by then was killed.
const AWAITED_SECONDS: i64 = 3600;

fn is_awaited(header: &SessionHeader, file: &fs::File, changed_s: i64) -> bool {
    let now = (clock::realtime_ns() / 1_000_000_000) as i64;
    let mut bytes = vec![0; header.attributes_bytes.min(1 << 20) as usize];
    let read = file.read_exact_at(&mut bytes, SessionHeader::BYTES as u64);
    let mut attributes = Attributes::new(&bytes);
    now - changed_s < AWAITED_SECONDS
        && read.is_ok()
        && attributes.any(|a| a.tag == tag::TAG && a.value.starts_with(b"run="))
}

/// Removes the oldest dead sessions until the rest takes at most `keep_bytes`; returns the removed.
pub fn remove_beyond(dir: &Path, keep_bytes: u64) -> Vec<DeadSession> {
    remove_oldest(dead_sessions(dir), keep_bytes)
}

fn remove_oldest(mut dead: Vec<DeadSession>, keep_bytes: u64) -> Vec<DeadSession> {
    let mut total: u64 = dead.iter().map(|d| d.bytes).sum();
    let mut removed = Vec::new();
    while total > keep_bytes {
        let oldest = (0..dead.len()).min_by_key(|i| (dead[*i].changed_ns, &dead[*i].path));
        let Some(session) = oldest.map(|index| dead.swap_remove(index)) else {
            break;
        };
        if fs::remove_file(&session.path).is_ok() {
            total -= session.bytes;
            removed.push(session);
        }
    }
    removed
}

/// What a starting session of `own_bytes` does with sessions that no recorder comes for: looks
/// closer only if the files would exceed the cap together with it, so that the dead stay under the
/// cap when it dies, too. Returns the number of sessions removed.
pub fn before_start(dir: &Path, own_bytes: u64) -> usize {
    let mut total = 0;
    for path in session_dir::entries(dir).unwrap_or_default() {
        total += fs::symlink_metadata(&path).map_or(0, |about| about.blocks() * 512);
        remove_leftover(&path);
    }
    if total.saturating_add(own_bytes) <= DEAD_BYTES_MAX {
        0
    } else {
        let mut dead = dead_sessions(dir);
        dead.retain(|session| !session.is_awaited);
        remove_oldest(dead, DEAD_BYTES_MAX / 2).len()
    }
}

/// No start takes longer, also where its process is out of our sight.
const LEFTOVER_SECONDS: i64 = 60;

/// Files that a process left behind when it died while starting, or said why it is off, and what
/// its streamer said of it.
fn remove_leftover(path: &Path) {
    let name = path
        .file_name()
        .map(|n| n.to_string_lossy())
        .unwrap_or_default();
    let endings = [".starting", ".off", ".stream", ".stream.new"];
    if !endings.iter().any(|ending| name.ends_with(ending)) {
        return;
    }
    let pid: String = name.chars().take_while(char::is_ascii_digit).collect();
    let gone = !pid.is_empty() && !Path::new("/proc").join(&pid).exists();
    // In another pid namespace the pid says nothing: only what is old is left over.
    let now = (clock::realtime_ns() / 1_000_000_000) as i64;
    let old = fs::symlink_metadata(path).is_ok_and(|about| now - about.mtime() > LEFTOVER_SECONDS);
    if gone && old {
        let _ = fs::remove_file(path);
    }
}
