//! The leases that a reader of all sessions holds of every session directory, and its count of what
//! was removed there before it could be read.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ringmark_format::Uuid;
use ringmark_format::removals::Removed;
use ringmark_ring::all_lease::{self, AllLease};
use ringmark_ring::removals::Record;
use ringmark_ring::session_dir;

use crate::sessions::file_id::FileId;

/// How often the records of removals are read.
const COUNT_EVERY: Duration = Duration::from_secs(1);
/// Most removed sessions that are named at once.
const NAMED_MAX: usize = 8;

/// Sessions that were removed before they could be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Gone {
    /// Such sessions.
    pub sessions: u64,
    /// Events in them, those included that they counted as lost.
    pub events: u64,
    /// There were more events than that.
    pub at_least: bool,
    /// Programs that were not traced for want of room.
    pub starts_refused: u64,
}

impl Gone {
    fn between(before: &Record, now: &Record) -> Self {
        let refused = now.counts.refused.saturating_sub(before.counts.refused);
        Self {
            sessions: now.sessions().saturating_sub(before.sessions()),
            events: now.events().saturating_sub(before.events()),
            at_least: now.counts.inexact > before.counts.inexact,
            starts_refused: refused,
        }
    }

    fn and(self, other: Self) -> Self {
        Self {
            sessions: self.sessions.saturating_add(other.sessions),
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
}

/// A session directory with a lease.
#[derive(Debug)]
struct Place {
    path: PathBuf,
    id: FileId,
    lease: Option<AllLease>,
    /// Its record when the lease was taken.
    before: Record,
    /// Its record at the last notice.
    told: Record,
}

/// The leases of all session directories.
#[derive(Debug, Default)]
pub(crate) struct Leases {
    places: Vec<Place>,
    /// What was counted in directories that are gone.
    past: Gone,
    counted_at: Option<Instant>,
    notices: Vec<String>,
}

impl Leases {
    /// Makes our own directory, so that the lease is there before the first program is.
    pub(crate) fn new() -> Self {
        // Why it cannot be used is said where it is read.
        let _ = session_dir::ensure(&session_dir::path());
        Self::default()
    }

    /// Takes leases of directories that are new.
    pub(crate) fn come_for(&mut self, directories: &[PathBuf]) {
        let is_first = self.counted_at.is_none();
        let ids: Vec<_> = directories.iter().map(|dir| id_of(dir)).collect();
        let (stay, gone): (Vec<_>, Vec<_>) = std::mem::take(&mut self.places)
            .into_iter()
            .partition(|place| ids.contains(&Some(place.id)));
        self.places = stay;
        for place in gone {
            self.past = self.past.and(Gone::between(&place.before, &place.told));
        }
        for (dir, id) in directories.iter().zip(ids) {
            let Some(id) = id.filter(|id| !self.places.iter().any(|p| p.id == *id)) else {
                continue;
            };
            if session_dir::check(dir).is_err() {
                continue;
            }
            self.come_to(dir, id, is_first);
        }
        if self.counted_at.is_none_or(|at| at.elapsed() >= COUNT_EVERY) {
            self.count();
        }
    }

    fn come_to(&mut self, dir: &Path, id: FileId, is_first: bool) {
        let lease = AllLease::take(dir);
        if let Err(error) = &lease {
            self.notices.push(format!(
                "{}: locking it: {error}; what ends there may be removed before it is read, and is counted",
                dir.display()
            ));
        }
        // What went before we came is not ours; a directory that is new was there after us.
        let before = if is_first {
            Record::of(dir)
        } else {
            Record::of_nothing()
        };
        self.places.push(Place {
            path: dir.to_owned(),
            id,
            lease: lease.ok(),
            before,
            told: before,
        });
    }

    /// Reads the records, and makes notices of what is new.
    pub(crate) fn count(&mut self) {
        self.counted_at = Some(Instant::now());
        for place in &mut self.places {
            let now = Record::of(&place.path);
            let news = Gone::between(&place.told, &now);
            if !news.is_nothing() {
                let named: Vec<_> = now.since(place.told.sessions()).collect();
                self.notices.push(text(&place.path, &news, &named));
                place.told = now;
            }
        }
    }

    /// What was removed since the leases were taken, as last counted.
    pub(crate) fn gone(&self) -> Gone {
        let of_place = |place: &Place| Gone::between(&place.before, &place.told);
        self.places.iter().map(of_place).fold(self.past, Gone::and)
    }

    pub(crate) fn take_notices(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notices)
    }

    /// Whether no other reader of all sessions has a lease where this file lies.
    pub(crate) fn is_alone(&self, ring_file: &Path) -> bool {
        let place = self.places.iter().find(|p| ring_file.starts_with(&p.path));
        place
            .and_then(|place| place.lease.as_ref())
            .is_some_and(|lease| !lease.is_shared())
    }
}

/// Whether no reader of all sessions has a lease where this file lies.
pub(crate) fn is_left_alone(ring_file: &Path) -> bool {
    !ring_file.parent().is_some_and(all_lease::is_held)
}

fn id_of(dir: &Path) -> Option<FileId> {
    let about = fs::symlink_metadata(dir).ok()?;
    Some(FileId::of(&about))
}

/// One line on what was removed in a directory.
pub(crate) fn text(dir: &Path, gone: &Gone, named: &[&Removed]) -> String {
    let mut parts = Vec::new();
    if gone.sessions > 0 {
        let least = if gone.at_least { "at least " } else { "" };
        let (sessions, events) = (gone.sessions, gone.events);
        let mut text = format!(
            "sessions removed before they were read: {sessions}, events in them: {least}{events}"
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
    if gone.starts_refused > 0 {
        let starts = gone.starts_refused;
        parts.push(format!("programs not traced for want of room: {starts}"));
    }
    format!("{}: {}", dir.display(), parts.join("; "))
}

/// What was ever removed in a session directory before it was read.
#[derive(Debug, Clone)]
pub struct DirectoryGone {
    /// The directory.
    pub directory: PathBuf,
    /// How much.
    pub gone: Gone,
    /// When that changed last, ns since 1970.
    pub changed_ns: u64,
    /// The sessions that went last, oldest first.
    pub last: Vec<Removed>,
}

impl DirectoryGone {
    pub(crate) fn of(directory: PathBuf) -> Option<Self> {
        session_dir::check(&directory).ok()?;
        let now = Record::of(&directory);
        let gone = Gone::between(&Record::of_nothing(), &now);
        let last = now.since(0).copied().collect();
        (!gone.is_nothing()).then_some(Self {
            directory,
            gone,
            changed_ns: now.counts.changed_ns,
            last,
        })
    }
}

impl std::fmt::Display for DirectoryGone {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&text(&self.directory, &self.gone, &[]))
    }
}
