//! How recorded sessions ended, as far as the kernel and the caller say.

use ringmark_format::ending::Ending;

use crate::sessions::session::Session;

/// Most ends of sessions that wait to be asked for.
const FOUND_MAX: usize = 1000;

/// How a session ended that was recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionEnd {
    /// Service name, or the name of the process.
    pub name: String,
    /// Process id in the process's own pid namespace.
    pub pid: u32,
    /// How it ended.
    pub ending: Ending,
}

/// The ends of sessions, and what helps to find them.
#[derive(Debug, Default)]
pub(super) struct SessionEnds {
    /// What the caller knows of the ends of processes, by their pids.
    known: Vec<(u32, Ending)>,
    /// How sessions ended, since they were asked for.
    found: Vec<SessionEnd>,
}

impl SessionEnds {
    /// Notes what the caller knows of a process, by its pid here.
    pub(super) fn know(&mut self, pid: u32, ending: Ending) {
        self.known.push((pid, ending));
    }

    /// The end of a session, which the caller may know better.
    pub(super) fn of(&self, session: &Session, found: Ending) -> SessionEnd {
        let is_here = |(pid, _): &&(u32, Ending)| session.pid_here() == Some(*pid);
        // What a wait has given cannot be asked for again.
        let known = self.known.iter().find(is_here);
        let known = known.map(|(_, ending)| session.with_memory(*ending));
        let is_open = matches!(found, Ending::Exited(_) | Ending::Gone | Ending::Untold);
        SessionEnd {
            name: session.name(),
            pid: session.pid(),
            ending: known.filter(|_| is_open).unwrap_or(found),
        }
    }

    /// Keeps the end of a session until it is asked for.
    pub(super) fn add(&mut self, end: SessionEnd) {
        self.found.truncate(FOUND_MAX - 1);
        self.found.push(end);
    }

    /// The ends since the last call.
    pub(super) fn take(&mut self) -> Vec<SessionEnd> {
        std::mem::take(&mut self.found)
    }
}
