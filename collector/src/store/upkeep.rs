//! What people do with a store by hand: they look what is in it, remove what a host sent, and clear
//! what a killed collector left.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ringmark_decoder::store::{self as files, ID_FILE};
use ringmark_format::Uuid;

use super::error::{NotAStore, StoreError, io_at};
use super::free_space::FreeSpace;
use super::identity::Identity;
use super::session_directories;

/// What a store has of one service of one host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Usage {
    /// The host.
    pub host: String,
    /// The service.
    pub service: String,
    /// Number of sessions.
    pub sessions: u64,
    /// Number of segments.
    pub segments: u64,
    /// Bytes of the segments.
    pub bytes: u64,
    /// The first day on which a session began, `YYYY-MM-DD`.
    pub first_day: String,
    /// The last such day.
    pub last_day: String,
}

/// What was removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Removed {
    /// Number of files.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// What a store has, by host and service. A collector may use it at the same time.
///
/// # Errors
/// It is no store, or cannot be read.
pub fn usage(root: &Path) -> Result<Vec<Usage>, StoreError> {
    check_is_store(root)?;
    let segments = files::segments(root).map_err(io_at("read", root))?;
    let mut found: BTreeMap<[String; 2], Usage> = BTreeMap::new();
    let mut sessions: BTreeSet<([String; 2], Uuid)> = BTreeSet::new();
    for segment in segments {
        // One that retention has removed since is not there.
        let (Ok(about), Some(name)) = (fs::metadata(&segment), files::parse(&segment)) else {
            continue;
        };
        let [host, service, day] = place(&segment);
        let key = [host.clone(), service.clone()];
        let usage = found.entry(key.clone()).or_insert_with(|| Usage {
            host,
            service,
            sessions: 0,
            segments: 0,
            bytes: 0,
            first_day: day.clone(),
            last_day: day.clone(),
        });
        usage.sessions += u64::from(sessions.insert((key, name.session)));
        usage.segments += 1;
        usage.bytes += about.len();
        usage.first_day = usage.first_day.clone().min(day.clone());
        usage.last_day = usage.last_day.clone().max(day);
    }
    Ok(found.into_values().collect())
}

/// The sums over the services of each host, which stay unnamed; the largest host first.
#[must_use]
pub fn by_host(usages: Vec<Usage>) -> Vec<Usage> {
    let mut hosts: BTreeMap<String, Usage> = BTreeMap::new();
    for usage in usages {
        let service = String::new();
        match hosts.get_mut(&usage.host) {
            Some(host) => host.add(usage),
            None => drop(hosts.insert(usage.host.clone(), Usage { service, ..usage })),
        }
    }
    let mut hosts: Vec<_> = hosts.into_values().collect();
    hosts.sort_by_key(|host| std::cmp::Reverse(host.bytes));
    hosts
}

impl Usage {
    fn add(&mut self, other: Self) {
        self.sessions += other.sessions;
        self.segments += other.segments;
        self.bytes += other.bytes;
        self.first_day = std::mem::take(&mut self.first_day).min(other.first_day);
        self.last_day = std::mem::take(&mut self.last_day).max(other.last_day);
    }
}

/// Bytes that are free on a store's file system.
///
/// # Errors
/// Those of `statvfs`.
pub fn free_bytes(root: &Path) -> io::Result<u64> {
    FreeSpace::of(root).map(|space| space.free_bytes)
}

/// Host, service and day of a segment, as its directories say.
fn place(segment: &Path) -> [String; 3] {
    let mut above = segment.ancestors().skip(1);
    [(); 3].map(|()| {
        let name = above.next().and_then(Path::file_name);
        name.unwrap_or_default().to_string_lossy().into_owned()
    })
}

fn check_is_store(root: &Path) -> Result<(), StoreError> {
    match fs::symlink_metadata(root.join(ID_FILE)) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(StoreError::NotOurs {
            path: root.to_owned(),
            source: NotAStore::NoIdentity,
        }),
        Err(error) => Err(io_at("look at", root)(error)),
    }
}

/// A store that no collector uses while this is there.
#[derive(Debug)]
pub struct IdleStore {
    root: PathBuf,
    _identity: Identity,
}

impl IdleStore {
    /// Takes a store.
    ///
    /// # Errors
    /// It is no store, or a collector uses it.
    pub fn take(root: &Path) -> Result<Self, StoreError> {
        check_is_store(root)?;
        Ok(Self {
            root: root.to_owned(),
            _identity: Identity::take(root, Duration::ZERO)?,
        })
    }

    /// Removes all that a host sent: segments, their indexes, what was cut off them, and what was not
    /// durable yet. Other files in the host's directories stay.
    ///
    /// # Errors
    /// A file cannot be removed; those before it are gone.
    pub fn remove_host(&self, host: &str) -> Result<Removed, StoreError> {
        self.remove_all(|file| is_of_store(file) && place(file)[0] == host)
    }

    /// Removes what a killed collector left: segments that were never durable, and indexes of
    /// segments that are gone.
    ///
    /// # Errors
    /// A file cannot be removed; those before it are gone.
    pub fn clear(&self) -> Result<Removed, StoreError> {
        self.remove_all(|file| {
            let is = |ending| files::parse_with(file, ending).is_some();
            is(".new") || is(".idx.new") || (is(".idx") && !file.with_extension("rmk").exists())
        })
    }

    fn remove_all(&self, is_meant: impl Fn(&Path) -> bool) -> Result<Removed, StoreError> {
        let mut removed = Removed::default();
        let found = files::files_of_store(&self.root, is_meant);
        for file in found.map_err(io_at("read", &self.root))? {
            remove(&file, &mut removed)?;
            session_directories::remove_empty(&file, &self.root);
        }
        Ok(removed)
    }
}

/// Whether a collector made a file, by its name.
fn is_of_store(file: &Path) -> bool {
    let is = |ending: &&str| files::parse_with(file, ending).is_some();
    [".rmk", ".idx", ".new", ".idx.new"].iter().any(is) || files::is_copy(file)
}

fn remove(file: &Path, removed: &mut Removed) -> Result<(), StoreError> {
    let about = fs::symlink_metadata(file).map_err(io_at("stat", file))?;
    fs::remove_file(file).map_err(io_at("remove", file))?;
    removed.files += 1;
    removed.bytes += about.len();
    Ok(())
}
