//! A walk through one process, instruction by instruction, and what must hold at each.

use std::collections::HashSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;

use ringmark_format::open_span::Head;
use ringmark_format::slot::state;
use ringmark_reader::{Access, Session};
use ringmark_ring::{Mapping, RingFile, StackCopy};
use ringmark_tests::fixture::{Counters, Fixture};
use ringmark_tests::{Running, is_long};

use crate::step::image::{Image, ImageReader, Record};
use crate::step::ptrace::{self, Stop};
use crate::step::text_of;

const RINGMARK: &str = "mode=overwrite,page=4K,ring=16K,session=1M,control=off,warm=1,keep=always";
/// Spans that the ledger has room for, and the words in front of them.
const SPANS: usize = 70;
const HEADER: usize = 4;

/// One walk through the program.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    form: &'static str,
    depth: u32,
    handler: &'static str,
    /// After how many states a copy of the file is looked at in place of the file.
    copy_every: u64,
}

impl Plan {
    pub(super) fn new(form: &'static str, depth: u32, handler: &'static str) -> Self {
        let copy_every = if is_long() { 1 } else { 25 };
        Self {
            form,
            depth,
            handler,
            copy_every,
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Report {
    pub(super) states: u64,
    /// States in which neither the stack nor the ledger differs from the one before: looked at, and
    /// not compared again.
    same: u64,
    copies: u64,
    /// Instructions at which a handler came.
    handlers: u64,
    /// Records that are lost, and counted.
    missing: HashSet<u64>,
}

impl Report {
    pub(super) fn add(&mut self, other: &Self) {
        self.states += other.states;
        self.same += other.same;
        self.copies += other.copies;
        self.handlers += other.handlers;
    }

    pub(super) fn expect_some(&self, what: &str) {
        println!(
            "{what}: {} states, {} of them as the one before, {} copies of the file, {} handlers",
            self.states, self.same, self.copies, self.handlers
        );
        assert!(self.states > 500, "too few states to mean anything");
    }
}

/// What the program knows of a span: a number of its `enum`.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Is {
    None,
    Begins,
    Open,
    Ends,
    Ended,
    Left,
}

#[derive(Debug, Clone, Copy)]
struct Span {
    is: Is,
    /// What tells its frame from others; 0: not known yet.
    key: u64,
    id: u64,
}

pub(super) struct Walk {
    plan: Plan,
    fixture: Fixture,
    program: Running,
    threads: Vec<i32>,
    text: Vec<(u64, u64)>,
    counters: Counters,
    ledger: Mapping,
    ring_file: PathBuf,
    session: Session,
    records: ImageReader,
    recorded: HashSet<u64>,
    image: Image,
    /// The stacks and the ledger in the state before.
    last: Vec<u64>,
    pub(super) report: Report,
}

impl Walk {
    pub(super) fn start(plan: &Plan, program: &Path) -> std::io::Result<Self> {
        ptrace::pin();
        let fixture = Fixture::new("span-steps");
        let path = fixture.path("ledger");
        let counters = Counters::new(path.clone());
        let ledger_text = path.display();
        let arguments = format!(
            "{} {} {} {ledger_text}",
            plan.form, plan.depth, plan.handler
        );
        let program_text = program.to_str().unwrap_or_default();
        let program = fixture.start(program_text, RINGMARK, &arguments);
        let pid = program.id() as i32;
        ptrace::attach(pid)?;
        let ledger = Mapping::read_only(&File::open(&path)?, 0, 4096);
        let ring_file = fixture.ring_file();
        let open = || Session::open(&ring_file, Access::Observe).map_err(std::io::Error::other);
        Ok(Self {
            plan: plan.clone(),
            program,
            threads: vec![pid],
            text: text_of(pid, program_text)?,
            counters,
            ledger: ledger.map_err(|e| std::io::Error::other(e.to_string()))?,
            session: open()?,
            records: ImageReader::new(open()?),
            recorded: HashSet::new(),
            image: Image::default(),
            last: Vec::new(),
            report: Report::default(),
            ring_file,
            fixture,
        })
    }

    /// One round, with one handler. `false`: the round ended before.
    pub(super) fn go_once(&mut self, only_at: u64) -> Result<bool, String> {
        self.counters.stop();
        let mut steps = 0;
        let mut signal = 0;
        while self.step(signal)?.is_some() {
            self.check()?;
            signal = if steps == only_at { libc::SIGUSR1 } else { 0 };
            steps += 1;
        }
        self.check()?;
        let came = steps > only_at;
        self.report.handlers += u64::from(came);
        Ok(came)
    }

    /// The next instruction of the program's own text; `None`: it has stopped itself.
    pub(super) fn step(&mut self, mut signal: i32) -> Result<Option<u64>, String> {
        loop {
            let tid = *self.threads.last().ok_or("no thread is left")?;
            let stop = ptrace::step(tid, std::mem::take(&mut signal)).map_err(|e| e.to_string())?;
            match stop {
                Stop::Stepped => {
                    let at = ptrace::instruction(tid);
                    if self
                        .text
                        .iter()
                        .any(|(from, to)| (*from..*to).contains(&at))
                    {
                        return Ok(Some(at));
                    }
                }
                Stop::Cloned(tid) => self.threads.push(tid),
                Stop::Ended if self.threads.len() > 1 => drop(self.threads.pop()),
                Stop::Marked => return Ok(None),
                // It came while the handler before it was about to return.
                Stop::Other(status) if libc::WSTOPSIG(status) == libc::SIGUSR1 => {
                    signal = libc::SIGUSR1;
                }
                Stop::Ended | Stop::Other(_) => return Err(format!("the program: {stop:?}")),
            }
        }
    }

    fn word(&self, at: usize) -> u64 {
        let words = self.ledger.words(0, 4096).unwrap_or(&[]);
        words.get(at).map_or(0, |word| word.load(Relaxed))
    }

    fn spans(&self) -> Vec<Span> {
        let span = |i: usize| {
            let [state, key, id] = [0, 1, 2].map(|at| self.word(HEADER + 3 * i + at));
            let all = [
                Is::None,
                Is::Begins,
                Is::Open,
                Is::Ends,
                Is::Ended,
                Is::Left,
            ];
            let is = all.get(state as usize).copied().unwrap_or(Is::None);
            Span { is, key, id }
        };
        (0..SPANS).map(span).collect()
    }

    /// One state: what must hold.
    fn check(&mut self) -> Result<(), String> {
        self.report.states += 1;
        let now = self.memory();
        if now == self.last {
            self.report.same += 1;
            return Ok(());
        }
        self.last = now;
        let compared = self.report.states - self.report.same;
        let (shown, over) = if compared.is_multiple_of(self.plan.copy_every) {
            self.report.copies += 1;
            let copy = self.fixture.path("copy.ring");
            fs::copy(&self.ring_file, &copy).map_err(|e| e.to_string())?;
            let file = File::open(&copy).map_err(|e| e.to_string())?;
            shown(&RingFile::observe(file, &copy).map_err(|e| e.to_string())?)?
        } else {
            shown(self.session.ring())?
        };
        self.compare(&shown, over)
            .map_err(|what| format!("{what}; shown {shown:x?}, {over} over; {:x?}", self.said()))
    }

    /// All that is compared, but for the records, which only become more.
    fn memory(&self) -> Vec<u64> {
        let ring = self.session.ring();
        let slots = (0..ring.slots_used()).filter_map(|index| ring.slot(index));
        let states: Vec<_> = slots.collect();
        let stacks = states.iter().filter_map(|slot| ring.span_stack(*slot));
        let words = stacks
            .flatten()
            .chain(self.ledger.words(0, 4096).unwrap_or(&[]));
        let words = words.map(|word| word.load(Relaxed));
        words
            .chain(states.iter().map(|slot| slot.state()))
            .collect()
    }

    /// The spans of which the program has something to say.
    fn said(&self) -> Vec<Span> {
        let all = self.spans().into_iter();
        all.filter(|span| span.is != Is::None).collect()
    }

    fn compare(&mut self, shown: &[u64], over: u64) -> Result<(), String> {
        let spans = self.spans();
        let is_shown = |span: &&Span| shown.contains(&span.key);
        let count = |is: Is| spans.iter().filter(|span| span.is == is).count() as u64;
        if let Some(span) = spans
            .iter()
            .filter(is_shown)
            .find(|span| span.is == Is::Ended)
        {
            return Err(format!("{span:x?} is shown"));
        }
        let is_known = |key: &&u64| {
            spans
                .iter()
                .any(|span| span.key == **key && span.is != Is::None)
        };
        let strangers = shown.len() - shown.iter().filter(is_known).count();
        if strangers as u64 > count(Is::Begins) + self.word(2) {
            return Err(format!("{strangers} strangers are shown"));
        }
        let hidden = spans.iter().filter(|span| !is_shown(span));
        let (mut open, mut gone) = (0, Vec::new());
        for span in hidden {
            match span.is {
                Is::Open => open += 1,
                Is::Ends | Is::Ended if !self.is_recorded(span.id)? => gone.push(*span),
                _ => {}
            }
        }
        let in_flight = count(Is::Begins) + count(Is::Ends);
        if open > over || over > open + in_flight + self.word(3) {
            return Err(format!("{open} are open and not shown"));
        }
        // A span beyond the frames may be on its way to its record.
        let ending = gone.iter().filter(|span| span.is == Is::Ends).count() as u64;
        let beyond = (over - open).min(ending) as usize;
        let is_lost = |span: &Span| (span.is == Is::Ended || beyond == 0).then_some(span.id);
        self.report.missing.extend(gone.iter().filter_map(is_lost));
        let missing = self.report.missing.len() as u64;
        if missing > self.image.lost {
            return Err(format!(
                "neither shown nor recorded, nor counted as lost: {gone:x?}"
            ));
        }
        Ok(())
    }

    fn is_recorded(&mut self, id: u64) -> Result<bool, String> {
        if !self.recorded.contains(&id) {
            self.records.read(&mut self.image)?;
            for record in &self.image.records {
                if let Record::Event(id) = record {
                    self.recorded.insert(*id);
                }
            }
        }
        Ok(self.recorded.contains(&id))
    }

    /// Ends the program between two instructions.
    pub(super) fn kill(mut self) -> Result<(), String> {
        self.program.child().kill().map_err(|e| e.to_string())?;
        let _ = self.program.child().wait();
        self.check()
    }
}

/// What a reader is shown: what tells each span from others, and how many there are beyond.
fn shown(ring: &RingFile) -> Result<(Vec<u64>, u64), String> {
    let (mut keys, mut over) = (Vec::new(), 0);
    for slot in (0..ring.slots_used()).filter_map(|index| ring.slot(index)) {
        if !matches!(slot.state(), state::ACTIVE | state::ABANDONED) {
            continue;
        }
        let copy = StackCopy::of(ring.span_stack(slot).ok_or("a stack")?);
        if copy.moving {
            return Err("it moves, and nothing runs".into());
        }
        over += copy.over;
        for frame in copy.frames() {
            let words = Head::unpack(frame[0]).map_or(0, |head| head.words);
            let key = if words == 0 { frame[1] } else { frame[2] };
            if keys.contains(&key) {
                return Err(format!("{key:x} is shown twice"));
            }
            keys.push(key);
        }
    }
    Ok((keys, over))
}
