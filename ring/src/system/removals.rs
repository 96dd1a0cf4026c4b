//! The record of removals of a session directory: what went with sessions that were not read.
//!
//! A file of fixed size, `removals`, next to the sessions. It keeps cumulative counts by cause, and
//! the last sessions by name. A streamer and `ringmark list` show the difference to what they have
//! shown before. So events that were removed unread are counted, as events that were lost are.
//!
//! # One writer at a time
//!
//! The process that holds the lock on its first byte may write and may remove sessions: both or
//! neither. Readers take no lock; they read twice until two readings agree. A writer that is killed
//! leaves the old counts or the new ones, or a mixture that the next reading shows and the next
//! writer corrects, because a session is counted once by its name.
//!
//! # A record that cannot be used
//!
//! - Damaged: it is set aside under another name and begun again, so that removing goes on.
//! - Written by a later version: it is left alone, and nothing is removed.
//! - No room for it: sessions are removed, and counted as soon as that has made room.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use ringmark_format::removals::{
    REMOVALS_BYTES, REMOVALS_MAGIC, REMOVALS_VERSION, REMOVED_PLACES, Removals, Removed,
};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

use crate::system::session_dir::OpenFor;
use crate::system::{clock, file_lock, session_dir};

/// Name of the file in a session directory.
pub const FILE_NAME: &str = "removals";

/// Byte of the file that its writer locks.
const LOCK_BYTE: u64 = 0;
/// How often it is read until two readings agree.
const READINGS_MAX: u32 = 16;

/// The whole file, as its bytes lie there. A reader's copy: nothing in it changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Record {
    /// The counts, by cause, since the file was made.
    pub counts: Removals,
    /// The sessions that were removed last; number `n` lies at `n % REMOVED_PLACES`.
    pub places: [Removed; REMOVED_PLACES],
    rest: [u64; 4],
}

const _: () = assert!(size_of::<Record>() == REMOVALS_BYTES);

impl Record {
    /// The record of a directory where nothing was removed yet.
    #[must_use]
    pub fn of_nothing() -> Self {
        let mut record = Self::new_zeroed();
        record.counts.magic = REMOVALS_MAGIC;
        record.counts.version = REMOVALS_VERSION;
        record
    }

    /// The record of a directory, as it is now. That of nothing, if there is none or none that can
    /// be used: a reader shows counts, it does not judge the file.
    #[must_use]
    pub fn of(dir: &Path) -> Self {
        let path = dir.join(FILE_NAME);
        let owner = fs::symlink_metadata(dir).map(|about| about.uid()).ok();
        let file = session_dir::open(&path, OpenFor::Reading).ok();
        let file = file.filter(|file| file.metadata().is_ok_and(|m| Some(m.uid()) == owner));
        file.and_then(|file| Self::settled(&file))
            .unwrap_or_else(Self::of_nothing)
    }

    /// What two readings in a row agree on: a writer was not in between. After [`READINGS_MAX`]
    /// readings the last one, because a writer that never rests must not hold a reader.
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

    /// Sessions that were removed so far, all causes: the number that the next one will have.
    #[must_use]
    pub fn sessions(&self) -> u64 {
        self.counts
            .sessions
            .iter()
            .fold(0, |sum, n| sum.wrapping_add(*n))
    }

    /// Events that went with them unread, all causes; a lower bound where `inexact` is not 0.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.counts
            .events
            .iter()
            .fold(0, |sum, n| sum.wrapping_add(*n))
    }

    /// The sessions with the numbers from `before` on, oldest first, as far as the record still
    /// names them: the last [`REMOVED_PLACES`]. A reader that was away for longer has the counts
    /// alone.
    pub fn since(&self, before: u64) -> impl Iterator<Item = &Removed> {
        let end = self.sessions();
        let first = before.max(end.saturating_sub(REMOVED_PLACES as u64));
        (first..end).map(|number| &self.places[(number % REMOVED_PLACES as u64) as usize])
    }

    /// Counts a session, unless it is among the last ones already: its remover was killed after the
    /// count, before the file was gone.
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

/// Why this process may not remove sessions now.
#[derive(Debug)]
pub(crate) enum NoRemover {
    /// Another process removes some at this moment: there is nothing to do.
    Busy,
    /// The record of removals cannot be opened or locked, or a later version wrote it.
    Unusable {
        /// The record.
        path: PathBuf,
        /// What is wrong with it.
        source: io::Error,
    },
}

impl NoRemover {
    /// Why the record of `dir` was not locked. Only a lock that another open file holds means that
    /// a remover is at work. Where the file system has no locks, or no room for one, nothing would
    /// ever be removed, so the caller is told.
    fn not_locked(dir: &Path, error: io::Error) -> Self {
        match file_lock::is_taken(&error) {
            true => Self::Busy,
            false => Self::Unusable {
                path: dir.join(FILE_NAME),
                source: error,
            },
        }
    }
}

/// What a record of removals is good for.
enum State {
    /// Empty, or whole.
    Fine,
    /// A later version wrote it.
    Later(u32),
    /// Neither.
    Damaged,
}

fn state(file: &File) -> io::Result<State> {
    let length = file.metadata()?.len();
    let mut counts = Removals::new_zeroed();
    if length == 0 {
        return Ok(State::Fine);
    }
    if length < size_of::<Removals>() as u64 {
        return Ok(State::Damaged);
    }
    file.read_exact_at(counts.as_mut_bytes(), 0)?;
    let is_later = counts.magic == REMOVALS_MAGIC && counts.version > REMOVALS_VERSION;
    Ok(match Record::read(file) {
        Some(_) => State::Fine,
        None if is_later => State::Later(counts.version),
        None => State::Damaged,
    })
}

/// Whether the record of `dir` is still this file.
fn is_named(dir: &Path, file: &File) -> bool {
    let (Ok(named), Ok(open)) = (fs::symlink_metadata(dir.join(FILE_NAME)), file.metadata()) else {
        return false;
    };
    (named.dev(), named.ino()) == (open.dev(), open.ino())
}

/// Ending of records that were set aside.
pub const DAMAGED_ENDING: &str = ".damaged";
/// Damaged records that a directory keeps.
const DAMAGED_MAX: u32 = 9;

/// Renames a damaged record; replaces nothing.
fn set_aside(dir: &Path) -> io::Result<()> {
    let from = dir.join(FILE_NAME);
    for number in 1..=DAMAGED_MAX {
        let to = dir.join(format!("{FILE_NAME}.{number}{DAMAGED_ENDING}"));
        let flags = rustix::fs::RenameFlags::NOREPLACE;
        match rustix::fs::renameat_with(rustix::fs::CWD, &from, rustix::fs::CWD, &to, flags) {
            Err(rustix::io::Errno::EXIST) => {}
            renamed => return Ok(renamed?),
        }
    }
    let what =
        format!("damaged, and {DAMAGED_MAX} damaged ones were set aside before: remove them");
    Err(io::Error::new(io::ErrorKind::InvalidData, what))
}

/// The right to remove sessions of a directory, and to count them in its record: one process at a
/// time has it, until it drops this.
#[derive(Debug)]
pub(crate) struct Remover {
    dir: PathBuf,
    /// The record, locked. `None`: there is no room for it yet.
    file: Option<File>,
    /// What is not in the record yet.
    pending: Vec<Removed>,
}

impl Remover {
    /// The right to remove sessions of `dir`. A damaged record is set aside and begun again.
    ///
    /// # Errors
    /// Another process has it, or the record cannot be used: then nothing may be removed, because
    /// nothing could say so.
    pub(crate) fn of(dir: &Path) -> Result<Self, NoRemover> {
        let remover = |file| Self {
            dir: dir.to_owned(),
            file,
            pending: Vec::new(),
        };
        let unusable = |source| NoRemover::Unusable {
            path: dir.join(FILE_NAME),
            source,
        };
        loop {
            let file = match open(dir) {
                Ok(file) => file,
                Err(error) if is_no_space(&error) => return Ok(remover(None)),
                Err(error) => return Err(unusable(error)),
            };
            file_lock::hold_exclusive(&file, LOCK_BYTE)
                .map_err(|error| NoRemover::not_locked(dir, error))?;
            match state(&file).map_err(unusable)? {
                State::Fine => return Ok(remover(Some(file))),
                State::Later(version) => {
                    let what = format!("found version {version}, expected {REMOVALS_VERSION}");
                    return Err(unusable(io::Error::new(io::ErrorKind::InvalidData, what)));
                }
                State::Damaged if is_named(dir, &file) => {
                    set_aside(dir).map_err(unusable)?;
                }
                State::Damaged => return Err(NoRemover::Busy),
            }
        }
    }

    /// Counts a session before it is removed.
    pub(crate) fn count(&mut self, mut removed: Removed) {
        removed.removed_ns = clock::realtime_ns();
        self.pending.push(removed);
        self.write(&mut |_| ());
    }

    /// Counts a start that came to nothing.
    pub(crate) fn count_refused(&mut self) {
        self.write(&mut |record| {
            record.counts.refused = record.counts.refused.saturating_add(1);
        });
    }

    /// Writes what is pending, and what `change` does to the record. Where there is no room, it
    /// stays pending for the next count, after a session was removed.
    pub(crate) fn write(&mut self, change: &mut dyn FnMut(&mut Record)) {
        if self.file.is_none() {
            self.file = open(&self.dir)
                .ok()
                .filter(|file| file_lock::hold_exclusive(file, LOCK_BYTE).is_ok());
        }
        let Some(file) = &self.file else { return };
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
    match session_dir::open(&path, OpenFor::Writing) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        opened => return opened,
    }
    let file = match session_dir::create(&path) {
        // Another process was faster.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            return session_dir::open(&path, OpenFor::Writing);
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

    /// A directory with a record of this content.
    fn dir_with(name: &str, content: &[u8]) -> PathBuf {
        let dir = std::env::temp_dir().join(format!("ringmark-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir(&dir).unwrap();
        fs::write(dir.join(FILE_NAME), content).unwrap();
        dir
    }

    #[test]
    fn a_damaged_record_is_set_aside_and_what_is_removed_then_is_counted() {
        let whole = Record::of_nothing();
        for damaged in [&whole.as_bytes()[..100], &[7; REMOVALS_BYTES], &[7; 5000]] {
            let dir = dir_with("damaged-record", damaged);
            let mut remover = Remover::of(&dir).unwrap();
            remover.count(removed(1, 50));
            drop(remover);
            assert_eq!(Record::of(&dir).events(), 50);
            let aside = dir.join(format!("{FILE_NAME}.1{DAMAGED_ENDING}"));
            assert_eq!(fs::read(aside).unwrap(), damaged);
            fs::remove_dir_all(dir).unwrap();
        }
    }

    #[test]
    fn where_nothing_could_be_counted_nothing_may_be_removed() {
        let mut later = Record::of_nothing();
        later.counts.version += 1;
        let dir = dir_with("later-record", later.as_bytes());
        let refused = Remover::of(&dir).unwrap_err();
        let NoRemover::Unusable { source, .. } = refused else {
            panic!("{refused:?}");
        };
        assert_eq!(source.to_string(), "found version 2, expected 1");
        fs::remove_file(dir.join(FILE_NAME)).unwrap();
        fs::create_dir(dir.join(FILE_NAME)).unwrap();
        assert!(matches!(Remover::of(&dir), Err(NoRemover::Unusable { .. })));
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn where_locks_do_not_work_the_error_says_so() {
        let not_locked = |errno| {
            let error = io::Error::from_raw_os_error(errno);
            NoRemover::not_locked(Path::new("/run"), error)
        };
        for taken in [libc::EAGAIN, libc::EACCES] {
            assert!(matches!(not_locked(taken), NoRemover::Busy));
        }
        let NoRemover::Unusable { path, source } = not_locked(libc::ENOLCK) else {
            panic!("reported as held by another process");
        };
        assert_eq!(path, Path::new("/run").join(FILE_NAME));
        assert_eq!(source.raw_os_error(), Some(libc::ENOLCK));
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
