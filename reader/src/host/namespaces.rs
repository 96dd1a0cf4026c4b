//! Whether this process sees all of the machine, or is in a container.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use ringmark_ring::{identity, session_dir, small_file};

use super::finding::Finding;

/// The inode of the machine's own pid namespace, a constant of the kernel's interface.
const FIRST_PID_NAMESPACE: u64 = 0xEFFF_FFFC;
/// The same of its user namespace.
const FIRST_USER_NAMESPACE: u64 = 0xEFFF_FFFD;

/// What is out of sight.
pub(super) fn findings() -> Vec<Finding> {
    vec![kernel(), sight()]
}

fn kernel() -> Finding {
    let release = small_file::text("/proc/sys/kernel/osrelease");
    match release.as_str() {
        "" => Finding::limited("kernel", "cannot be seen", "mount /proc"),
        release => Finding::works("kernel", format!("Linux {release}")),
    }
}

fn sight() -> Finding {
    const ABOUT: &str = "container";
    let user = fs::metadata("/proc/self/ns/user").map(|about| about.ino());
    let has_own_users = user.is_ok_and(|inode| inode != FIRST_USER_NAMESPACE);
    let has_own_pids = identity::own_pid_namespace() != FIRST_PID_NAMESPACE;
    let mut parts = Vec::new();
    if let Some(name) = container() {
        parts.push(name);
    }
    if has_own_pids {
        parts.push("a pid namespace of its own: processes outside are out of sight");
    }
    if has_own_users {
        parts.push("a user namespace of its own: root here is not root outside");
    }
    match parts.as_slice() {
        [] if session_dir::uid() == 0 => Finding::works(ABOUT, "none; root sees all sessions"),
        [] => Finding::works(ABOUT, "none; sessions of other users are for root"),
        parts => Finding::works(ABOUT, parts.join("; ")),
    }
}

/// What container managers leave in a container.
fn container() -> Option<&'static str> {
    let marks = [
        ("/.dockerenv", "docker"),
        ("/run/.containerenv", "podman"),
        ("/run/systemd/container", "systemd-nspawn or another"),
    ];
    let found = marks.into_iter().find(|(path, _)| Path::new(path).exists());
    found.map(|(_, name)| name)
}
