//! What `/proc` says about processes: their numbers in pid namespaces, and the locks that they
//! hold.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use ringmark_format::session::ProcessId;
use ringmark_ring::identity;

/// The pids of all processes that `/proc` shows.
pub(crate) fn processes() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The pid in our namespace of the process that is `pid` in the namespace with this inode. `None`:
/// it is gone, or out of sight.
pub(crate) fn pid_here(pid: u32, pid_namespace: u64) -> Option<u32> {
    if pid_namespace == identity::own_pid_namespace() {
        return Some(pid);
    }
    processes().find(|here| {
        let namespace = fs::metadata(format!("/proc/{here}/ns/pid")).map(|m| m.ino());
        namespace.is_ok_and(|inode| inode == pid_namespace) && innermost_pid(*here) == Some(pid)
    })
}

/// Whether a process of this kernel and of our pid namespace is there, and is no zombie. What a trace
/// file says of its process can be asked so long after.
#[must_use]
pub fn lives_here(process: &ProcessId) -> bool {
    let who = process.pid.to_string();
    process.boot_id == identity::boot_id()
        && process.pid_namespace == identity::own_pid_namespace()
        && identity::start_time(&who) == Some(process.start_time)
        && !identity::is_zombie(&who)
}

/// The pid of a process in its own namespace: the last number of `NSpid:` in `/proc/PID/status`.
fn innermost_pid(pid: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("NSpid:"))?;
    line.split_ascii_whitespace().last()?.parse().ok()
}

/// The threads of a process: their numbers in our namespace, by those in their own.
pub(crate) fn threads(pid: u32) -> BTreeMap<u32, u32> {
    let entries = fs::read_dir(format!("/proc/{pid}/task")).into_iter();
    let names = entries.flatten().flatten().map(|entry| entry.file_name());
    let here = names.filter_map(|name| name.to_str()?.parse().ok());
    here.filter_map(|here| Some((innermost_pid(here)?, here)))
        .collect()
}

/// The process whose open file holds an exclusive lock on this file, other processes first.
pub(crate) fn holder_of(file: &File) -> Option<u32> {
    let inode = file.metadata().ok()?.ino();
    let own = std::process::id();
    processes()
        .find(|pid| *pid != own && holds_lock(*pid, inode))
        .or_else(|| holds_lock(own, inode).then_some(own))
}

fn holds_lock(pid: u32, inode: u64) -> bool {
    let base = PathBuf::from(format!("/proc/{pid}"));
    let Ok(fds) = fs::read_dir(base.join("fd")) else {
        return false;
    };
    let ending = format!(":{inode} ");
    fds.flatten().any(|fd| {
        let info = base.join("fdinfo").join(fd.file_name());
        let text = fs::read_to_string(info).unwrap_or_default();
        text.lines()
            .any(|line| line.contains("OFDLCK") && line.contains(&ending))
    })
}
