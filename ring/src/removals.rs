//! The record of removals of a session directory: what went with sessions that nobody had read.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use ringmark_format::removals::{
    REMOVALS_BYTES, REMOVALS_MAGIC, REMOVALS_VERSION, REMOVED_PLACES, Removals, Removed,
};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

use crate::{clock, lock, session_dir};

/// Name of the file in a session directory.
pub const FILE_NAME: &str = "removals";

/// Byte that its writer locks.
const LOCK_BYTE: u64 = 0;
/// How often it is read until two readings agree.
const READINGS_MAX: u32 = 16;

/// The whole file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Record {
    /// The counts.
    pub counts: Removals,
    /// The sessions that were removed last.
    pub places: [Removed; REMOVED_PLACES],
    rest: [u64; 4],
}

const _: () = assert!(size_of::<Record>() == REMOVALS_BYTES);

impl Record {
    /// The record where nothing was removed.
    #[must_use]
    pub fn of_nothing() -> Self {
        let mut record = Self::new_zeroed();
        record.counts.magic = REMOVALS_MAGIC;
        record.counts.version = REMOVALS_VERSION;
        record
    }

    /// The record of a directory; empty: there is none, or none that can be used.
    #[must_use]
    pub fn of(dir: &Path) -> Self {
        let path = dir.join(FILE_NAME);
        let owner = fs::symlink_metadata(dir).map(|about| about.uid()).ok();
        let file = session_dir::open(&path, false).ok();
        let file = file.filter(|file| file.metadata().is_ok_and(|m| Some(m.uid()) == owner));
        file.and_then(|file| Self::settled(&file))
            .unwrap_or_else(Self::of_nothing)
    }

    /// What two readings agree on.
    fn settled(file: &File) -> Option<Self> {
        let mut last = Self::read(file)?;
        for _ in 0..READINGS_MAX {
            let next = Self::read(file)?;
            if next == last {
                break;
            }
            last = next;
        }
        Some(last)
    }

    fn read(file: &File) -> Option<Self> {
        let mut record = Self::of_nothing();
        file.read_exact_at(record.as_mut_bytes(), 0).ok()?;
        let counts = &record.counts;
        (counts.magic == REMOVALS_MAGIC && counts.version == REMOVALS_VERSION).then_some(record)
    }

    /// Sessions that were removed so far.
    #[must_use]
    pub fn sessions(&self) -> u64 {
        self.counts
            .sessions
            .iter()
            .fold(0, |sum, n| sum.wrapping_add(*n))
    }

    /// Events that went with them.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.counts
            .events
            .iter()
            .fold(0, |sum, n| sum.wrapping_add(*n))
    }

    /// Those of the sessions that were removed after there had been `before` that it still names,
    /// oldest first.
    pub fn since(&self, before: u64) -> impl Iterator<Item = &Removed> {
        let end = self.sessions();
        let first = before.max(end.saturating_sub(REMOVED_PLACES as u64));
        (first..end).map(|number| &self.places[(number % REMOVED_PLACES as u64) as usize])
    }

    fn add(&mut self, removed: Removed) {
        let is_this = |other: &Removed| other.session == removed.session;
        let cause = usize::from(removed.removal).min(self.counts.sessions.len() - 1);
        if self.since(0).any(is_this) {
            return;
        }
        let place = (self.sessions() % REMOVED_PLACES as u64) as usize;
        self.places[place] = removed;
        let counts = &mut self.counts;
        let add = |sum: &mut u64, more: u64| *sum = sum.saturating_add(more);
        add(&mut counts.sessions[cause], 1);
        add(&mut counts.events[cause], removed.events);
        add(&mut counts.overwritten, removed.overwritten);
        add(&mut counts.inexact, removed.inexact.into());
    }
}

/// The right to remove sessions of a directory, and to say so in its record: one process at a time
/// has it.
#[derive(Debug)]
pub(crate) struct Remover {
    dir: PathBuf,
    /// The record, locked. `None`: there is no room for it yet.
    file: Option<File>,
    /// What is not in the record yet.
    pending: Vec<Removed>,
}

impl Remover {
    /// `None`: another process has it, or the record is none of ours.
    pub(crate) fn of(dir: &Path) -> Option<Self> {
        let file = match open(dir) {
            Ok(file) => {
                lock::hold_exclusive(&file, LOCK_BYTE).ok()?;
                Some(file)
            }
            Err(error) if is_no_space(&error) => None,
            Err(_) => return None,
        };
        Some(Self {
            dir: dir.to_owned(),
            file,
            pending: Vec::new(),
        })
    }

    /// Counts a session before it is removed.
    pub(crate) fn count(&mut self, mut removed: Removed) {
        removed.removed_ns = clock::realtime_ns();
        self.pending.push(removed);
        self.write(|_| ());
    }

    /// Counts a start that came to nothing.
    pub(crate) fn count_refused(&mut self) {
        self.write(|record| record.counts.refused = record.counts.refused.saturating_add(1));
    }

    /// Writes what is pending; tried again with the next count where there is no room.
    pub(crate) fn write(&mut self, change: impl FnOnce(&mut Record)) {
        if self.file.is_none() {
            self.file = open(&self.dir)
                .ok()
                .filter(|file| lock::hold_exclusive(file, LOCK_BYTE).is_ok());
        }
        let Some(file) = &self.file else { return };
        // Who finds another version leaves it as it is.
        let is_new = file.metadata().is_ok_and(|about| about.len() == 0);
        let found = if is_new {
            Some(Record::of_nothing())
        } else {
            Record::read(file)
        };
        let Some(mut record) = found else {
            return;
        };
        self.pending.iter().for_each(|removed| record.add(*removed));
        change(&mut record);
        record.counts.changed_ns = clock::realtime_ns();
        if file.write_all_at(record.as_bytes(), 0).is_ok() {
            self.pending.clear();
        }
    }
}

/// Opens the record, or makes it.
fn open(dir: &Path) -> io::Result<File> {
    let path = dir.join(FILE_NAME);
    match session_dir::open(&path, true) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        opened => return opened,
    }
    let file = match session_dir::create(&path) {
        // Another process was faster.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            return session_dir::open(&path, true);
        }
        created => created?,
    };
    let owner = fs::symlink_metadata(dir)?.uid();
    if owner != session_dir::uid() {
        std::os::unix::fs::fchown(&file, Some(owner), None)?;
    }
    // Where that fails, the first count tries again.
    let flags = rustix::fs::FallocateFlags::KEEP_SIZE;
    let _ = rustix::fs::fallocate(&file, flags, 0, REMOVALS_BYTES as u64);
    Ok(file)
}

fn is_no_space(error: &io::Error) -> bool {
    use io::ErrorKind::{QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn removed(session: u8, events: u64) -> Removed {
        Removed {
            session: [session; 16],
            events,
            ..Removed::new_zeroed()
        }
    }

    #[test]
    fn each_session_is_counted_once_and_the_last_ones_are_named() {
        let mut record = Record::of_nothing();
        record.add(removed(1, 3));
        record.add(removed(1, 3));
        assert_eq!((record.sessions(), record.events()), (1, 3));
        (2..=100).for_each(|session| record.add(removed(session, 1)));
        assert_eq!((record.sessions(), record.events()), (100, 102));
        let named: Vec<u8> = record.since(98).map(|removed| removed.session[0]).collect();
        assert_eq!(named, [99, 100]);
        assert_eq!(record.since(0).count(), REMOVED_PLACES);
    }
}
