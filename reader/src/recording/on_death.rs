//! Waits while processes run and writes a dump of each one that dies: one for all its sessions.
//!
//! Every session is mapped as soon as it is found and dumped from the mapping: when the process is
//! dead, its ring file may be unlinked and its mount gone.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ringmark_format::ending::{Ending, signal_name};
use ringmark_ring::session_dir;

use crate::error::ReaderError;
use crate::interval::Interval;
use crate::pages::codec::Codec;
use crate::recording::dump::{Destination, Dump};
use crate::recording::held::{Held, HeldProcess};
use crate::recording::output::Durability;
use crate::recording::snapshot::snapshot;
use crate::sessions::directory_changes::DirectoryChanges;
use crate::sessions::find;
use crate::sessions::found_session::FoundSession;
use crate::sessions::pace::Pace;
use crate::sessions::session::{Access, Session, wait_for_end};

/// How often session directories are read.
const SCAN_EVERY: Duration = Duration::from_millis(20);
/// How often root reads the session directories in the mounts of other processes.
const SCAN_ROOTS_EVERY: Duration = Duration::from_millis(500);

/// What a watch reports.
#[derive(Debug)]
pub enum WatchReport {
    /// It has mapped a session and holds it from now on.
    Holding(PathBuf),
    /// A process died and its dump was written.
    Dumped {
        /// The dump.
        dump: PathBuf,
        /// Process id in the process's own pid namespace.
        pid: u32,
        /// Number of pages in it.
        pages: u64,
        /// How it ended.
        ending: Ending,
    },
    /// A process ended cleanly: no dump of it is wanted.
    Closed(PathBuf),
    /// A session could not be opened, or its dump not be written; the watch goes on.
    Failed(ReaderError),
}

/// After which ends a dump is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ends {
    /// After every end but a clean one: not after exit status 0.
    #[default]
    Crash,
    /// After every end.
    All,
}

/// Holds every session it finds and dumps those whose process dies.
#[derive(Debug)]
pub struct DeathWatch {
    directory: PathBuf,
    codec: Codec,
    ends: Ends,
    held: Held,
    /// Ring files that need no further look: held, dead, or refused.
    seen: HashSet<FoundSession>,
    changes: DirectoryChanges,
    scans: Interval,
    scans_of_roots: Interval,
    reports: Vec<WatchReport>,
}

impl DeathWatch {
    /// A watch that writes dumps into `directory`, which must be there.
    #[must_use]
    pub fn new(directory: &Path, codec: Codec) -> Self {
        Self {
            directory: directory.to_owned(),
            codec,
            ends: Ends::default(),
            held: Held::default(),
            seen: HashSet::new(),
            changes: DirectoryChanges::default(),
            scans: Interval::due(),
            scans_of_roots: Interval::due(),
            reports: Vec::new(),
        }
    }

    /// Sets after which ends a dump is written.
    pub fn set_ends(&mut self, ends: Ends) {
        self.ends = ends;
    }

    /// Watches until `stop` is set and passes what happens to `each`. Sessions that still live at
    /// the end get no dump.
    pub fn run(&mut self, stop: &AtomicBool, mut each: impl FnMut(WatchReport)) {
        let mut pace = Pace::new();
        while !stop.load(Ordering::Relaxed) {
            self.step();
            self.reports.drain(..).for_each(&mut each);
            pace.wait(self.held.sessions());
        }
    }

    /// Looks for new sessions and for deaths once; returns what happened.
    pub fn poll(&mut self) -> Vec<WatchReport> {
        wait_for_end(self.held.sessions(), Duration::ZERO);
        self.step();
        std::mem::take(&mut self.reports)
    }

    /// Number of processes held.
    #[must_use]
    pub fn holding(&self) -> usize {
        self.held.len()
    }

    fn step(&mut self) {
        if self.scans.take_due(SCAN_EVERY) && self.changes.is_due() {
            let found = find::all();
            let there: HashSet<_> = found.iter().collect();
            self.seen
                .retain(|place| there.contains(place) || place.path.starts_with("/proc"));
            found.into_iter().for_each(|place| self.hold(place));
        }
        if session_dir::uid() == 0 && self.scans_of_roots.take_due(SCAN_ROOTS_EVERY) {
            self.seen.retain(|place| place.path.exists());
            find::in_other_mounts()
                .into_iter()
                .for_each(|place| self.hold(place));
        }
        for process in self.held.take_dead() {
            self.let_go(process);
        }
    }

    fn hold(&mut self, place: FoundSession) {
        if self.held.is_full() || self.seen.contains(&place) {
            return;
        }
        match Session::open_found(&place, Access::Observe) {
            // Dead before it was seen: `record` and `snapshot` are for those.
            Ok(session) if session.ended() || self.held.holds(&session) => {}
            Ok(session) => {
                self.reports.push(WatchReport::Holding(place.path.clone()));
                self.held.add(session);
            }
            Err(error) if error.is_starting() => return self.changes.look_again(),
            Err(error) => self.reports.push(WatchReport::Failed(error)),
        }
        self.seen.insert(place);
    }

    /// Dumps a process that has ended in a way that is wanted.
    fn let_go(&mut self, process: HeldProcess) {
        let ending = process.ending();
        let Some(first) = process.sessions.first() else {
            return;
        };
        if self.ends == Ends::Crash && ending.is_clean() {
            self.reports
                .push(WatchReport::Closed(first.path().to_owned()));
            return;
        }
        let (pid, path) = (first.pid(), self.free_path(first, ending));
        match self.write_dump(process, &path) {
            Ok(pages) => self.reports.push(WatchReport::Dumped {
                dump: path,
                pid,
                pages,
                ending,
            }),
            Err(error) => self.reports.push(WatchReport::Failed(error)),
        }
    }

    /// Where the dump of a process goes: a file that is there is another one's evidence.
    fn free_path(&self, session: &Session, ending: Ending) -> PathBuf {
        let path = self.directory.join(dump_name(session, ending));
        if !path.exists() {
            return path;
        }
        let uuid = session.uuid().to_string();
        path.with_extension(format!("{}.rmk", &uuid[..8]))
    }

    /// Writes all sessions of a process into one dump; returns the number of pages. One that was
    /// truncated does not cost the others.
    fn write_dump(&mut self, process: HeldProcess, path: &Path) -> Result<u64, ReaderError> {
        let mut dump = Dump::create(&Destination::File(path.to_owned()), Durability::System)?;
        dump.set_codec(self.codec);
        let (mut pages, mut left) = (0, process.sessions.len());
        for session in process.sessions {
            left -= 1;
            match snapshot(session, None, &mut dump) {
                Ok(figures) => pages += figures.pages,
                Err(error @ ReaderError::Truncated { .. }) if left > 0 || pages > 0 => {
                    self.reports.push(WatchReport::Failed(error));
                }
                Err(error) => return Err(error),
            }
        }
        dump.finish()?;
        Ok(pages)
    }
}

/// File name of the dump of a session's process, such as `shop-812-SIGSEGV.rmk` or `shop-812-exit-1.rmk`: service
/// or process, pid, end.
#[must_use]
pub fn dump_name(session: &Session, ending: Ending) -> String {
    let end = match (ending.status(), ending.signal()) {
        (Some(status), _) => format!("exit-{status}"),
        (None, Some(signal)) => {
            signal_name(signal).map_or_else(|| format!("signal-{signal}"), str::to_owned)
        }
        (None, None) => ending.word().to_owned(),
    };
    file_name(session, &end)
}

/// File name of a dump of a session's process that is written for a reason. The names come from the traced process,
/// so only harmless characters of them are kept.
#[must_use]
pub fn file_name(session: &Session, reason: &str) -> String {
    let harmless = |c: char| {
        if c.is_ascii_alphanumeric() || "._-".contains(c) {
            c
        } else {
            '_'
        }
    };
    let plain = |text: &str| text.chars().take(64).map(harmless).collect::<String>();
    let name = plain(&session.name());
    let name = name.trim_start_matches('.');
    let name = if name.is_empty() { "session" } else { name };
    format!("{name}-{}-{}.rmk", session.pid(), plain(reason))
}
