//! How a process ended, as far as the kernel tells others than its parent, and whether it was killed
//! for lack of memory.
//!
//! | who knows | until when | since |
//! | --- | --- | --- |
//! | the pidfd, by `PIDFD_GET_INFO` | as long as it is open | Linux 6.15, once the parent has waited |
//! | `/proc/PID/stat` of a zombie, field 52 | the parent waits | Linux 3.5 |
//!
//! The one begins where the other ends, so they are asked in turn.

use std::os::fd::BorrowedFd;

use crate::system::{identity, raw, small_file};

/// The wait status of a process that is dead, as its parent gets it: from its pidfd, or from `/proc`
/// as long as its parent has not waited for it. `start_time` is that of the process, in ticks since
/// boot. `None`: the kernel does not tell it, or the process lives.
#[must_use]
pub fn wait_status(pidfd: Option<BorrowedFd<'_>>, pid: u32, start_time: u64) -> Option<i32> {
    let by_pidfd = || pidfd.and_then(raw::pidfd_exit_status);
    // Its parent may wait for it between the two.
    by_pidfd()
        .or_else(|| zombie_status(pid, start_time))
        .or_else(by_pidfd)
}

/// The wait status of a process whose parent has not waited for it yet.
fn zombie_status(pid: u32, start_time: u64) -> Option<i32> {
    let who = pid.to_string();
    let fields = identity::stat_fields(&who)?;
    let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
    let started: u64 = fields.get(22 - 3)?.parse().ok()?;
    let status = fields.get(52 - 3)?.parse().ok()?;
    let is_dead = matches!(fields.first(), Some(&"Z" | &"X"));
    (is_dead && started == start_time).then_some(status)
}

/// The kills for lack of memory that the control group of a process had counted at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryKills {
    file: String,
    count: u64,
}

impl MemoryKills {
    /// Those of the group that a process is in now. `None`: it is in none that counts, or this
    /// cannot be read.
    #[must_use]
    pub fn of(pid: u32) -> Option<Self> {
        let groups = small_file::text(&format!("/proc/{pid}/cgroup"));
        files(&groups).find_map(|file| {
            let count = count(&file)?;
            Some(Self { file, count })
        })
    }

    /// Whether the group has counted more by now.
    #[must_use]
    pub fn have_grown(&self) -> bool {
        count(&self.file).is_some_and(|count| count > self.count)
    }
}

/// The files that count the kills of these groups (lines of `/proc/PID/cgroup`): of version 1 for
/// memory, of version 2 for everything.
fn files(groups: &str) -> impl Iterator<Item = String> {
    groups.lines().flat_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (kinds, path) = (parts.next().unwrap_or(""), parts.next().unwrap_or(""));
        let path = if path == "/" { "" } else { path };
        let all = match kinds {
            "" => vec![
                format!("/sys/fs/cgroup{path}/memory.events"),
                format!("/sys/fs/cgroup/unified{path}/memory.events"),
            ],
            _ if kinds.split(',').any(|kind| kind == "memory") => {
                vec![format!("/sys/fs/cgroup/memory{path}/memory.oom_control")]
            }
            _ => Vec::new(),
        };
        all.into_iter()
    })
}

/// The number after `oom_kill`.
fn count(file: &str) -> Option<u64> {
    let text = small_file::text(file);
    let number = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
    number?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;
    use std::process::{Command, Stdio};

    #[test]
    fn files_are_found_in_both_versions() {
        let groups = "9:name=systemd:/x\n4:memory:/a/b\n2:cpu,cpuacct:/\n0::/\n";
        let found: Vec<_> = files(groups).collect();
        let expected = [
            "/sys/fs/cgroup/memory/a/b/memory.oom_control",
            "/sys/fs/cgroup/memory.events",
            "/sys/fs/cgroup/unified/memory.events",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    #[cfg_attr(miri, ignore = "no processes there")]
    fn a_dead_child_tells_its_status_before_it_is_waited_for() {
        use rustix::process::{Pid, PidfdFlags, pidfd_open};
        let mut command = Command::new("sh");
        let mut child = command
            .args(["-c", "read line; exit 7"])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let pid = child.id();
        let pidfd = pidfd_open(Pid::from_child(&child), PidfdFlags::empty()).unwrap();
        let start_time = identity::start_time(&pid.to_string()).unwrap();
        assert_eq!(wait_status(Some(pidfd.as_fd()), pid, start_time), None);
        drop(child.stdin.take());
        let dead = || wait_status(None, pid, start_time);
        while dead().is_none() {
            std::thread::yield_now();
        }
        assert_eq!(dead(), Some(0x700));
        assert_eq!(
            wait_status(None, pid, start_time + 1),
            None,
            "another process"
        );
        assert_eq!(child.wait().unwrap().code(), Some(7));
        assert_eq!(dead(), None, "it is gone");
        let told = wait_status(Some(pidfd.as_fd()), pid, start_time);
        assert!(matches!(told, Some(0x700) | None), "{told:?}");
    }
}
