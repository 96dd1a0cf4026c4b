//! Finds ring files: in session directories, and among the files that a process maps.
//!
//! Nothing found is trusted: [`FoundSession`] carries what must be true of the file, and opening checks
//! it.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use ringmark_format::session::ProcessId;
use ringmark_ring::identity::{self, Liveness};
use ringmark_ring::session_dir::{self, RING_FILE_ENDING};

use crate::error::{ReaderError, io_at};
pub use crate::sessions::directories::directories;
use crate::sessions::directories::{named_directories, uid_in_name, users_directories};
use crate::sessions::file_id::FileId;
pub use crate::sessions::found_session::FoundSession;
use crate::sessions::notes;
use crate::sessions::pids::processes;
use crate::sessions::session::{Access, Session};

/// The ring files in one directory, those of dead sessions included. A directory that does not
/// exist has none.
///
/// # Errors
/// The directory is not safe (see [`session_dir::check`]) or cannot be read.
pub fn in_directory(directory: &Path) -> Result<Vec<FoundSession>, ReaderError> {
    let about = match fs::symlink_metadata(directory) {
        Ok(about) => about,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(io_at("stat", directory)(error)),
    };
    session_dir::check(directory)?;
    let files = session_dir::ring_files(directory).map_err(io_at("read", directory))?;
    let found = files.into_iter();
    Ok(found
        .map(|path| FoundSession::in_directory(path, about.uid()))
        .collect())
}

/// Why [`all`] leaves directories out. For root also why a file or directory with the name of
/// another user's session directory is none.
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

/// What is wrong with a file or directory that has the name of a user's session directory.
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

/// The ring files in all [`directories`], without those that are [`refused`].
#[must_use]
pub fn all() -> Vec<FoundSession> {
    look().files
}

/// What the session directories hold.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    /// The ring files.
    pub(crate) files: Vec<FoundSession>,
    /// Why a directory could not be read.
    pub(crate) errors: Vec<ReaderError>,
}

/// Reads all [`directories`].
pub(crate) fn look() -> Listing {
    let mut listing = Listing::default();
    for directory in directories() {
        match in_directory(&directory) {
            Ok(found) => listing.files.extend(found),
            Err(error) => listing.errors.push(error),
        }
    }
    listing
}

/// The sessions of a process, by its pid in our pid namespace, the first to start first: live ones,
/// or those of the latest dead process of that pid if there are no others. They are in the session
/// directories, or mapped by the process: files without a name, or in a directory of its own.
///
/// # Errors
/// There is none. The error says whether the process exists, and whether we may look into it.
pub fn by_pid(pid: u32) -> Result<Vec<FoundSession>, ReaderError> {
    let mut found = of_pid_in_directories(pid);
    let seen = in_process(pid);
    found.add_mapped(pid, seen.iter().flatten());
    let found = found.of_one_process();
    if !found.is_empty() {
        return Ok(found);
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

/// A ring file whose session names a pid.
#[derive(Debug)]
struct FileOfPid {
    place: FoundSession,
    file: FileId,
    process: Option<ProcessId>,
    started_ns: u64,
}

impl FileOfPid {
    fn new(place: FoundSession, session: &Session) -> Self {
        let header = session.header();
        Self {
            place,
            file: session.file_id(),
            process: header.process(),
            started_ns: header.real_zero_ns,
        }
    }
}

/// Ring files whose sessions name one pid, each file once.
#[derive(Debug, Default)]
struct FilesOfPid {
    live: Vec<FileOfPid>,
    dead: Vec<FileOfPid>,
}

impl FilesOfPid {
    /// Adds the sessions of the process with the number `pid` here among the files that it maps. A
    /// process may also map the files of others, to read them, and a file can claim to be any
    /// process's.
    fn add_mapped<'a>(&mut self, pid: u32, places: impl Iterator<Item = &'a FoundSession>) {
        let mut unopened = Vec::new();
        for place in places {
            let Ok(session) = Session::open_found(place, Access::Observe) else {
                unopened.push(place.clone());
                continue;
            };
            let is_own = session.pid_here() == Some(pid) && session.liveness() == Liveness::Alive;
            let file = session.file_id();
            if is_own && !self.live.iter().any(|known| known.file == file) {
                self.live.push(FileOfPid::new(place.clone(), &session));
            }
        }
        if self.live.is_empty() {
            // The caller opens them, too, and gets the error.
            self.live
                .extend(unopened.into_iter().map(|place| FileOfPid {
                    place,
                    file: FileId::default(),
                    process: None,
                    started_ns: 0,
                }));
        }
    }

    /// Those of one process: next to a live session, a dead one belonged to an earlier process of
    /// the same number.
    fn of_one_process(self) -> Vec<FoundSession> {
        let mut files = self.live;
        if files.is_empty() {
            files = self.dead;
            let latest = files.iter().max_by_key(|file| file.started_ns);
            let latest = latest.and_then(|file| file.process);
            files.retain(|file| file.process == latest);
        }
        files.sort_by(|a, b| (a.started_ns, &a.place.path).cmp(&(b.started_ns, &b.place.path)));
        files.into_iter().map(|file| file.place).collect()
    }
}

fn of_pid_in_directories(pid: u32) -> FilesOfPid {
    let own_namespace = identity::own_pid_namespace();
    let mut found = FilesOfPid::default();
    for place in all() {
        let Ok(session) = Session::open_found(&place, Access::Observe) else {
            continue;
        };
        let header = session.header();
        if header.pid == pid && header.pid_namespace == own_namespace {
            let file = FileOfPid::new(place, &session);
            match session.process_ended() {
                true => found.dead.push(file),
                false => found.live.push(file),
            }
        }
    }
    found
}

/// The ring files that a process maps. They are opened through the root of the process, or through
/// its descriptors if they have no name there (memfd, deleted).
///
/// # Errors
/// `/proc/PID/maps` cannot be read.
pub fn in_process(pid: u32) -> io::Result<Vec<FoundSession>> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps"))?;
    let mut found: Vec<FoundSession> = Vec::new();
    for mapped in maps.lines().filter_map(mapped_ring) {
        let place = place_of(pid, &mapped);
        if let Some(place) = place.filter(|p| !found.contains(p)) {
            found.push(place);
        }
    }
    Ok(found)
}

/// A ring file in a line of `/proc/PID/maps`.
struct MappedFile {
    /// The addresses that it is mapped at, as the kernel writes them.
    range: String,
    inode: u64,
    /// Its path as the process sees it.
    path: String,
}

fn mapped_ring(line: &str) -> Option<MappedFile> {
    let mut fields = line.split_ascii_whitespace();
    let range = fields.next()?.to_owned();
    let inode = fields.nth(3)?.parse().ok()?;
    let path = line.get(line.find('/')?..)?.to_owned();
    let name = path.trim_end_matches(" (deleted)");
    let is_ring = name.ends_with(RING_FILE_ENDING);
    is_ring.then_some(MappedFile { range, inode, path })
}

/// Where a mapped ring file can be opened: its name, else a descriptor of it, else the mapping. Its name is that in our own
/// root where that leads to the same file: it is there when the process has ended, too.
fn place_of(pid: u32, mapped: &MappedFile) -> Option<FoundSession> {
    let named = PathBuf::from(format!("/proc/{pid}/root{}", mapped.path));
    let is_it = |path: &Path| fs::metadata(path).is_ok_and(|m| m.ino() == mapped.inode);
    if let Ok(about) = fs::metadata(&named)
        && about.ino() == mapped.inode
    {
        let ours = Path::new(&mapped.path);
        let is_same = fs::metadata(ours).is_ok_and(|m| FileId::of(&m) == FileId::of(&about));
        let place = if is_same { ours } else { &named };
        return Some(FoundSession::at(place));
    }
    let through = PathBuf::from(format!("/proc/{pid}/map_files/{}", mapped.range));
    let mut descriptors = fs::read_dir(format!("/proc/{pid}/fd")).ok()?.flatten();
    let path = descriptors
        .find(|fd| is_it(&fd.path()))
        .map(|fd| fd.path())
        .or_else(|| is_it(&through).then_some(through))?;
    Some(FoundSession::descriptor(path))
}

/// The ring files in the `/dev/shm` of other mount namespaces, each looked into through one of its
/// processes. Only root may.
#[must_use]
pub fn in_other_mounts() -> Vec<FoundSession> {
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

/// Number of the mount namespace of a process: of a pid, or of `self`.
fn mount_namespace(who: &str) -> Option<u64> {
    fs::metadata(format!("/proc/{who}/ns/mnt"))
        .ok()
        .map(|m| m.ino())
}

#[cfg(test)]
mod tests {
    use super::mapped_ring;

    #[test]
    fn only_maps_of_ring_files_are_looked_into() {
        let path = |name: &str| {
            let line = format!("7f00aa000000-7f00ab000000 rw-s 00000000 00:01 4711      {name}");
            mapped_ring(&line).map(|mapped| mapped.path)
        };
        for ring in [
            "/dev/shm/ringmark-0/12-a1b2c3d4.ring",
            "/dev/shm/ringmark-0/12-a1b2c3d4.ring (deleted)",
            "/memfd:ringmark.ring (deleted)",
        ] {
            assert_eq!(path(ring).as_deref(), Some(ring));
        }
        for other in [
            "/memfd:ringmark-trampolines (deleted)",
            "/memfd:ringmark (deleted)",
            "/usr/lib/libringmark_functions.so",
        ] {
            assert_eq!(path(other), None, "{other}");
        }
    }
}
