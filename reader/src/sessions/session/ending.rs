//! How a session ended: what the kernel tells of its process, else what the ring file says.

use std::os::fd::AsFd;
use std::sync::OnceLock;

use ringmark_format::ending::Ending;
use ringmark_ring::identity;
use ringmark_ring::process_end::{self, MemoryKills};
use rustix::process::{WaitId, WaitIdOptions, waitid};

use super::Session;
use super::pidfd::is_alive;

/// `off`: the kernel is not asked how processes of others ended, as if it could not tell.
const SWITCH: &str = "RINGMARK_ASK_ENDS";

impl Session {
    /// How the session ended; `None`: it has not.
    ///
    /// What the kernel tells counts before what the ring file says: a process may be killed after
    /// its exit has begun. Unless the process is ours, the kernel tells it only since Linux 6.15, or
    /// until the parent has waited; it costs a few system calls.
    #[must_use]
    pub fn ending(&self) -> Option<Ending> {
        if self.process_goes_on() {
            return match self.ring.closed() {
                true => Some(Ending::Closed),
                false => self.process_ended().then_some(Ending::Replaced),
            };
        }
        let told = self.wait_status().and_then(Ending::of_wait_status);
        let from_file = || self.ring.exit_status().map(Ending::Exited);
        let ending = told.or_else(from_file).unwrap_or(match &self.pidfd {
            Some(_) => Ending::Untold,
            None => Ending::Gone,
        });
        Some(self.with_memory(ending))
    }

    /// The end of the session's process, told apart by what its control group has counted since the
    /// session was opened: one SIGKILL is like another.
    pub(crate) fn with_memory(&self, ending: Ending) -> Ending {
        const SIGKILL: u8 = 9;
        match ending {
            Ending::Killed { signal, core, .. } if signal == SIGKILL => Ending::Killed {
                signal,
                core,
                memory: self.kills.as_ref().is_some_and(MemoryKills::have_grown),
            },
            _ => ending,
        }
    }

    /// Whether the process is known to be dead, as of the last wait for ends: no system call for one
    /// that can be seen. A session that was closed goes on until then.
    pub(crate) fn has_died_by_now(&self) -> bool {
        self.is_known_dead() || self.pidfd.is_none() && self.process_ended()
    }

    /// Whether the process is there, be it as another program.
    fn process_goes_on(&self) -> bool {
        if let Some(pidfd) = &self.pidfd {
            return is_alive(pidfd);
        }
        let header = self.header();
        if header.pid_namespace != identity::own_pid_namespace() {
            return !self.process_ended();
        }
        let who = header.pid.to_string();
        let is_there = identity::start_time(&who) == Some(header.start_time);
        is_there && header.boot_id == identity::boot_id() && !identity::is_zombie(&who)
    }

    /// The wait status of the dead process, as far as it can be known here.
    fn wait_status(&self) -> Option<i32> {
        let pidfd = self.pidfd.as_ref();
        let status = pidfd.and_then(|pidfd| {
            // A child of ours stays to be waited for.
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
            waitid(WaitId::PidFd(pidfd.as_fd()), options).ok()?
        });
        if let Some(status) = status {
            let core = if status.dumped() { 0x80 } else { 0 };
            let signal = status.terminating_signal().map(|signal| signal | core);
            return signal.or(status.exit_status().map(|code| (code & 0xFF) << 8));
        }
        static IS_OFF: OnceLock<bool> = OnceLock::new();
        let header = self.header();
        let is_here = header.pid_namespace == identity::own_pid_namespace();
        if !is_here || *IS_OFF.get_or_init(|| std::env::var_os(SWITCH).is_some_and(|v| v == "off"))
        {
            return None;
        }
        process_end::wait_status(pidfd.map(AsFd::as_fd), header.pid, header.start_time)
    }
}
