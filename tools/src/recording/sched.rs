//! Switches of the recorded threads, written beside their events.

use std::cell::RefCell;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::io;
use std::rc::Rc;

use ringmark_console::units::{count, counted};
use ringmark_console::{descriptors, note};
use ringmark_format::Uuid;
use ringmark_format::codec::write;
use ringmark_format::session::ProcessId;
use ringmark_profile::{SwitchRange, SwitchWatch};
use ringmark_reader::{Beside, Recorder, Session};

use crate::options::perf::ALLOWED_BY;

/// Most switches of a program that are kept until its session is found.
const EARLY_MAX: usize = 1 << 20;

/// Whether switches are recorded.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
pub(crate) struct SchedOption {
    /// Record when threads get a processor and leave it, too: 'report' then says of each span how
    /// long it ran, waited, and had no processor
    #[arg(long)]
    sched: bool,
}

impl SchedOption {
    /// What watches a program that is started; `None`: that is not wanted.
    pub(super) fn watches(self) -> Option<Watches> {
        self.sched.then(Watches::default)
    }

    /// The same for processes that run: those whose sessions a recorder has now, and later ones.
    pub(super) fn watches_of(self, recorder: &mut Recorder) -> Option<Watches> {
        let watches = self.watches();
        watches.iter().for_each(|watches| watches.beside(recorder));
        watches
    }
}

/// Watches the threads of recorded processes. Clones are the same one.
#[derive(Debug, Clone, Default)]
pub(super) struct Watches(Rc<RefCell<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    /// The program that was started, until its session is found: its pid, and its switches so far.
    early: Option<(u32, SwitchWatch, Vec<SwitchRange>)>,
    processes: HashMap<Key, Process>,
    figures: Figures,
}

/// Which process a session is of; where that is not known, it is one of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Key {
    Process(ProcessId),
    Session(Uuid),
}

/// A process that is recorded.
#[derive(Debug, Default)]
struct Process {
    /// `None`: it may not be watched.
    watch: Option<SwitchWatch>,
    /// Switches from before its first session.
    early: Vec<SwitchRange>,
    /// Its sessions that are recorded.
    sessions: HashSet<Uuid>,
}

/// What could not be had.
#[derive(Debug, Default)]
struct Figures {
    /// Processes that were not watched, and why, of the first one.
    processes_left_out: u64,
    refused: Option<String>,
    /// Threads that were not watched.
    threads_left_out: u64,
    /// Switches without room.
    lost: u64,
}

impl Watches {
    /// Watches a program that was just started.
    pub(super) fn begin(&self, pid: u32) {
        descriptors::take_all();
        // Where it is refused, it is again when there is a session, and said then.
        let watch = SwitchWatch::attach(pid).ok();
        self.0.borrow_mut().early = watch.map(|watch| (pid, watch, Vec::new()));
    }

    /// Goes on with a program whose session was not found yet.
    pub(super) fn keep_up(&self) {
        if let Some((_, watch, ranges)) = &mut self.0.borrow_mut().early {
            ranges.extend(watch.take());
            let mut kept = ranges
                .iter()
                .map(|range| range.switches.len())
                .sum::<usize>();
            while kept > EARLY_MAX {
                kept -= ranges.remove(0).switches.len();
            }
        }
    }

    /// Has a recorder write what is watched. The sessions that it has are watched from now on.
    pub(super) fn beside(&self, recorder: &mut Recorder) {
        let mut inner = self.0.borrow_mut();
        recorder
            .sessions()
            .for_each(|session| inner.follow(session));
        drop(inner);
        recorder.write_beside(Box::new(self.clone()));
    }

    /// Says what could not be had.
    pub(super) fn tell(&self) {
        let mut inner = self.0.borrow_mut();
        inner.early = None;
        let open: Vec<_> = inner.processes.drain().collect();
        open.iter()
            .for_each(|(_, process)| inner.figures.add(process));
        inner.figures.lines().iter().for_each(|line| note(line));
    }
}

impl Beside for Watches {
    fn blocks(&mut self, session: &Session, at_end: bool) -> Vec<Vec<u8>> {
        let mut inner = self.0.borrow_mut();
        inner.follow(session);
        let ranges = inner.take(session, at_end);
        let blocks = ranges.iter().map(|range| {
            let mut block = Vec::new();
            // No moment has as many switches as a block does not hold.
            let _ = write::switches(&mut block, session.uuid(), &range.head, &range.switches);
            block
        });
        blocks.collect()
    }
}

impl Inner {
    /// Begins to watch a process, and keeps why if that is refused.
    fn attach(&mut self, pid: u32) -> Option<SwitchWatch> {
        descriptors::take_all();
        match SwitchWatch::attach(pid) {
            Ok(watch) => Some(watch),
            // It has ended: what it did was before.
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => {
                self.figures.refuse(&error);
                None
            }
        }
    }

    /// Watches the process of a session, if it does not yet.
    fn follow(&mut self, session: &Session) {
        let key = key(session);
        if let Some(process) = self.processes.get_mut(&key) {
            process.sessions.insert(session.uuid());
            return;
        }
        let pid = session.pid_here();
        let early = self.early.take_if(|(early, ..)| Some(*early) == pid);
        let (watch, early) = match (early, pid) {
            (Some((_, watch, ranges)), _) => (Some(watch), ranges),
            (None, Some(pid)) => (self.attach(pid), Vec::new()),
            (None, None) => {
                if !session.ended() {
                    let error = io::Error::other("its process is out of sight");
                    self.figures.refuse(&error);
                }
                (None, Vec::new())
            }
        };
        let sessions = HashSet::from([session.uuid()]);
        let process = Process {
            watch,
            early,
            sessions,
        };
        self.processes.insert(key, process);
    }

    /// What there is to write for a session.
    fn take(&mut self, session: &Session, at_end: bool) -> Vec<SwitchRange> {
        let Entry::Occupied(mut entry) = self.processes.entry(key(session)) else {
            return Vec::new();
        };
        let process = entry.get_mut();
        let mut ranges = std::mem::take(&mut process.early);
        if let Some(watch) = &mut process.watch {
            ranges.extend(match at_end {
                true => watch.take_rest(),
                false => watch.take(),
            });
        }
        if at_end {
            process.sessions.remove(&session.uuid());
            if process.sessions.is_empty() {
                self.figures.add(&entry.remove());
            }
        }
        ranges
    }
}

fn key(session: &Session) -> Key {
    let process = session.header().process();
    process.map_or_else(|| Key::Session(session.uuid()), Key::Process)
}

impl Figures {
    fn refuse(&mut self, error: &io::Error) {
        self.processes_left_out += 1;
        self.refused.get_or_insert_with(|| error.to_string());
    }

    /// Adds those of a process that is watched no longer.
    fn add(&mut self, process: &Process) {
        if let Some(watch) = &process.watch {
            self.threads_left_out += watch.threads_left_out();
            self.lost = self.lost.saturating_add(watch.without_room());
        }
    }

    fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if let Some(error) = &self.refused {
            let of = match self.processes_left_out {
                1 => String::new(),
                more => format!(" of {} processes", count(more)),
            };
            lines.push(format!(
                "--sched: what threads{of} do is not recorded: this user may not watch it here ({error}); {ALLOWED_BY}"
            ));
        }
        if self.threads_left_out > 0 {
            lines.push(format!(
                "--sched: what {} did is not recorded: there are not enough descriptors ('ulimit -n'), or they began as the recording did",
                counted(self.threads_left_out, "thread")
            ));
        }
        if self.lost > 0 {
            lines.push(format!(
                "--sched: {} switches had no room: what threads did in those moments is not known",
                count(self.lost)
            ));
        }
        lines
    }
}
