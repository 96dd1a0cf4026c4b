//! Removing sessions whose process is gone: oldest first, beyond a cap, and counted.
//!
//! A session outlives its process so that its last events can be read. No daemon removes it later:
//! the next program that starts a session in the same directory does, and a person may.
//!
//! | when | function | what is removed |
//! | --- | --- | --- |
//! | a program starts | [`before_start`] | the oldest, beyond the cap |
//! | the start found no room | [`make_room`] | the oldest, until there is room |
//! | a person asks | [`remove_beyond`] | the oldest, beyond what the person wants to keep |
//!
//! # What belongs together
//!
//! A process that holds several copies of the library has a session of each. They are one trace: half
//! of it shows calls without their events, or events without their calls, and looks like all of it.
//! So what is removed is a process, with all its sessions in the directory:
//!
//! - It is dead when all of them are. They have one pid and one start time, so they die at once; but
//!   where that cannot be seen, each has a life lock of its own.
//! - It is as old as its first session.
//! - It is awaited if one of its sessions is, and read to the end when all of them are.
//! - The consumer's locks of all are taken first. Where one is held by a reader, all stay.
//!
//! Its bytes count once against the cap: a second copy that starts finds what the first one has left.
//!
//! # What is never done
//!
//! - Removing a living session: [`crate::identity::liveness`] decides, and doubts are for *alive*.
//! - Removing a part of a process: its sessions go together, when all of them are dead.
//! - Removing under a reader: the consumer's lock is taken first, and kept until the file is gone.
//! - Removing without counting: what was left unread is in the directory's record before the file
//!   goes ([`crate::removals`]). If the record cannot be used, nothing is removed.
//! - Removing another user's file, or one that is no ring file.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use ringmark_format::removals::{Removed, removal};

use crate::system::dead::{Group, dead_among, is_there, oldest_dead, pid_in_name};
use crate::system::remains::Remains;
use crate::system::removals::{NoRemover, Remover};
use crate::system::ring_file::Geometry;
use crate::system::session_dir::{self, OpenFor};
use crate::system::{clock, consumer_lease, file_lock};

pub use crate::system::dead::{DeadSession, dead_sessions};

/// Bytes that the dead sessions of one user may keep in a session directory when no consumer comes
/// for them: 64 MiB. A quarter of the file system, where that is less.
pub const DEAD_BYTES_MAX: u64 = 64 << 20;

/// What the removal of all of them would free.
fn bytes_of(groups: &[Group]) -> u64 {
    groups.iter().flatten().map(|session| session.bytes).sum()
}

/// Why no session may be removed: what goes with it could not be counted.
#[derive(Debug)]
pub struct Uncounted {
    /// The directory's record of removals.
    pub path: PathBuf,
    /// What is wrong with it.
    pub source: io::Error,
}

/// Removes the oldest dead sessions until the rest takes at most `keep_bytes`; returns the removed.
/// What was unread in them is counted ([`crate::system::removals`]). Sessions that a consumer reads
/// stay, so the rest may take more. What dead processes left beside sessions goes, too.
///
/// # Errors
/// The record of removals cannot be used: no session was removed.
pub fn remove_beyond(dir: &Path, keep_bytes: u64) -> Result<Vec<DeadSession>, Uncounted> {
    let beside = session_dir::entries(dir).unwrap_or_default();
    beside.iter().for_each(|path| remove_leftover(path));
    let files = session_dir::ring_files(dir).unwrap_or_default();
    let dead = dead_among(dir, files);
    let kept = bytes_of(&dead);
    remove_while(dir, dead, removal::BY_HAND, &|removed| {
        kept - removed > keep_bytes
    })
}

/// Removes groups from the first on for as long as `goes_on` with the bytes removed so far.
fn remove_while(
    dir: &Path,
    dead: Vec<Group>,
    cause: u64,
    goes_on: &dyn Fn(u64) -> bool,
) -> Result<Vec<DeadSession>, Uncounted> {
    let (mut removed, mut bytes) = (Vec::new(), 0);
    if !goes_on(0) {
        return Ok(removed);
    }
    let mut remover = match Remover::of(dir) {
        Ok(remover) => remover,
        Err(NoRemover::Busy) => return Ok(removed),
        Err(NoRemover::Unusable { path, source }) => return Err(Uncounted { path, source }),
    };
    for group in dead {
        if !goes_on(bytes) {
            break;
        }
        for session in remove(group, cause, &mut remover) {
            bytes += session.bytes;
            removed.push(session);
        }
    }
    remover.write(&mut |_| ());
    Ok(removed)
}

/// Removes the sessions of a process, and counts before what was unread in them; returns the removed.
/// If a consumer reads one, all stay: removing that one would free nothing as long as the consumer
/// has it open.
fn remove(group: Group, cause: u64, remover: &mut Remover) -> Vec<DeadSession> {
    let held: Option<Vec<_>> = group.iter().map(hold).collect();
    let held = held.unwrap_or_default();
    let with_file = group.into_iter().zip(&held);
    let removed = with_file.filter(|(session, (file, geometry))| {
        count_unread(file, geometry, cause, remover);
        fs::remove_file(&session.path).is_ok()
    });
    removed.map(|(session, _)| session).collect()
}

/// Opens a session of a process that is to be removed.
///
/// Takes the consumer's lock, which is held until the file is dropped: no consumer
/// begins to read it in between.
fn hold(session: &DeadSession) -> Option<(fs::File, Geometry)> {
    let file = session_dir::open(&session.path, OpenFor::Writing).ok()?;
    let geometry = crate::system::ring_file::read_geometry(&file).ok()?;
    file_lock::hold_exclusive(&file, geometry.header.consumed_offset).ok()?;
    Some((file, geometry))
}

/// Counts what was unread in a session.
fn count_unread(file: &fs::File, geometry: &Geometry, cause: u64, remover: &mut Remover) {
    let remains = Remains::of(file, geometry);
    if !remains.is_nothing() {
        remover.count(Removed {
            session: geometry.header.session,
            events: remains.events,
            overwritten: remains.overwritten,
            removed_ns: 0,
            pid: geometry.header.pid,
            removal: cause as u16,
            inexact: remains.inexact.into(),
        });
    }
}

/// Room of the file system that holds a session directory, in bytes.
#[derive(Debug, Clone, Copy)]
struct Room {
    all: u64,
    free: u64,
}

impl Room {
    fn of(dir: &Path) -> Self {
        rustix::fs::statvfs(dir).map_or(
            Self {
                all: u64::MAX,
                free: u64::MAX,
            },
            |about| Self {
                all: about.f_blocks.saturating_mul(about.f_frsize),
                free: about.f_bavail.saturating_mul(about.f_frsize),
            },
        )
    }

    /// Bytes that the dead may keep when no consumer comes for them.
    fn cap(self) -> u64 {
        DEAD_BYTES_MAX.min(self.all / 4)
    }
}

/// What a starting session of `own_bytes` bytes does with sessions that no recorder comes for.
///
/// It looks closer only if the files would exceed the cap together with it, so that the dead stay
/// under the cap when it dies, too. Then:
/// - without a lease ([`crate::system::consumer_lease`]), the oldest go until half of the cap is free;
/// - with one, those in which nothing is left to read go likewise, and others only if less than
///   half of the file system is free, and no more of them than it takes.
///
/// Returns the number of sessions removed. An error removes nothing and stops no start.
pub fn before_start(dir: &Path, own_bytes: u64) -> usize {
    let files = session_dir::entries(dir).unwrap_or_default();
    files.iter().for_each(|path| remove_leftover(path));
    let room = Room::of(dir);
    let is_held = consumer_lease::is_held(dir);
    let total = || files.iter().map(|path| allocated(path)).sum::<u64>();
    let cap = room.cap();
    if total().saturating_add(own_bytes.min(cap / 4)) <= cap {
        return 0;
    }
    let mut dead = oldest_dead(dir, files);
    dead.retain(|group| !is_group_awaited(group));
    let kept = bytes_of(&dead);
    let is_beyond = |removed| kept - removed > cap / 2;
    let count = |removed: Result<Vec<_>, Uncounted>| removed.unwrap_or_default();
    if !is_held {
        return count(remove_while(dir, dead, removal::CAP, &is_beyond)).len();
    }
    let is_done = |group: &Group| group.iter().all(has_nothing_left);
    let (done, others) = dead.into_iter().partition(is_done);
    let done: Vec<DeadSession> = count(remove_while(dir, done, removal::CAP, &is_beyond));
    let bytes: u64 = done.iter().map(|d| d.bytes).sum();
    let lacking = (room.all / 2).saturating_sub(room.free.saturating_add(bytes));
    let goes_on = |removed| is_beyond(bytes + removed) && removed < lacking;
    done.len() + count(remove_while(dir, others, removal::CAP, &goes_on)).len()
}

/// Whether a recorder comes for one of them: it takes them all.
fn is_group_awaited(group: &Group) -> bool {
    group.iter().any(|session| session.is_awaited)
}

/// Whether all events of a session were read, and it lost none.
fn has_nothing_left(session: &DeadSession) -> bool {
    let Ok(file) = session_dir::open(&session.path, OpenFor::Writing) else {
        return false;
    };
    crate::system::ring_file::read_geometry(&file)
        .is_ok_and(|geometry| Remains::of(&file, &geometry).is_nothing())
}

/// Makes room where a start of `own_bytes` bytes found none: removes the oldest dead sessions until
/// four times as much is free, at most half of the file system. Those that a recorder comes for go
/// last. Returns the number removed.
pub fn make_room(dir: &Path, own_bytes: u64) -> usize {
    let files = session_dir::entries(dir).unwrap_or_default();
    let dead = oldest_dead(dir, files).into_iter();
    let (awaited, mut dead): (Vec<_>, Vec<_>) = dead.partition(is_group_awaited);
    dead.extend(awaited);
    let room = Room::of(dir);
    let wanted = own_bytes.saturating_mul(4).min(room.all / 2);
    let goes_on = |removed: u64| room.free.saturating_add(removed) < wanted;
    remove_while(dir, dead, removal::NO_ROOM, &goes_on).map_or(0, |removed| removed.len())
}

/// Counts in the directory's record that a program could not be traced for want of room: a person
/// who misses its events finds the reason there.
pub fn count_refused(dir: &Path) {
    if let Ok(mut remover) = Remover::of(dir) {
        remover.count_refused();
    }
}

fn allocated(path: &Path) -> u64 {
    fs::symlink_metadata(path).map_or(0, |about| about.blocks() * 512)
}

/// No start takes longer, also where its process is out of our sight.
const LEFTOVER_SECONDS: i64 = 60;

/// Removes a file that a dead process has left next to its session: one that it died while laying
/// out, the reason why tracing is off, or the notes of its streamer.
fn remove_leftover(path: &Path) {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let notes = name.trim_end_matches(".new");
    let endings = [session_dir::DRAFT_ENDING, ".off", ".stream", ".acked"];
    // How far a ring file was sent counts while that is there.
    let is_needed = name.ends_with(".acked") && path.with_extension("ring").exists();
    if is_needed || !endings.iter().any(|ending| notes.ends_with(ending)) {
        return;
    }
    let gone =
        name.starts_with(|first: char| first.is_ascii_digit()) && !is_there(&pid_in_name(path));
    // In another pid namespace the pid says nothing: only what is old is left over.
    let now = (clock::realtime_ns() / 1_000_000_000) as i64;
    let old = fs::symlink_metadata(path).is_ok_and(|about| now - about.mtime() > LEFTOVER_SECONDS);
    if gone && old {
        let _ = fs::remove_file(path);
    }
}
