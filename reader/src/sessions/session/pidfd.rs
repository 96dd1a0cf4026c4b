//! The pidfd of a session's process: it tells when the process ends, and never means another one.

use std::os::fd::OwnedFd;

use ringmark_ring::RingFile;
use ringmark_ring::identity::{self, Liveness};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// A pidfd of the session's process. `None`: it is dead or out of sight, or its pid is another
/// process's by now.
pub(super) fn watch_process(ring: &RingFile) -> Option<OwnedFd> {
    let header = &ring.geometry().header;
    if header.pid_namespace != identity::own_pid_namespace() {
        return None;
    }
    let pid = Pid::from_raw(i32::try_from(header.pid).ok()?)?;
    let pidfd = pidfd_open(pid, PidfdFlags::empty()).ok()?;
    // Asked after the pidfd was opened: from then on the pid cannot pass to another process without
    // the pidfd reporting an end.
    let alive = identity::liveness(header, ring.file()) == Liveness::Alive;
    (alive || identity::is_unreaped(header)).then_some(pidfd)
}

/// Whether the process of a pidfd has not ended.
pub(super) fn is_alive(pidfd: &OwnedFd) -> bool {
    let mut fds = [PollFd::new(pidfd, PollFlags::IN)];
    poll(&mut fds, Some(&Timespec::default())).is_ok_and(|ready| ready == 0)
}
