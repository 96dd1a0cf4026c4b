//! Whether the kernel tells how processes of others ended.

use std::os::fd::AsFd;
use std::process::Child;

use ringmark_ring::process_end;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::finding::Finding;

/// Waits for a child that ends by itself, and sees whether its end can be known afterwards.
#[must_use]
pub fn ends(mut child: Child) -> Finding {
    const ABOUT: &str = "ends";
    let pidfd = Pid::from_raw(child.id().cast_signed())
        .and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
    let _ = child.wait();
    let status = process_end::wait_status(pidfd.as_ref().map(AsFd::as_fd), child.id(), 0);
    match status {
        Some(_) => Finding::works(ABOUT, "the kernel reports how each process ended"),
        None => Finding::limited(
            ABOUT,
            "how processes ended is known of children of 'run' and 'record -- CMD' only",
            "start the program with 'ringmark run', or use Linux 6.15 or later",
        ),
    }
}
