//! Switches of the recorded threads, what they wait for and where they run, written beside their events.

use std::cell::RefCell;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::io;
use std::rc::Rc;
use std::time::{Duration, Instant};

use ringmark_console::units::{count, counted};
use ringmark_console::{descriptors, note};
use ringmark_format::codec::write;
use ringmark_format::samples::HAS_KERNEL;
use ringmark_format::session::ProcessId;
use ringmark_format::{Uuid, samples, seen_waits};
use ringmark_profile::{SampleWatch, SeenSample, SeenWait, SwitchRange, SwitchWatch, WaitWatch};
use ringmark_reader::{Beside, Recorder, Session};

use crate::options::perf::{ALLOWED_BY, WAITS_ALLOWED_BY};

/// Most switches, and most waits and samples, of a program that are kept until its session is found.
const EARLY_MAX: usize = 1 << 20;
const EARLY_WAITS_MAX: usize = 1 << 16;
const EARLY_SAMPLES_MAX: usize = 1 << 16;

/// So many waits and samples are worth a block, and those that are so old: each block has its texts once.
const ENOUGH: usize = 1 << 10;
const WRITE_EVERY: Duration = Duration::from_secs(1);

/// What is recorded of threads beside their events.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
pub(crate) struct ThreadOptions {
    /// Record when threads get a processor and leave it, too: 'report' then says of each span how
    /// long it ran, waited, and had no processor
    #[arg(long)]
    sched: bool,
    /// Record what threads wait for, too: which call, file or lock, and in which functions. It is
    /// seen by looking from outside, 10 to 100 times a second
    #[arg(long)]
    waits: bool,
    /// Record which functions run, too: so many samples in each second that a thread runs
    #[arg(long, value_name = "HZ", value_parser = clap::value_parser!(u64).range(1..=1000))]
    sample: Option<u64>,
}

impl ThreadOptions {
    /// What watches a program that is started; `None`: that is not wanted.
    pub(crate) fn watches(self) -> Option<Watches> {
        (self.sched || self.waits || self.sample.is_some()).then(|| {
            let inner = Inner {
                wanted: self,
                ..Inner::default()
            };
            Watches(Rc::new(RefCell::new(inner)))
        })
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
pub(crate) struct Watches(Rc<RefCell<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    wanted: ThreadOptions,
    /// The program that was started, until its session is found: its pid, and what was seen so far.
    early: Option<(u32, Watched)>,
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
    watched: Watched,
    /// Its sessions that are recorded.
    sessions: HashSet<Uuid>,
}

/// What watches a process, and what it saw that is not written yet.
#[derive(Debug, Default)]
struct Watched {
    /// `None`: it may not be watched, or that is not wanted.
    switches: Option<SwitchWatch>,
    waits: Option<WaitWatch>,
    samples: Option<SampleWatch>,
    ranges: Vec<SwitchRange>,
    seen: Vec<SeenWait>,
    ran: Vec<SeenSample>,
    /// Since when waits and samples wait to be written.
    written: Option<Instant>,
}

impl Watched {
    /// Takes what there is.
    fn look(&mut self, at_end: bool) {
        if let Some(watch) = &mut self.switches {
            self.ranges.extend(match at_end {
                true => watch.take_rest(),
                false => watch.take(),
            });
        }
        if let Some(watch) = &mut self.waits {
            self.seen.extend(match at_end {
                true => watch.take_rest(),
                false => watch.take(),
            });
        }
        if let Some(watch) = &mut self.samples {
            self.ran.extend(watch.take());
        }
    }

    /// Forgets what is too much to be kept.
    fn bound(&mut self) {
        let switches = self.ranges.iter().map(|range| range.switches.len());
        let mut kept = switches.sum::<usize>();
        while kept > EARLY_MAX {
            kept -= self.ranges.remove(0).switches.len();
        }
        let too_many = self.seen.len().saturating_sub(EARLY_WAITS_MAX);
        self.seen.drain(..too_many);
        let too_many = self.ran.len().saturating_sub(EARLY_SAMPLES_MAX);
        self.ran.drain(..too_many);
    }

    /// Blocks of all that was taken and is worth one.
    fn blocks(&mut self, session: Uuid, at_end: bool) -> Vec<Vec<u8>> {
        let ranges = self.ranges.drain(..);
        let mut blocks: Vec<_> = ranges
            .map(|range| {
                let mut block = Vec::new();
                // No moment has as many switches as a block does not hold.
                let _ = write::switches(&mut block, session, &range.head, &range.switches);
                block
            })
            .collect();
        if at_end || self.is_due() {
            blocks.extend(self.waits_block(session));
            blocks.extend(self.samples_block(session));
        }
        blocks
    }

    /// Whether waits and samples are worth a block.
    fn is_due(&mut self) -> bool {
        let since = *self.written.get_or_insert_with(Instant::now);
        let is_due = self.seen.len() + self.ran.len() >= ENOUGH || since.elapsed() >= WRITE_EVERY;
        self.written = self.written.filter(|_| !is_due);
        is_due
    }

    /// A block of the waits that were seen; `None`: there are none.
    fn waits_block(&mut self, session: Uuid) -> Option<Vec<u8>> {
        let waits = self.seen.iter().map(|seen| {
            let wait = seen_waits::SeenWait {
                from_mono_ns: seen.from_mono_ns,
                to_mono_ns: seen.to_mono_ns,
                tid: seen.tid,
                text: 0,
                text_bytes: 0,
                reserved: 0,
            };
            (wait, seen.text.as_bytes())
        });
        let mut block = Vec::new();
        // A text has some KiB at most.
        let _ = write::seen_waits(&mut block, session, waits);
        self.seen.clear();
        (!block.is_empty()).then_some(block)
    }

    /// A block of the samples that were taken; `None`: there are none.
    fn samples_block(&mut self, session: Uuid) -> Option<Vec<u8>> {
        let watch = self.samples.as_mut()?;
        let head = samples::Samples {
            period_ns: watch.period_ns(),
            lost: watch.take_lost(),
            samples: 0,
            texts_bytes: 0,
            flags: if watch.has_kernel() { HAS_KERNEL } else { 0 },
            reserved: 0,
        };
        let ran = self.ran.iter().map(|seen| {
            let sample = samples::Sample {
                mono_ns: seen.mono_ns,
                tid: seen.tid,
                text: 0,
                text_bytes: 0,
                reserved: 0,
            };
            (sample, seen.text.as_bytes())
        });
        let mut block = Vec::new();
        // A text has some KiB at most.
        let _ = write::samples(&mut block, session, &head, ran);
        self.ran.clear();
        (!block.is_empty()).then_some(block)
    }
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
    /// What threads wait for may not be read, of a process.
    waits_refused: bool,
    /// Threads that were not looked at.
    not_looked_at: u64,
    /// Processes that were not sampled, and why, of the first one.
    processes_not_sampled: u64,
    samples_refused: Option<String>,
    /// Threads that were not sampled.
    threads_not_sampled: u64,
    /// Samples without room.
    samples_lost: u64,
}

impl Watches {
    /// Watches a program that was just started.
    pub(super) fn begin(&self, pid: u32) {
        let mut inner = self.0.borrow_mut();
        // Where it is refused, it is again when there is a session, and said then.
        let watched = inner.attach(pid, false);
        inner.early = Some((pid, watched));
    }

    /// Watches a process that runs, and keeps what it did last.
    pub(crate) fn keep(&self, pid: u32) {
        let mut inner = self.0.borrow_mut();
        let watched = inner.attach(pid, true);
        inner.early = Some((pid, watched));
    }

    /// What is kept, as blocks of a session of that process.
    pub(crate) fn kept(&self, session: Uuid) -> Vec<Vec<u8>> {
        let mut inner = self.0.borrow_mut();
        let Some((_, mut watched)) = inner.early.take() else {
            return Vec::new();
        };
        watched.look(true);
        inner.figures.add(&watched);
        watched.blocks(session, true)
    }

    /// Goes on with a program whose session was not found yet, or that is kept.
    pub(crate) fn keep_up(&self) {
        if let Some((_, watched)) = &mut self.0.borrow_mut().early {
            watched.look(false);
            watched.bound();
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
    pub(crate) fn tell(&self) {
        let mut inner = self.0.borrow_mut();
        inner.early = None;
        let open: Vec<_> = inner.processes.drain().collect();
        open.iter()
            .for_each(|(_, process)| inner.figures.add(&process.watched));
        inner.figures.lines().iter().for_each(|line| note(line));
    }
}

impl Beside for Watches {
    fn blocks(&mut self, session: &Session, at_end: bool) -> Vec<Vec<u8>> {
        let mut inner = self.0.borrow_mut();
        inner.follow(session);
        inner.take(session, at_end)
    }
}

impl Inner {
    /// Begins to watch a process, and keeps why if that is refused and to be said.
    fn attach(&mut self, pid: u32, is_said: bool) -> Watched {
        descriptors::take_all();
        let mut watched = Watched::default();
        if self.wanted.sched {
            match SwitchWatch::attach(pid) {
                Ok(watch) => watched.switches = Some(watch),
                // It has ended: what it did was before.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) if is_said => self.figures.refuse(&error),
                Err(_) => {}
            }
        }
        if self.wanted.waits {
            // There is no other reason than that it has ended.
            watched.waits = WaitWatch::attach(pid).ok();
        }
        if let Some(hertz) = self.wanted.sample {
            match SampleWatch::attach(pid, hertz) {
                Ok(watch) => watched.samples = Some(watch),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) if is_said => self.figures.refuse_samples(&error),
                Err(_) => {}
            }
        }
        watched
    }

    /// Watches the process of a session, if it does not yet.
    fn follow(&mut self, session: &Session) {
        let key = key(session);
        if let Some(process) = self.processes.get_mut(&key) {
            process.sessions.insert(session.uuid());
            return;
        }
        let pid = session.pid_here();
        let early = self.early.take_if(|(early, _)| Some(*early) == pid);
        let watched = match (early, pid) {
            (Some((_, watched)), _) if self.has_all(&watched) => watched,
            (_, Some(pid)) => self.attach(pid, true),
            (_, None) => {
                if !session.ended() {
                    let error = io::Error::other("its process is out of sight");
                    if self.wanted.sched {
                        self.figures.refuse(&error);
                    }
                    if self.wanted.sample.is_some() {
                        self.figures.refuse_samples(&error);
                    }
                }
                Watched::default()
            }
        };
        let sessions = HashSet::from([session.uuid()]);
        self.processes.insert(key, Process { watched, sessions });
    }

    /// Whether all is watched that is wanted.
    fn has_all(&self, watched: &Watched) -> bool {
        let has_switches = watched.switches.is_some() || !self.wanted.sched;
        has_switches && (watched.samples.is_some() || self.wanted.sample.is_none())
    }

    /// What there is to write for a session.
    fn take(&mut self, session: &Session, at_end: bool) -> Vec<Vec<u8>> {
        let Entry::Occupied(mut entry) = self.processes.entry(key(session)) else {
            return Vec::new();
        };
        let process = entry.get_mut();
        process.watched.look(at_end);
        let blocks = process.watched.blocks(session.uuid(), at_end);
        if at_end {
            process.sessions.remove(&session.uuid());
            if process.sessions.is_empty() {
                self.figures.add(&entry.remove().watched);
            }
        }
        blocks
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

    fn refuse_samples(&mut self, error: &io::Error) {
        self.processes_not_sampled += 1;
        self.samples_refused
            .get_or_insert_with(|| error.to_string());
    }

    /// Adds those of a process that is watched no longer.
    fn add(&mut self, watched: &Watched) {
        if let Some(watch) = &watched.switches {
            self.threads_left_out += watch.threads_left_out();
            self.lost = self.lost.saturating_add(watch.without_room());
        }
        if let Some(watch) = &watched.waits {
            self.waits_refused |= watch.is_refused();
            self.not_looked_at += watch.threads_left_out();
        }
        if let Some(watch) = &watched.samples {
            self.threads_not_sampled += watch.threads_left_out();
            self.samples_lost = self.samples_lost.saturating_add(watch.without_room());
        }
    }

    fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let of = |processes| match processes {
            1 => String::new(),
            more => format!(" of {} processes", count(more)),
        };
        if let Some(error) = &self.refused {
            let of = of(self.processes_left_out);
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
        if self.waits_refused {
            lines.push(format!(
                "--waits: which calls threads wait in may not be seen here: what is recorded is how the kernel waits; {WAITS_ALLOWED_BY}"
            ));
        }
        if self.not_looked_at > 0 {
            lines.push(format!(
                "--waits: what {} waited for is not recorded: there are not enough descriptors ('ulimit -n')",
                counted(self.not_looked_at, "thread")
            ));
        }
        if let Some(error) = &self.samples_refused {
            lines.push(format!(
                "--sample: which functions run in threads{} is not recorded: this user may not sample it here ({error}); {ALLOWED_BY}",
                of(self.processes_not_sampled)
            ));
        }
        if self.threads_not_sampled > 0 {
            lines.push(format!(
                "--sample: what {} ran is not recorded: there are not enough descriptors ('ulimit -n'), or they began as the recording did",
                counted(self.threads_not_sampled, "thread")
            ));
        }
        if self.samples_lost > 0 {
            lines.push(format!(
                "--sample: {} had no room: what threads ran in those moments is not known",
                counted(self.samples_lost, "sample")
            ));
        }
        lines
    }
}
