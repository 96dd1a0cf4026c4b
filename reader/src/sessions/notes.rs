//! Why a process is not traced: the notes that programs leave, and what keeps sessions from
//! starting.
//!
//! A program that was configured to be traced and could not start a session leaves a note in the
//! session directory: `PID-COPY.off`, since each copy of the library in a process may leave one.
//! Nothing is printed into the program's own output.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use ringmark_ring::{identity, session_dir};

use crate::sessions::directories::directories;

/// Most bytes of a note that are read.
const NOTE_BYTES_MAX: usize = 4096;

/// The note of a process that was configured to be traced and is not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OffNote {
    /// Process id in the process's own pid namespace.
    pub pid: u32,
    /// The reason. These are bytes of another process: to be escaped before they are shown.
    pub reason: String,
    /// When the note was written.
    pub written: SystemTime,
}

/// The notes of living processes in all session directories, by pid. Where copies in a process have
/// the same reason, one note stands for all.
#[must_use]
pub fn off_notes() -> Vec<OffNote> {
    let mut notes = all();
    notes.retain(|note| Path::new(&format!("/proc/{}", note.pid)).exists());
    notes.sort_by(|a, b| (a.pid, &a.reason).cmp(&(b.pid, &b.reason)));
    notes.dedup_by(|a, b| (a.pid, &a.reason) == (b.pid, &b.reason));
    notes
}

/// The latest note of one process, living or not: it may have ended just now.
#[must_use]
pub fn off_note(pid: u32) -> Option<OffNote> {
    let of_process = all().into_iter().filter(|note| note.pid == pid);
    of_process.max_by_key(|note| note.written)
}

/// The note of a process that runs; a note older than the process belongs to an earlier one.
#[must_use]
pub fn own_note(pid: u32) -> Option<OffNote> {
    off_note(pid).filter(|note| started(pid).is_none_or(|at| note.written >= at))
}

/// A time at or before the start of a process; `None`: it is gone.
fn started(pid: u32) -> Option<SystemTime> {
    /// `USER_HZ`, a constant of the kernel's interface.
    const TICKS_PER_S: u64 = 100;
    let uptime = fs::read_to_string("/proc/uptime").ok()?;
    let uptime: f64 = uptime.split(' ').next()?.parse().ok()?;
    let at = Duration::from_secs(identity::start_time(&pid.to_string())? / TICKS_PER_S);
    let age = Duration::try_from_secs_f64(uptime).ok()?.saturating_sub(at);
    // Two seconds for the roundings of the three clocks.
    SystemTime::now().checked_sub(age + Duration::from_secs(2))
}

/// The end of a message about a process that we may not look into: who owns it, and who may.
pub(crate) fn who_may(pid: u32) -> String {
    let own = session_dir::uid();
    if own != 0 {
        let owner = fs::metadata(format!("/proc/{pid}")).map(|about| about.uid());
        let owner = owner.map_or_else(|_| "another user".to_owned(), user);
        return format!(
            ": it is a process of {owner}, this is {} (run as its user or as root)",
            user(own)
        );
    }
    // CAP_SYS_PTRACE is bit 19.
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let held = status
        .lines()
        .find_map(|line| u64::from_str_radix(line.strip_prefix("CapEff:")?.trim(), 16).ok());
    if held.is_some_and(|held| held >> 19 & 1 == 0) {
        return " although this is root: it lacks CAP_SYS_PTRACE, which containers leave out \
                (docker run --cap-add SYS_PTRACE)"
            .to_owned();
    }
    " although this is root: the process has another user namespace, or a security module keeps it"
        .to_owned()
}

/// A user for messages: `name (uid 1000)`.
fn user(uid: u32) -> String {
    let known = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let name = known.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(uid)).then_some(name)
    });
    match name {
        Some(name) => format!("{name} (uid {uid})"),
        None => format!("uid {uid}"),
    }
}

/// What keeps programs of this user from starting a session in `directory` and from leaving a note
/// there, as far as a check from outside finds it. `None`: nothing.
#[must_use]
pub fn obstacle(directory: &Path) -> Option<String> {
    let at = |path: &Path, what: &dyn std::fmt::Display| format!("{}: {what}", path.display());
    let place = match fs::symlink_metadata(directory) {
        Ok(_) => {
            if let Err(error) = session_dir::check(directory) {
                return Some(error.to_string());
            }
            directory
        }
        // A program would make it, in its parent.
        Err(_) => directory.parent()?,
    };
    let about = match rustix::fs::statvfs(place) {
        Ok(about) => about,
        Err(error) => return Some(at(place, &std::io::Error::from(error))),
    };
    if about.f_flag.contains(rustix::fs::StatVfsMountFlags::RDONLY) {
        return Some(at(place, &std::io::Error::from(rustix::io::Errno::ROFS)));
    }
    let access = rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK;
    if let Err(error) = rustix::fs::access(place, access) {
        return Some(at(place, &std::io::Error::from(error)));
    }
    let free = about.f_bavail.saturating_mul(about.f_frsize);
    (free < FREE_BYTES_MIN).then(|| {
        let what = format!("{free} bytes are free, a session needs at least {FREE_BYTES_MIN}");
        at(place, &what)
    })
}

/// Least free space, in bytes, with which a session starts.
const FREE_BYTES_MIN: u64 = 64 << 10;

/// The notes in all session directories.
fn all() -> Vec<OffNote> {
    let entries = directories()
        .into_iter()
        .filter_map(|dir| fs::read_dir(dir).ok());
    let notes = entries.flatten().flatten();
    notes.filter_map(|entry| read(&entry.path())).collect()
}

/// The note in a file, if the file has the name of one.
fn read(path: &Path) -> Option<OffNote> {
    let pid = pid_in_name(path.file_name()?.to_str()?)?;
    let about = fs::symlink_metadata(path).ok()?;
    if !about.is_file() {
        return None;
    }
    let mut bytes = fs::read(path).ok()?;
    bytes.truncate(NOTE_BYTES_MAX);
    let reason = String::from_utf8_lossy(&bytes).trim_end().to_owned();
    let written = about.modified().unwrap_or(SystemTime::UNIX_EPOCH);
    Some(OffNote {
        pid,
        reason,
        written,
    })
}

/// The process in the name of a note.
fn pid_in_name(name: &str) -> Option<u32> {
    let stem = name.strip_suffix(".off")?;
    let (pid, copy) = stem.split_once('-')?;
    let is_copy = !copy.is_empty() && copy.bytes().all(|digit| digit.is_ascii_hexdigit());
    pid.parse().ok().filter(|_| is_copy)
}

#[cfg(test)]
mod tests {
    use super::pid_in_name;

    #[test]
    fn notes_of_copies_name_their_process() {
        assert_eq!(pid_in_name("4711-0badcafe.off"), Some(4711));
        for name in [
            "4711.off",
            "4711-.off",
            "4711-xyz.off",
            "x.off",
            ".off",
            "4711-0badcafe.ring",
        ] {
            assert_eq!(pid_in_name(name), None, "{name}");
        }
    }
}
