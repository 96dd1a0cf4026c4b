//! Where sessions are: in session directories, and in what a process maps.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use ringmark_ring::identity::{self, Liveness};
use ringmark_ring::session_dir::{self, RING_FILE_ENDING};

use crate::error::{ReaderError, io_at};
pub use crate::sessions::directories::directories;
use crate::sessions::directories::{named_directories, uid_in_name, users_directories};
pub use crate::sessions::found::Found;
use crate::sessions::notes;
use crate::sessions::pids::processes;
use crate::sessions::session::{Access, Session};

/// Ring files in one directory, dead sessions included. A directory that does not exist has none.
///
/// # Errors
/// The directory is not safe, or cannot be read.
pub fn in_directory(directory: &Path) -> Result<Vec<Found>, ReaderError> {
    let about = match fs::symlink_metadata(directory) {
        Ok(about) => about,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(io_at("stat", directory)(error)),
    };
    session_dir::check(directory)?;
    let files = session_dir::ring_files(directory).map_err(io_at("read", directory))?;
    let found = files.into_iter();
    Ok(found
        .map(|path| Found::in_directory(path, about.uid()))
        .collect())
}

/// What is wrong with those of the [`directories`] that [`all`] leaves out; for root also with what
/// stands where another user's directory would be.
#[must_use]
pub fn refused() -> Vec<ReaderError> {
    let looked_at = directories();
    let own = looked_at.iter().map(|directory| in_directory(directory));
    let mut refused: Vec<_> = own.filter_map(Result::err).collect();
    if session_dir::uid() == 0 && std::env::var_os("RINGMARK_DIR").is_none() {
        let others = named_directories(Path::new("/dev/shm"));
        let left_out = others.filter(|directory| !looked_at.contains(directory));
        refused.extend(left_out.filter_map(|directory| wrong_with(&directory)));
    }
    refused
}

/// What is wrong with something that has the name of a user's directory.
fn wrong_with(path: &Path) -> Option<ReaderError> {
    if let Err(error) = session_dir::check(path) {
        return Some(error.into());
    }
    let owner = fs::symlink_metadata(path).ok()?.uid();
    let expected = uid_in_name(path)?;
    (owner != expected).then(|| ReaderError::ForeignOwner {
        path: path.to_owned(),
        owner,
        expected,
    })
}

/// Ring files in all [`directories`]; what is [`refused`] is left out.
#[must_use]
pub fn all() -> Vec<Found> {
    look().0
}

/// As [`all`], and why some of the [`directories`] could not be looked into.
pub(crate) fn look() -> (Vec<Found>, Vec<ReaderError>) {
    let mut seen = (Vec::new(), Vec::new());
    for directory in directories() {
        match in_directory(&directory) {
            Ok(found) => seen.0.extend(found),
            Err(error) => seen.1.push(error),
        }
    }
    seen
}

/// Sessions of a process, by the caller's number for it: live ones, else dead ones.
///
/// # Errors
/// There is none; the error says whether the process exists, and whether we may look into it.
pub fn by_pid(pid: u32) -> Result<Vec<Found>, ReaderError> {
    let mut found = of_pid_in_directories(pid);
    if found.iter().any(|(alive, _)| *alive) {
        return Ok(of_one_process(found));
    }
    let seen = in_process(pid);
    if let Ok(more) = &seen {
        let own = more.iter().filter(|place| is_session_of(pid, place));
        found.extend(own.map(|place| (true, place.clone())));
    }
    if !found.is_empty() {
        return Ok(of_one_process(found));
    }
    match seen {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            Err(ReaderError::NotPermitted {
                pid,
                file: "maps",
                reason: notes::who_may(pid),
            })
        }
        Err(_) => Err(ReaderError::NoSuchProcess { pid }),
        Ok(_) => Err(ReaderError::NotTraced {
            pid,
            reason: notes::own_note(pid).map(|note| note.reason),
        }),
    }
}

/// Whether the session's process has the number `pid` here: a process also maps the files of
/// others, to read them, and a file can claim to be any process's.
fn is_session_of(pid: u32, place: &Found) -> bool {
    let Ok(session) = Session::open_found(place, Access::Observe) else {
        // The caller opens it again, and is told why.
        return true;
    };
    session.pid_here() == Some(pid) && session.liveness() == Liveness::Alive
}

fn of_one_process(mut found: Vec<(bool, Found)>) -> Vec<Found> {
    // A dead session of the same number belonged to another process.
    if found.iter().any(|(alive, _)| *alive) {
        found.retain(|(alive, _)| *alive);
    }
    found.into_iter().map(|(_, place)| place).collect()
}

fn of_pid_in_directories(pid: u32) -> Vec<(bool, Found)> {
    let own_namespace = identity::own_pid_namespace();
    let mut found = Vec::new();
    for place in all() {
        let Ok(session) = Session::open_found(&place, Access::Observe) else {
            continue;
        };
        let header = session.header();
        if header.pid == pid && header.pid_namespace == own_namespace {
            found.push((!session.process_ended(), place));
        }
    }
    found
}

/// Ring files that a process maps, opened through its root, or through its descriptors if they
/// have no name there (memfd, deleted).
///
/// # Errors
/// `/proc/PID/maps` cannot be read.
pub fn in_process(pid: u32) -> io::Result<Vec<Found>> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps"))?;
    let mut found: Vec<Found> = Vec::new();
    for mapped in maps.lines().filter_map(mapped_ring) {
        let place = place_of(pid, &mapped);
        if let Some(place) = place.filter(|p| !found.contains(p)) {
            found.push(place);
        }
    }
    Ok(found)
}

/// One ring file in a line of `/proc/PID/maps`.
struct Mapped {
    range: String,
    inode: u64,
    path: String,
}

fn mapped_ring(line: &str) -> Option<Mapped> {
    let mut fields = line.split_ascii_whitespace();
    let range = fields.next()?.to_owned();
    let inode = fields.nth(3)?.parse().ok()?;
    let path = line.get(line.find('/')?..)?.to_owned();
    let name = path.trim_end_matches(" (deleted)");
    let is_ring = name.ends_with(RING_FILE_ENDING) || name.starts_with("/memfd:ringmark");
    is_ring.then_some(Mapped { range, inode, path })
}

fn place_of(pid: u32, mapped: &Mapped) -> Option<Found> {
    let named = PathBuf::from(format!("/proc/{pid}/root{}", mapped.path));
    let is_it = |path: &Path| fs::metadata(path).is_ok_and(|m| m.ino() == mapped.inode);
    if is_it(&named) {
        return Some(Found::at(&named));
    }
    let through = PathBuf::from(format!("/proc/{pid}/map_files/{}", mapped.range));
    let mut descriptors = fs::read_dir(format!("/proc/{pid}/fd")).ok()?.flatten();
    let path = descriptors
        .find(|fd| is_it(&fd.path()))
        .map(|fd| fd.path())
        .or_else(|| is_it(&through).then_some(through))?;
    Some(Found::descriptor(path))
}

/// Ring files in `/dev/shm` as processes of other mount namespaces see it. For root.
#[must_use]
pub fn in_other_mounts() -> Vec<Found> {
    let mut mounts = std::collections::HashSet::new();
    mounts.extend(mount_namespace("self"));
    let mut found = Vec::new();
    for pid in processes() {
        let who = pid.to_string();
        if !mount_namespace(&who).is_some_and(|mount| mounts.insert(mount)) {
            continue;
        }
        let shm = PathBuf::from(format!("/proc/{pid}/root/dev/shm"));
        for directory in users_directories(&shm) {
            found.extend(in_directory(&directory).unwrap_or_default());
        }
    }
    found
}

fn mount_namespace(who: &str) -> Option<u64> {
    fs::metadata(format!("/proc/{who}/ns/mnt"))
        .ok()
        .map(|m| m.ino())
}
