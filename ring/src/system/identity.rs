//! Which process wrote a session, and whether it still lives: boot id, pid namespace, pid, and what that
//! process holds of the file, never a bare pid.
//!
//! A pid alone proves nothing. It is given to another process soon after, means another process in
//! another namespace, and stays the same when a process becomes another program by `exec`.
//!
//! | what is compared | what it excludes | where it says nothing |
//! | --- | --- | --- |
//! | record lock on byte 0 of the file | dead processes, `exec`, a child that inherited the file | a process that closed some descriptor of the file |
//! | writable map of the file from its start | readers, which map it read-only | without the right to read the maps |
//! | pid namespace, by inode | equal pids of two containers | without `/proc` |
//! | boot id | a session from before the last boot | in containers that are shown one of their own |
//!
//! A wrong *dead* would let a living session be removed, a wrong *alive* only keeps a file. So each
//! doubt is decided for *alive* as long as the lock or the map shows the process.

use std::fs;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use ringmark_format::session::SessionHeader;

use crate::system::{session_dir, small_file};

/// Identity of a process, as far as `/proc` tells it: what a session's header keeps of it. All 0
/// where there is no `/proc`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Identity {
    /// Boot id of the kernel, new at each boot; 0: unknown.
    pub boot_id: [u8; 16],
    /// Inode of the pid namespace; 0: unknown.
    pub pid_namespace: u64,
    /// Process id in that namespace, not as seen from outside of it.
    pub pid: u32,
    /// Start time in clock ticks since boot, in the process's time namespace; 0: unknown.
    pub start_time: u64,
}

/// Identity of this process, for the header of its session.
#[must_use]
pub fn own() -> Identity {
    Identity {
        boot_id: boot_id(),
        pid_namespace: own_pid_namespace(),
        pid: std::process::id(),
        start_time: start_time("self").unwrap_or(0),
    }
}

/// What stands for a boot id that could not be read.
const NO_BOOT_ID: [u8; 16] = [0; 16];

/// Boot id of the running kernel; zero if it cannot be read.
#[must_use]
pub fn boot_id() -> [u8; 16] {
    parse_uuid(&small_file::text("/proc/sys/kernel/random/boot_id"))
}

/// Inode of this process's pid namespace; 0 if it cannot be read.
#[must_use]
pub fn own_pid_namespace() -> u64 {
    // `pid:[4026531836]`. To follow the link takes longer.
    let link = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    let inode = link.to_str().and_then(|text| text.strip_prefix("pid:["));
    let inode = inode.and_then(|text| text.strip_suffix(']')?.parse().ok());
    inode.unwrap_or(0)
}

/// Start time of a process (`/proc/WHO/stat`, field 22) in clock ticks since boot: two processes of
/// the same pid differ in it. `None`: the process is gone, or `/proc` is not there.
#[must_use]
pub fn start_time(who: &str) -> Option<u64> {
    let fields = stat_fields(who)?;
    fields.split_ascii_whitespace().nth(22 - 3)?.parse().ok()
}

/// Threads of this process; 0 where `/proc` does not tell.
#[must_use]
pub fn threads() -> u32 {
    let fields = stat_fields("self").unwrap_or_default();
    let threads = fields.split_ascii_whitespace().nth(20 - 3);
    threads.and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// The fields of `/proc/WHO/stat` from the third on, the state.
pub(crate) fn stat_fields(who: &str) -> Option<String> {
    let stat = small_file::read(&format!("/proc/{who}/stat")).ok()?;
    // The name in parentheses may hold anything, also parentheses: fields start after the last.
    let after = stat.iter().rposition(|b| *b == b')')? + 2;
    let fields = std::str::from_utf8(stat.get(after..)?).ok()?;
    Some(fields.to_owned())
}

/// What became of the process that a ring file's header names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Liveness {
    /// It runs, and it is the one that wrote the header.
    Alive,
    /// It is gone, or has become another program by `exec`: nothing is written to the file any
    /// more.
    Dead,
}

/// Whether the process that wrote `header` still holds the session in `file`.
///
/// In its own pid namespace: the process of that pid must hold the session's record lock or map the file as
/// a producer does, which no later process of the same pid does, and none that became another program by
/// `exec`. Its start time says nothing against them: an emulator tells a program another one than `/proc`
/// tells others, and so does another time namespace.
/// Elsewhere, and where either side has no `/proc` to tell, the record lock decides alone.
/// (A lock on the open file description would survive in forked children.) Another boot id proves
/// nothing: containers are shown one of their own.
#[must_use]
pub fn liveness(header: &SessionHeader, file: &File) -> Liveness {
    if header.boot_id == NO_BOOT_ID || boot_id() == NO_BOOT_ID {
        return alive_if(lock_is_held(file));
    }
    if header.pid_namespace != own_pid_namespace() {
        let holds = crate::system::file_lock::holder(file, LIFE_BYTE)
            .is_some_and(|pid| pid == 0 || has_pid_there(&pid.to_string(), header));
        return alive_if(holds || is_mapped_elsewhere(header, file));
    }
    let holds = crate::system::file_lock::holder(file, LIFE_BYTE)
        .is_some_and(|pid| pid as u32 == header.pid);
    alive_if(holds || is_mapped(&header.pid.to_string(), file))
}

/// Whether a process has the same time namespace: the same monotonic clock, and start times that count from
/// the same moment. `None`: that cannot be read, as of one that has just ended. Where the kernel knows no
/// such namespaces, all share their clocks.
#[must_use]
pub fn shares_clocks(who: &str) -> Option<bool> {
    let namespace = |who: &str| fs::metadata(format!("/proc/{who}/ns/time")).map(|m| m.ino());
    let Ok(ours) = namespace("self") else {
        return Some(true);
    };
    Some(namespace(who).ok()? == ours)
}

fn alive_if(condition: bool) -> Liveness {
    if condition {
        Liveness::Alive
    } else {
        Liveness::Dead
    }
}

/// Whether a process maps `file` as the producer does: writable, from its start. (Readers map it
/// too, and a file that claims to be theirs must not live by that.)
fn is_mapped(who: &str, file: &File) -> bool {
    if is_zombie(who) {
        return false;
    }
    let (Ok(about), Ok(maps)) = (
        file.metadata(),
        fs::read_to_string(format!("/proc/{who}/maps")),
    ) else {
        return false;
    };
    let device = has_device_in_maps(file).then(|| device_text(about.dev()));
    maps.lines().any(|line| {
        let mut fields = line.split_ascii_whitespace().skip(1);
        let mut field = || fields.next().unwrap_or_default();
        let (rights, offset, dev, inode) = (field(), field(), field(), field());
        rights == "rw-s"
            && offset.bytes().all(|digit| digit == b'0')
            && inode.parse() == Ok(about.ino())
            && device.as_ref().is_none_or(|device| device == dev)
            && (line.contains(".ring") || line.contains("memfd:ringmark"))
    })
}

/// Whether the process that wrote `header` lives in a child pid namespace and maps `file`. From
/// here it has a different pid, so this looks at every process: only for sessions whose process
/// does not hold the record lock.
fn is_mapped_elsewhere(header: &SessionHeader, file: &File) -> bool {
    let entries = session_dir::entries(Path::new("/proc")).unwrap_or_default();
    let names = entries.iter().filter_map(|path| path.file_name()?.to_str());
    names
        .filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
        .any(|who| has_pid_there(who, header) && is_mapped(who, file))
}

/// Whether process `who` (a pid as seen from here) has the header's pid in the header's pid
/// namespace.
fn has_pid_there(who: &str, header: &SessionHeader) -> bool {
    let status = small_file::text(&format!("/proc/{who}/status"));
    let pids = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    let innermost = pids.and_then(|pids| pids.split_whitespace().last()?.parse().ok());
    let namespace = || fs::metadata(format!("/proc/{who}/ns/pid")).map(|about| about.ino());
    innermost == Some(header.pid) && namespace().is_ok_and(|inode| inode == header.pid_namespace)
}

/// Whether maps name the device that `fstat` does. Those of stacked filesystems may not.
fn has_device_in_maps(file: &File) -> bool {
    const TMPFS_MAGIC: i64 = 0x0102_1994;
    rustix::fs::fstatfs(file).is_ok_and(|about| about.f_type == TMPFS_MAGIC)
}

fn device_text(device: u64) -> String {
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    format!("{major:02x}:{minor:02x}")
}

/// Whether the process of a header is dead and its parent has not waited for it: the pid is still
/// its own.
#[must_use]
pub fn is_unreaped(header: &SessionHeader) -> bool {
    let who = header.pid.to_string();
    is_zombie(&who) && start_time(&who) == Some(header.start_time)
}

/// Whether process `who` is dead, and its parent has not waited for it.
#[must_use]
pub fn is_zombie(who: &str) -> bool {
    let stat = small_file::read(&format!("/proc/{who}/stat")).unwrap_or_default();
    let state = stat
        .iter()
        .rposition(|b| *b == b')')
        .and_then(|at| stat.get(at + 2));
    matches!(state, Some(b'Z' | b'X'))
}

/// Byte of the ring file whose record lock says "the process lives". One byte only: a lock over
/// the whole file would exclude the consumer's and the controllers' locks.
const LIFE_BYTE: u64 = 0;

/// Takes the record lock that says "this process has the session open". Not inherited by fork,
/// given back by the kernel at death and at `exec`. `false`: the file system has no locks, and
/// observers go by the map alone.
pub fn hold_lock(file: &File) -> bool {
    crate::system::file_lock::hold_record(file, LIFE_BYTE).is_ok()
}

/// The other process that holds the record lock, by its pid in this pid namespace; `None` also
/// where it is out of sight.
#[must_use]
pub fn lock_holder(file: &File) -> Option<i32> {
    crate::system::file_lock::holder(file, LIFE_BYTE).filter(|pid| *pid > 0)
}

/// Whether another process holds the record lock, in sight or not.
#[must_use]
pub fn lock_is_held(file: &File) -> bool {
    crate::system::file_lock::holder(file, LIFE_BYTE).is_some()
}

/// The 16 bytes of a uuid in text; zero for what is not one.
#[must_use]
pub fn parse_uuid(text: &str) -> [u8; 16] {
    let digits: String = text.chars().filter(|c| *c != '-').collect();
    u128::from_str_radix(&digits, 16)
        .map(u128::to_be_bytes)
        .unwrap_or_default()
}
