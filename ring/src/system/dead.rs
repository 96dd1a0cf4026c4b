//! Finding sessions whose process is gone, by process and by age.

use std::collections::BinaryHeap;
use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use ringmark_format::attribute::{Attributes, tag};
use ringmark_format::session::{ProcessId, SessionHeader};

use crate::system::clock;
use crate::system::identity::{self, Liveness};
use crate::system::ring_file::Geometry;
use crate::system::session_dir::{self, OpenFor, RING_FILE_ENDING};

/// A session whose process is gone, as it was found: it may be gone itself by now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadSession {
    /// Where its ring file lies.
    pub path: PathBuf,
    /// Allocated bytes: what its removal would free.
    pub bytes: u64,
    /// Time of the last change of the file, in ns since 1970. Stores through the map do not change
    /// it: it is about when the session started. Orders sessions by age.
    pub changed_ns: i128,
    /// A recorder started its program and comes for it (tag `run=…`), unless that was killed: an
    /// hour after the start it is no longer awaited.
    pub is_awaited: bool,
}

/// The dead sessions of one process: they are one trace, and go together.
pub(crate) type Group = Vec<DeadSession>;

/// Dead sessions in `dir`, in no order. Left out are files that are no ring files, that belong to
/// another user than the directory, or that cannot be opened.
#[must_use]
pub fn dead_sessions(dir: &Path) -> Vec<DeadSession> {
    let files = session_dir::ring_files(dir).unwrap_or_default();
    dead_among(dir, files).into_iter().flatten().collect()
}

/// What a look at a ring file found. Sorts by process, then by age; the path decides between equals,
/// so that the order is always the same.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Looked {
    process: Option<ProcessId>,
    changed_ns: i128,
    path: PathBuf,
    is_dead: bool,
    bytes: u64,
    is_awaited: bool,
}

impl From<Looked> for DeadSession {
    fn from(looked: Looked) -> Self {
        Self {
            path: looked.path,
            bytes: looked.bytes,
            changed_ns: looked.changed_ns,
            is_awaited: looked.is_awaited,
        }
    }
}

/// All of them in order. A heap's instructions are a tenth of those of `sort`, and each traced program
/// carries them.
fn in_order<T: Ord>(items: impl IntoIterator<Item = T>) -> Vec<T> {
    BinaryHeap::from_iter(items).into_sorted_vec()
}

/// The dead processes among these files of `dir`, the oldest first, and in each the oldest session
/// first. A process with a living session is not dead.
pub(crate) fn dead_among(dir: &Path, files: Vec<PathBuf>) -> Vec<Group> {
    let Ok(owner) = fs::symlink_metadata(dir).map(|about| about.uid()) else {
        return Vec::new();
    };
    let looked = in_order(files.into_iter().filter_map(|path| look_at(path, owner)));
    let mut processes: Vec<Vec<Looked>> = Vec::new();
    for session in looked {
        match processes.last_mut() {
            Some(process) if is_of(&session, process) => process.push(session),
            _ => processes.push(vec![session]),
        }
    }
    processes.retain(|sessions| sessions.iter().all(|session| session.is_dead));
    let ages = in_order(processes.iter().enumerate().map(|(place, sessions)| {
        let first = sessions.first();
        (
            first.map(|first| (first.changed_ns, first.path.clone())),
            place,
        )
    }));
    let group = |(_, place): (_, usize)| {
        let sessions = std::mem::take(&mut processes[place]);
        sessions.into_iter().map(DeadSession::from).collect()
    };
    ages.into_iter().map(group).collect()
}

/// Whether a session is of the process that has these.
///
/// A session whose process cannot be told from a later one of the same pid is alone: it could be
/// any process's.
fn is_of(session: &Looked, process: &[Looked]) -> bool {
    session.process.is_some() && process.iter().all(|other| other.process == session.process)
}

/// Opens a file and asks whether its session lives. `None`: it is no session of this owner.
fn look_at(path: PathBuf, owner: u32) -> Option<Looked> {
    let file = session_dir::open(&path, OpenFor::Writing).ok()?;
    let about = file.metadata().ok()?;
    if about.uid() != owner {
        return None;
    }
    let header = crate::system::ring_file::read_geometry(&file)
        .map(|g: Geometry| g.header)
        .ok()?;
    let is_dead = identity::liveness(&header, &file) == Liveness::Dead;
    Some(Looked {
        process: header.process(),
        changed_ns: i128::from(about.mtime()) * 1_000_000_000 + i128::from(about.mtime_nsec()),
        path,
        is_dead,
        bytes: about.blocks() * 512,
        is_awaited: is_dead && is_awaited(&header, &file, about.mtime()),
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

/// Most files that a starting program looks into.
const LOOKED_INTO_MAX: usize = 256;

/// Dead processes among these files, oldest first. Looks into [`LOOKED_INTO_MAX`] files at most: those
/// that are most likely dead, by the pid in the name, and the oldest of these.
pub(crate) fn oldest_dead(dir: &Path, files: Vec<PathBuf>) -> Vec<Group> {
    let is_ring = |path: &PathBuf| path.to_string_lossy().ends_with(RING_FILE_ENDING);
    let files = files.into_iter().filter(is_ring);
    let files = in_order(files.map(|path| (pid_in_name(&path), changed(&path), path)));
    let mut processes: Vec<Likely> = Vec::new();
    for (pid, changed, path) in files {
        match processes.last_mut() {
            Some(process) if process.pid == pid => process.files.push(path),
            _ => processes.push(Likely {
                is_there: is_there(&pid),
                changed,
                pid,
                files: vec![path],
            }),
        }
    }
    dead_among(dir, first_whole(in_order(processes), LOOKED_INTO_MAX))
}

/// A process by the pid in the names of its files. Sorts first what is most likely dead, then by the
/// age of its first file.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Likely {
    is_there: bool,
    changed: (i64, i64),
    pid: String,
    files: Vec<PathBuf>,
}

/// The files of the first processes, at most this number, and all files of each: a part of a process
/// would look like all of it.
fn first_whole(processes: Vec<Likely>, most: usize) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for process in processes {
        if !files.is_empty() && files.len() + process.files.len() > most {
            break;
        }
        files.extend(process.files);
    }
    // One process alone has more files: any of them are better than none.
    files.truncate(most);
    files
}

/// When the file was last changed, in seconds and ns.
fn changed(path: &Path) -> (i64, i64) {
    fs::symlink_metadata(path).map_or((0, 0), |about| (about.mtime(), about.mtime_nsec()))
}

/// The pid that starts a file's name; empty: there is none.
pub(crate) fn pid_in_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.chars().take_while(char::is_ascii_digit).collect()
}

/// Whether there is a process with this number, taken from a file's name. A hint: in another pid
/// namespace it says nothing.
pub(crate) fn is_there(pid: &str) -> bool {
    !pid.is_empty() && Path::new("/proc").join(pid).exists()
}
