//! Where sessions are: in session directories, and in what a process maps.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use ringmark_ring::identity;
use ringmark_ring::session_dir::{self, RING_FILE_ENDING};

use crate::error::{ReaderError, io_at};
use crate::session::{Access, Session};

/// A place where a ring file can be opened.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Found {
    /// Path of the file, or of a descriptor in `/proc`.
    pub path: PathBuf,
    /// The path is a descriptor in `/proc` that has to be followed.
    descriptor: bool,
}

impl Found {
    /// The ring file at `path`; a link there is refused.
    #[must_use]
    pub fn at(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            descriptor: false,
        }
    }

    pub(crate) fn open(&self, write: bool) -> io::Result<File> {
        if self.descriptor {
            fs::OpenOptions::new()
                .read(true)
                .write(write)
                .open(&self.path)
        } else {
            session_dir::open(&self.path, write)
        }
    }
}

/// Directories to look into: this user's; for root, every user's below `/dev/shm`, too.
#[must_use]
pub fn directories() -> Vec<PathBuf> {
    let own = session_dir::path();
    let mut found = vec![own.clone()];
    if session_dir::uid() == 0 && std::env::var_os("RINGMARK_DIR").is_none() {
        found.extend(users_directories(Path::new("/dev/shm")).filter(|d| *d != own));
    }
    found
}

/// `ringmark-<uid>` directories below `parent` that belong to that uid.
pub(crate) fn users_directories(parent: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        let name = entry.file_name();
        let uid: u32 = name.to_str()?.strip_prefix("ringmark-")?.parse().ok()?;
        let about = fs::symlink_metadata(entry.path()).ok()?;
        (about.is_dir() && about.uid() == uid).then(|| entry.path())
    })
}

/// Ring files in one directory, dead sessions included. A directory that does not exist has none.
///
/// # Errors
/// The directory is not safe, or cannot be read.
pub fn in_directory(directory: &Path) -> Result<Vec<Found>, ReaderError> {
    if !directory.exists() {
        return Ok(Vec::new());
    }
    session_dir::check(directory)?;
    let files = session_dir::ring_files(directory).map_err(io_at("read", directory))?;
    Ok(files.iter().map(|path| Found::at(path)).collect())
}

/// Ring files in all [`directories`]; directories that are refused are left out.
#[must_use]
pub fn all() -> Vec<Found> {
    let mut found = Vec::new();
    for directory in directories() {
        found.extend(in_directory(&directory).unwrap_or_default());
    }
    found
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
        found.extend(more.iter().map(|place| (true, place.clone())));
    }
    if !found.is_empty() {
        return Ok(of_one_process(found));
    }
    match seen {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            Err(ReaderError::NotPermitted {
                pid,
                action: "reading /proc/PID/maps",
            })
        }
        Err(_) => Err(ReaderError::NoSuchProcess { pid }),
        Ok(_) => Err(ReaderError::NotTraced { pid }),
    }
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
    })
}

/// Whether any process that we can look into maps this file.
pub(crate) fn is_mapped_by_any(file: &File) -> bool {
    let Ok(inode) = file.metadata().map(|m| m.ino()) else {
        return false;
    };
    processes()
        .filter(|pid| *pid != std::process::id())
        .filter_map(|pid| fs::read_to_string(format!("/proc/{pid}/maps")).ok())
        .any(|maps| {
            maps.lines()
                .filter_map(mapped_ring)
                .any(|mapped| mapped.inode == inode)
        })
}

/// Process ids in `/proc`.
pub(crate) fn processes() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}
