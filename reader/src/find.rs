//! Where sessions are: in session directories, and in what a process maps.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use ringmark_ring::identity::{self, Liveness};
use ringmark_ring::session_dir::{self, RING_FILE_ENDING};

use crate::error::{ReaderError, io_at};
use crate::notes;
use crate::session::{Access, Session};

/// A place where a ring file can be opened.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Found {
    /// Path of the file, or of a descriptor in `/proc`.
    pub path: PathBuf,
    /// The path is a descriptor in `/proc` that has to be followed.
    descriptor: bool,
    /// Owner of the directory it was found in: nobody else's file belongs there.
    owner: Option<u32>,
}

impl Found {
    /// The ring file at `path`; a link there is refused.
    #[must_use]
    pub fn at(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            descriptor: false,
            owner: None,
        }
    }

    pub(crate) fn open(&self, write: bool) -> Result<File, ReaderError> {
        let opened = if self.descriptor {
            fs::OpenOptions::new()
                .read(true)
                .write(write)
                .custom_flags(rustix::fs::OFlags::NONBLOCK.bits() as i32)
                .open(&self.path)
        } else {
            session_dir::open(&self.path, write)
        };
        let file = opened.map_err(|error| match self.foreign_owner() {
            Some(foreign) if error.kind() == io::ErrorKind::PermissionDenied => foreign,
            _ => io_at("open", &self.path)(error),
        })?;
        let owner = file.metadata().map_err(io_at("fstat", &self.path))?.uid();
        let own = session_dir::uid();
        // Root reads those of all users, but only where they belong.
        let expected = match self.owner {
            Some(directory) => directory,
            None if own == 0 => owner,
            None => own,
        };
        if owner != expected {
            let path = self.path.clone();
            return Err(ReaderError::ForeignOwner {
                path,
                owner,
                expected,
            });
        }
        Ok(file)
    }

    /// That a file in a directory is another user's than the directory, if it is.
    fn foreign_owner(&self) -> Option<ReaderError> {
        let expected = self.owner?;
        let owner = fs::symlink_metadata(&self.path).ok()?.uid();
        (owner != expected).then(|| ReaderError::ForeignOwner {
            path: self.path.clone(),
            owner,
            expected,
        })
    }
}

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

/// The [`directories`], and where others of them may come to be: who watches these misses none.
pub(crate) fn watched() -> Vec<PathBuf> {
    let mut watched = directories();
    watched.push(PathBuf::from("/dev/shm"));
    watched
}

/// `ringmark-<uid>` directories below `parent`, whoever owns them.
fn users_directories(parent: &Path) -> impl Iterator<Item = PathBuf> {
    let is_directory = |path: &PathBuf| fs::symlink_metadata(path).is_ok_and(|m| m.is_dir());
    named_directories(parent).filter(is_directory)
}

/// Whatever has such a name below `parent`.
fn named_directories(parent: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    paths.filter(|path| uid_in_name(path).is_some())
}

fn uid_in_name(directory: &Path) -> Option<u32> {
    let name = directory.file_name()?.to_str()?;
    name.strip_prefix("ringmark-")?.parse().ok()
}

/// Whether a directory is its user's, not one that somebody else put in its place. (In a user
/// namespace the numbers differ: there this is not asked.)
fn is_owned_by_its_name(directory: &Path) -> bool {
    let owner = fs::symlink_metadata(directory)
        .ok()
        .map(|about| about.uid());
    owner.is_some() && owner == uid_in_name(directory)
}

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
    let found = files.into_iter().map(|path| Found {
        path,
        descriptor: false,
        owner: Some(about.uid()),
    });
    Ok(found.collect())
}

/// What is wrong with those of the [`directories`] that [`all`] leaves out. For root also with what
/// somebody has put where another user's directory would be.
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

/// The same, and why some of the [`directories`] could not be looked into.
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

/// Whether the session's process is the one that we know as `pid`: a process also maps the files of
/// others, to read them, and a file can claim to be anybody's.
fn is_session_of(pid: u32, place: &Found) -> bool {
    let Ok(session) = Session::open_found(place, Access::Observe) else {
        // Whoever asks for it is told why.
        return true;
    };
    notes::pid_here(&session) == Some(pid) && session.liveness() == Liveness::Alive
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
    Some(Found {
        path,
        descriptor: true,
        owner: None,
    })
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

/// Process ids in `/proc`.
pub(crate) fn processes() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}
