//! The stepping harness: a traced program runs one instruction at a time; at every instruction of
//! its own text (Ringmark's code is part of it) the shared memory is recovered as if the program
//! had been killed there, and compared with what the program says it did.
//!
//! A *state* is one such stop. In each of them `ImageReader` runs the reader's own drain over the
//! mapped ring file: sealed pages, open pages, schema, counters. Every `full_every`-th state also
//! goes the whole way ([`full`]): a copy of the file of a dead process, the recorder, a dump, the
//! decoder. Instructions of the C library are stepped and not counted.

mod full;
pub(crate) mod image;
mod oracle;
pub(crate) mod ptrace;
mod types;

use std::collections::HashMap;
use std::fs::{self, File};
use std::mem;
use std::path::PathBuf;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use ringmark_reader::{Access, Batch, Session, SessionDrain};
use ringmark_ring::Mapping;
use ringmark_tests::fixture::{Counters, Fixture};
use ringmark_tests::{Running, is_long};

use image::{Image, ImageReader};
use oracle::{Calls, Oracle};
use ptrace::Stop;
use types::CONTEXTS;

const STEPPED: &str = ringmark_tests::program!("stepped");

/// One run of the stepped program.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) workload: &'static str,
    pub(crate) count: u64,
    pub(crate) mode: &'static str,
    pub(crate) page: &'static str,
    pub(crate) ring: &'static str,
    /// How often in each call outside of handlers a signal comes at one and the same instruction; 0:
    /// never. (Where it comes every time, a search for room never ends before the page is full.)
    pub(crate) signals: u64,
    /// At which of a call's instructions, in the order in which it comes to them: each one whose number this divides.
    pub(crate) signals_at: u64,
    /// In handlers another signal comes at every stop whose number this divides; 0: none.
    pub(crate) inner_every: u64,
    /// The test consumes at every state whose number this divides; 0: never.
    pub(crate) consume_every: u64,
    pub(crate) full_every: u64,
}

impl Plan {
    pub(crate) fn new(workload: &'static str, count: u64, mode: &'static str) -> Self {
        Self {
            workload,
            count,
            mode,
            page: "4K",
            ring: "12K",
            signals: 0,
            signals_at: 1,
            inner_every: 0,
            consume_every: 0,
            full_every: 500,
        }
    }
}

/// What a run came to.
#[derive(Debug, Default, Clone)]
pub(crate) struct Report {
    /// States recovered and checked.
    pub(crate) states: u64,
    /// Those of them that took the whole way through recorder and decoder.
    pub(crate) full: u64,
    /// Stops at which there was no session yet, and so nothing to recover; they are no states.
    pub(crate) before: u64,
    /// Instructions outside of the program's text.
    pub(crate) outside: u64,
    pub(crate) calls: u64,
    /// Calls of handlers.
    pub(crate) handlers: u64,
    pub(crate) lost: u64,
    pub(crate) turns: u64,
    /// Most calls under way at once.
    pub(crate) depth: u64,
    pub(crate) taken: u64,
    pub(crate) time: Duration,
}

/// What did not hold, and at which state.
#[derive(Debug)]
pub(crate) struct Violation {
    pub(crate) state: u64,
    pub(crate) what: String,
}

/// Runs a plan to its end, or to the first state in which something does not hold.
pub(crate) fn run(plan: &Plan) -> Result<Report, Violation> {
    ptrace::pin();
    let mut run = Run::start(plan).expect("a program to step");
    let started = Instant::now();
    let done = run.go();
    run.report.time = started.elapsed();
    match done {
        Ok(()) => Ok(run.report),
        Err(what) => Err(Violation {
            state: run.report.states,
            what,
        }),
    }
}

/// A thread of the program, and where its running handlers return to.
struct Thread {
    tid: i32,
    returns: Vec<(u64, u64)>,
    /// The call that is under way, and of each of its instructions the number, and how often it was met.
    call: u64,
    signals: HashMap<u64, (u64, u64)>,
    /// Instructions of all calls so far, each counted once a call.
    instructions: u64,
    /// At the first instruction of a handler: the kernel takes no signal from a tracer there.
    entered: bool,
    /// How often it was at each instruction since a call began or returned.
    visits: HashMap<u64, u64>,
}

impl Thread {
    fn new(tid: i32) -> Self {
        Self {
            tid,
            returns: Vec::new(),
            call: 0,
            signals: HashMap::new(),
            instructions: 0,
            entered: false,
            visits: HashMap::new(),
        }
    }
}

struct Run<'p> {
    plan: &'p Plan,
    fixture: Fixture,
    _program: Running,
    ledger: Mapping,
    /// The one that is stepped is the last.
    threads: Vec<Thread>,
    text: Vec<(u64, u64)>,
    ring_file: Option<PathBuf>,
    reader: Option<ImageReader>,
    consumer: Option<(SessionDrain, Batch)>,
    image: Image,
    oracle: Oracle,
    last_calls: Calls,
    report: Report,
}

impl<'p> Run<'p> {
    fn start(plan: &'p Plan) -> std::io::Result<Self> {
        let fixture = Fixture::new("step");
        let path = fixture.path("ledger");
        let _ = Counters::new(path.clone());
        let (mode, page, ring) = (plan.mode, plan.page, plan.ring);
        let ringmark = format!("mode={mode},page={page},ring={ring},session=1M,control=off,warm=1");
        let ledger_text = path.display();
        let arguments = format!("{} {} {ledger_text}", plan.workload, plan.count);
        let program = fixture.start(STEPPED, &ringmark, &arguments);
        let pid = program.id() as i32;
        ptrace::attach(pid)?;
        let ledger = Mapping::read_only(&File::open(&path)?, 0, 4096);
        let exact = plan.signals == 0 && plan.workload != "threads";
        let oracle = Oracle::new(plan.mode == "discard", exact);
        Ok(Self {
            plan,
            fixture,
            _program: program,
            ledger: ledger.map_err(|e| std::io::Error::other(e.to_string()))?,
            threads: vec![Thread::new(pid)],
            text: text_of(pid, STEPPED)?,
            ring_file: None,
            reader: None,
            consumer: None,
            image: Image::default(),
            oracle,
            last_calls: Calls::default(),
            report: Report::default(),
        })
    }

    fn go(&mut self) -> Result<(), String> {
        let mut signal = 0;
        while let Some(thread) = self.threads.last_mut() {
            let stop = ptrace::step(thread.tid, signal).map_err(|e| format!("step: {e}"))?;
            signal = 0;
            match stop {
                Stop::Stepped => {
                    if let Some(state) = self.stopped()? {
                        signal = state;
                    }
                }
                Stop::Cloned(tid) => self.threads.push(Thread::new(tid)),
                Stop::Ended if self.threads.len() > 1 => drop(self.threads.pop()),
                Stop::Marked => return self.end(),
                Stop::Ended | Stop::Other(_) => return Err(format!("the program: {stop:?}")),
            }
        }
        Ok(())
    }

    /// After one instruction; returns the signal to go on with.
    fn stopped(&mut self) -> Result<Option<i32>, String> {
        let thread = self.threads.last_mut().ok_or("a thread")?;
        let at = ptrace::instruction(thread.tid);
        if !self
            .text
            .iter()
            .any(|(start, end)| (*start..*end).contains(&at))
        {
            self.report.outside += 1;
            // Where a handler's return leads may be the C library.
            thread.leave_handler(at);
            return Ok(None);
        }
        let returned = thread.leave_handler(at);
        let calls = self.calls();
        let has_changed = mem::replace(&mut self.last_calls, calls) != calls;
        let thread = self.threads.last_mut().ok_or("a thread")?;
        if thread.loops(at, has_changed) && !is_long() {
            return Ok(None);
        }
        self.check(&calls)?;
        // Changes before and behind each call of the main thread, and of others.
        let call = [0, 3]
            .map(|i| calls.begun[i] + calls.returned[i])
            .iter()
            .sum();
        let state = self.report.states;
        let thread = self.threads.last_mut().ok_or("a thread")?;
        Ok((!returned)
            .then(|| thread.signal(self.plan, at, call, state))
            .flatten())
    }

    /// One state: recovery, and what must hold.
    fn check(&mut self, calls: &Calls) -> Result<(), String> {
        if self.reader.is_none() && !self.open_session()? {
            self.report.before += 1;
            let none = calls.returned_in_all() == 0;
            return none.then_some(()).ok_or("events, and no session".into());
        }
        self.report.states += 1;
        self.recover(calls)
    }

    fn recover(&mut self, calls: &Calls) -> Result<(), String> {
        let state = self.report.states;
        let Some(reader) = &mut self.reader else {
            return Ok(());
        };
        reader.read(&mut self.image)?;
        self.oracle.check(&mut self.image, calls)?;
        let (plan, is_due) = (self.plan, |every| every != 0 && state.is_multiple_of(every));
        if let Some(path) = self.ring_file.as_ref().filter(|_| is_due(plan.full_every)) {
            self.report.full += 1;
            let beside = self.fixture.path("");
            full::check(
                path,
                &beside,
                self.oracle.last(),
                self.plan.mode == "discard",
            )?;
        }
        if is_due(plan.consume_every) {
            self.consume()?;
        }
        Ok(())
    }

    /// The session, as soon as its file has its name: from then on it must be whole.
    fn open_session(&mut self) -> Result<bool, String> {
        let mut files = self.fixture.ring_files();
        let Some(path) = files.pop() else {
            return Ok(false);
        };
        let open = |access| Session::open(&path, access).map_err(|e| e.to_string());
        self.reader = Some(ImageReader::new(open(Access::Observe)?));
        if self.plan.consume_every != 0 {
            let drain = SessionDrain::new(open(Access::Consume)?);
            self.consumer = Some((drain, Batch::with_room(0)));
        }
        self.ring_file = Some(path);
        Ok(true)
    }

    /// What the consumer takes is what the observer saw in the same state.
    fn consume(&mut self) -> Result<(), String> {
        let Some((drain, batch)) = &mut self.consumer else {
            return Ok(());
        };
        batch.clear(u64::MAX);
        drain.fill(batch).map_err(|e| e.to_string())?;
        self.report.taken += batch.pages();
        let reader = self.reader.as_ref().ok_or("a session")?;
        let (taken, seen) = (reader.parse(batch.bytes())?, self.oracle.last());
        for page in &taken.pages {
            let mut same = seen.pages.iter();
            let same = same.find(|p| (p.slot, p.number) == (page.slot, page.number));
            let records = same.filter(|p| p.sealed).map(|p| seen.records_of(p));
            if records != Some(taken.records_of(page)) {
                return Err(format!("taken {page:?}, seen {same:?}"));
            }
        }
        drain.release();
        Ok(())
    }

    fn calls(&self) -> Calls {
        let words = self.ledger.words(0, 16 * CONTEXTS as u64).unwrap_or(&[]);
        let word = |n: usize| words.get(n).map_or(0, |w| w.load(Relaxed));
        Calls {
            begun: std::array::from_fn(|i| word(2 * i)),
            returned: std::array::from_fn(|i| word(2 * i + 1)),
        }
    }

    fn end(&mut self) -> Result<(), String> {
        let calls = self.calls();
        self.check(&calls)?;
        self.oracle.check_end(&calls)?;
        let last = self.oracle.last();
        self.report.calls = calls.returned_in_all();
        self.report.handlers = calls.returned[1] + calls.returned[2];
        self.report.lost = last.lost;
        self.report.turns = last.slots.iter().map(|slot| slot.produced).sum();
        self.report.depth = self.oracle.depth;
        Ok(())
    }
}

impl Thread {
    /// Whether a loop has come here so often that only each 64th time is looked at, until a call begins or returns: pages
    /// are cleared and filled in loops.
    fn loops(&mut self, at: u64, has_changed: bool) -> bool {
        if has_changed {
            self.visits.clear();
        }
        let visits = self.visits.entry(at).or_default();
        *visits += 1;
        *visits > 8 && !visits.is_multiple_of(64)
    }

    /// Whether a handler has just returned to where it had interrupted the thread.
    fn leave_handler(&mut self, at: u64) -> bool {
        let Some((to, stack)) = self.returns.last() else {
            return false;
        };
        let returned = *to == at && *stack == ptrace::stack(self.tid);
        if returned {
            self.returns.pop();
        }
        returned
    }

    /// The signal that comes at this stop, if one does.
    fn signal(&mut self, plan: &Plan, at: u64, call: u64, state: u64) -> Option<i32> {
        if mem::take(&mut self.entered) {
            return None;
        }
        let signal = match self.returns.len() {
            0 if self.is_due(plan, at, call) => libc::SIGUSR1,
            1 if plan.inner_every != 0 && state.is_multiple_of(plan.inner_every) => libc::SIGUSR2,
            _ => return None,
        };
        self.entered = true;
        self.returns.push((at, ptrace::stack(self.tid)));
        Some(signal)
    }

    fn is_due(&mut self, plan: &Plan, at: u64, call: u64) -> bool {
        if mem::replace(&mut self.call, call) != call {
            self.signals.clear();
        }
        let (number, count) = self.signals.entry(at).or_insert((self.instructions, 0));
        self.instructions += u64::from(*count == 0);
        *count += 1;
        *count <= plan.signals && number.is_multiple_of(plan.signals_at)
    }
}

/// Where the text of this program lies in a process.
pub(crate) fn text_of(pid: i32, program: &str) -> std::io::Result<Vec<(u64, u64)>> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps"))?;
    let text = maps.lines().filter_map(|line| {
        let (range, rest) = line.split_once(' ')?;
        let (start, end) = range.split_once('-')?;
        let is_ours = rest.starts_with("r-x") && rest.ends_with(program);
        let number = |text| u64::from_str_radix(text, 16).ok();
        is_ours.then_some(())?;
        Some((number(start)?, number(end)?))
    });
    Ok(text.collect())
}
