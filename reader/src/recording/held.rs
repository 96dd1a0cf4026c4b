//! The sessions that a death watch holds, by process: a process may have several.

use std::os::unix::fs::MetadataExt;

use ringmark_format::ending::Ending;
use ringmark_format::session::ProcessId;

use crate::sessions::session::Session;

/// Most processes that are held at a time.
const PROCESSES_MAX: usize = 4096;
/// Most sessions of one process: any file of its user can claim to be its.
const SESSIONS_MAX: usize = 16;

/// Whose sessions belong together. The owner of the file counts, too: a header can say anything.
type Key = (Option<ProcessId>, Option<u32>);

/// A process, with its sessions in the order in which they started.
#[derive(Debug)]
pub(super) struct HeldProcess {
    key: Key,
    pub(super) sessions: Vec<Session>,
}

impl HeldProcess {
    fn has_died_by_now(&self) -> bool {
        self.sessions.iter().all(Session::has_died_by_now)
    }

    /// How the process ended, by the session that knows most of it.
    pub(super) fn ending(&self) -> Ending {
        let endings = self.sessions.iter().filter_map(Session::ending);
        let is_open = |ending: &Ending| matches!(ending, Ending::Untold | Ending::Gone);
        endings.min_by_key(is_open).unwrap_or(Ending::Untold)
    }
}

/// All processes that are held.
#[derive(Debug, Default)]
pub(super) struct Held {
    processes: Vec<HeldProcess>,
}

impl Held {
    /// All sessions.
    pub(super) fn sessions(&self) -> impl Iterator<Item = &Session> {
        self.processes.iter().flat_map(|process| &process.sessions)
    }

    /// Number of processes.
    pub(super) fn len(&self) -> usize {
        self.processes.len()
    }

    /// Whether no other process can be held.
    pub(super) fn is_full(&self) -> bool {
        self.len() >= PROCESSES_MAX
    }

    /// Whether this session is held already, be it through another path.
    pub(super) fn holds(&self, session: &Session) -> bool {
        let file = session.file_id();
        self.sessions().any(|held| held.file_id() == file)
    }

    /// Adds a session to its process.
    pub(super) fn add(&mut self, session: Session) {
        let key = key(&session);
        let is_its = |process: &&mut HeldProcess| {
            key.0.is_some() && process.key == key && process.sessions.len() < SESSIONS_MAX
        };
        match self.processes.iter_mut().find(is_its) {
            Some(process) => {
                process.sessions.push(session);
                let started = |session: &Session| session.header().mono_zero_ns;
                process.sessions.sort_by_key(started);
            }
            None => self.processes.push(HeldProcess {
                key,
                sessions: vec![session],
            }),
        }
    }

    /// Takes out the processes that have died, as of the last wait for ends.
    pub(super) fn take_dead(&mut self) -> Vec<HeldProcess> {
        let dead = self
            .processes
            .extract_if(.., |process| process.has_died_by_now());
        dead.collect()
    }
}

fn key(session: &Session) -> Key {
    let about = session.ring().file().metadata();
    (
        session.header().process(),
        about.ok().map(|about| about.uid()),
    )
}
