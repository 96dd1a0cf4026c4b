//! The leases that a reader of all sessions holds on the session directories.
//!
//! Programs remove their own ring files, and those of dead programs, when they need room. A lease
//! tells them that a reader will come for the files. What is removed all the same is counted in the
//! directory's record of removals, and here reported as what this reader missed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ringmark_format::Uuid;
use ringmark_format::removals::{Removed, removal};
use ringmark_ring::consumer_lease::{self, AllLease, TagLease};
use ringmark_ring::removals::Record;
use ringmark_ring::session_dir;

use crate::interval::Interval;
use crate::sessions::file_id::FileId;

/// How often the records of removals are read.
const COUNT_EVERY: Duration = Duration::from_secs(1);
/// Most removed sessions that one notice names.
const NAMED_MAX: usize = 8;

/// Sessions that were removed before a recorder took what was in them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Removals {
    /// Number of such sessions.
    pub sessions: u64,
    /// Those of them that a person removed, who was told so then, and may have a snapshot of them.
    pub by_hand: u64,
    /// Events in them, including those that they counted as lost.
    pub events: u64,
    /// Whether there were more events than that.
    pub at_least: bool,
    /// Programs that could not start a session for want of room.
    pub starts_refused: u64,
}

impl Removals {
    /// What was added to a record of removals between two readings.
    fn between(before: &Record, now: &Record) -> Self {
        let refused = now.counts.refused.saturating_sub(before.counts.refused);
        Self {
            sessions: now.sessions().saturating_sub(before.sessions()),
            by_hand: by_hand(now).saturating_sub(by_hand(before)),
            events: now.events().saturating_sub(before.events()),
            at_least: now.counts.inexact > before.counts.inexact,
            starts_refused: refused,
        }
    }

    fn and(self, other: Self) -> Self {
        Self {
            sessions: self.sessions.saturating_add(other.sessions),
            by_hand: self.by_hand.saturating_add(other.by_hand),
            events: self.events.saturating_add(other.events),
            at_least: self.at_least || other.at_least,
            starts_refused: self.starts_refused.saturating_add(other.starts_refused),
        }
    }

    /// Whether nothing was removed or refused.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        self.sessions == 0 && self.starts_refused == 0
    }

    /// Whether it is only what a person removed.
    #[must_use]
    pub fn is_by_hand(&self) -> bool {
        self.sessions == self.by_hand && self.starts_refused == 0
    }
}

/// Sessions that a person removed.
fn by_hand(record: &Record) -> u64 {
    record.counts.sessions[removal::BY_HAND as usize]
}

/// Tells sessions that begin while it lives that a reader comes for them. With the option `wait` their
/// threads wait for that reader from the first event on.
#[derive(Debug)]
pub struct Announcement {
    _lease: TagLease,
}

impl Announcement {
    /// Announces a reader of the sessions that carry this tag, `key=value`, in the session directory of
    /// this user.
    ///
    /// # Errors
    /// The directory cannot be made or opened, or does not take locks.
    pub fn of_tag(tag: &str) -> io::Result<Self> {
        let dir = session_dir::path();
        session_dir::ensure(&dir).map_err(io::Error::other)?;
        let lease = TagLease::take(&dir, tag)?;
        Ok(Self { _lease: lease })
    }
}

/// A session directory with a lease.
#[derive(Debug)]
struct LeasedDirectory {
    path: PathBuf,
    id: FileId,
    /// `None`: it could not be taken, and a notice says so.
    lease: Option<AllLease>,
    /// Its record of removals when the lease was taken.
    before: Record,
    /// Its record of removals at the last notice.
    reported: Record,
}

/// The leases of all session directories.
#[derive(Debug, Default)]
pub(crate) struct Leases {
    directories: Vec<LeasedDirectory>,
    /// What was counted in directories that no longer exist.
    past: Removals,
    counts: Interval,
    notices: Vec<String>,
}

impl Leases {
    /// Makes our own session directory, so that the lease is there before the first program.
    pub(crate) fn new() -> Self {
        // The first reading of the directory reports why it cannot be used.
        let _ = session_dir::ensure(&session_dir::path());
        Self::default()
    }

    /// Takes leases on directories that are new, and gives up those on directories that are gone.
    pub(crate) fn update(&mut self, directories: &[PathBuf]) {
        let is_first = !self.counts.was_done();
        let ids: Vec<_> = directories.iter().map(|dir| id_of(dir)).collect();
        let (stay, gone): (Vec<_>, Vec<_>) = std::mem::take(&mut self.directories)
            .into_iter()
            .partition(|place| ids.contains(&Some(place.id)));
        self.directories = stay;
        for place in gone {
            self.past = self
                .past
                .and(Removals::between(&place.before, &place.reported));
        }
        for (dir, id) in directories.iter().zip(ids) {
            let Some(id) = id.filter(|id| !self.directories.iter().any(|p| p.id == *id)) else {
                continue;
            };
            if session_dir::check(dir).is_err() {
                continue;
            }
            self.take(dir, id, is_first);
        }
        if self.counts.is_due(COUNT_EVERY) {
            self.count();
        }
    }

    /// Takes the lease on one directory; `is_first` in the first call of [`Leases::update`].
    fn take(&mut self, dir: &Path, id: FileId, is_first: bool) {
        let lease = AllLease::take(dir);
        if let Err(error) = &lease {
            self.notices.push(format!(
                "{}: locking it: {error}; what ends there may be removed before it is read, and is counted",
                dir.display()
            ));
        }
        // Removals before our start were not our loss. A directory that is new later was made after
        // our start, so all its removals are.
        let before = if is_first {
            Record::of(dir)
        } else {
            Record::of_nothing()
        };
        self.directories.push(LeasedDirectory {
            path: dir.to_owned(),
            id,
            lease: lease.ok(),
            before,
            reported: before,
        });
    }

    /// Reads the records of removals, and makes notices of what is new in them.
    pub(crate) fn count(&mut self) {
        self.counts.done();
        for place in &mut self.directories {
            let now = Record::of(&place.path);
            let news = Removals::between(&place.reported, &now);
            if !news.is_nothing() {
                let named: Vec<_> = now.since(place.reported.sessions()).collect();
                self.notices.push(text(&place.path, &news, &named));
                place.reported = now;
            }
        }
    }

    /// What was removed since the leases were taken, as of the last [`Leases::count`].
    pub(crate) fn removals(&self) -> Removals {
        let of_place = |place: &LeasedDirectory| Removals::between(&place.before, &place.reported);
        self.directories
            .iter()
            .map(of_place)
            .fold(self.past, Removals::and)
    }

    pub(crate) fn take_notices(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notices)
    }

    /// Whether no other reader of all sessions has a lease on the directory of this file.
    pub(crate) fn is_alone(&self, ring_file: &Path) -> bool {
        let place = self
            .directories
            .iter()
            .find(|p| ring_file.starts_with(&p.path));
        place
            .and_then(|place| place.lease.as_ref())
            .is_some_and(|lease| !lease.is_shared())
    }
}

/// Whether no reader of all sessions has a lease on the directory of this file.
pub(crate) fn is_left_alone(ring_file: &Path) -> bool {
    !ring_file.parent().is_some_and(consumer_lease::is_held)
}

fn id_of(dir: &Path) -> Option<FileId> {
    let about = fs::symlink_metadata(dir).ok()?;
    Some(FileId::of(&about))
}

/// One line that reports what was removed in a directory.
fn text(dir: &Path, removals: &Removals, named: &[&Removed]) -> String {
    let mut parts = Vec::new();
    if removals.sessions > 0 {
        let least = if removals.at_least { "at least " } else { "" };
        let (sessions, events) = (removals.sessions, removals.events);
        let by_hand = match removals.by_hand {
            0 => String::new(),
            by_hand => format!(" ({by_hand} by 'ringmark clean')"),
        };
        let mut text = format!(
            "sessions removed before a recorder took them: {sessions}{by_hand}, \
             events in them or lost by them: {least}{events}"
        );
        let names = named.iter().take(NAMED_MAX).map(|removed| {
            let (uuid, pid, events) = (Uuid(removed.session), removed.pid, removed.events);
            format!("{uuid} of pid {pid}: {events}")
        });
        let names: Vec<_> = names.collect();
        if !names.is_empty() {
            text.push_str(&format!(" ({}", names.join(", ")));
            text.push_str(if (names.len() as u64) < sessions {
                ", …)"
            } else {
                ")"
            });
        }
        parts.push(text);
    }
    if removals.starts_refused > 0 {
        let starts = removals.starts_refused;
        parts.push(format!(
            "programs not traced because there was no room: {starts}"
        ));
    }
    format!("{}: {}", dir.display(), parts.join("; "))
}

/// What was ever removed in one session directory before it was read.
#[derive(Debug, Clone)]
pub struct DirectoryRemovals {
    /// The directory.
    pub directory: PathBuf,
    /// How much was removed.
    pub removals: Removals,
    /// When the last removal was, in ns since 1970.
    pub changed_ns: u64,
    /// The sessions that were removed last, oldest first.
    pub last: Vec<Removed>,
}

impl DirectoryRemovals {
    pub(crate) fn of(directory: PathBuf) -> Option<Self> {
        session_dir::check(&directory).ok()?;
        let now = Record::of(&directory);
        let removals = Removals::between(&Record::of_nothing(), &now);
        let last = now.since(0).copied().collect();
        (!removals.is_nothing()).then_some(Self {
            directory,
            removals,
            changed_ns: now.counts.changed_ns,
            last,
        })
    }
}

impl std::fmt::Display for DirectoryRemovals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&text(&self.directory, &self.removals, &[]))
    }
}
