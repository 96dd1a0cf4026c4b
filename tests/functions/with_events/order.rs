//! The order in which the records of a program's sessions are merged, against what the program did:
//! each round is `work(n)`, `leaf(n)` to `leaf(n + leaves - 1)`, and in their middle the event `n`.
//! A cover that begins inside a round leaves the end of that round, which the numbers must show.

use std::collections::{BTreeMap, BTreeSet};

use ringmark_decoder::{Dump, Event, Output, Value};
use ringmark_tests::is_long;

use super::program::{Copy, EARLY, Work};

/// Which rounds must be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// All.
    Whole,
    /// All but what came before the recording began.
    Recorded,
    /// Those in the time that all sessions cover, up to the last one.
    Cover,
}

/// A round that has begun.
#[derive(Debug, Clone, Copy)]
struct Round {
    /// By its argument, or else by its event.
    n: Option<u64>,
    entered: u64,
    leaves: u64,
    event: Option<u64>,
}

/// The end of the round in which a cover begins.
#[derive(Debug, Default)]
struct Cut {
    /// Arguments of its calls of `leaf`, where they are recorded.
    leaves: Vec<Option<u64>>,
    /// The number of its event, and the calls before that.
    event: Option<(u64, usize)>,
    has_ended: bool,
}

/// What a thread has recorded in the cover, in the order of the merged sessions.
#[derive(Debug, Default)]
struct Thread {
    cut: Cut,
    now: Option<Round>,
    /// A round was seen to begin.
    has_begun: bool,
    /// Numbers of whole rounds.
    rounds: Vec<u64>,
    early: u64,
    calls: u64,
    ticks: Option<(u64, u64)>,
    /// What is not where the program did it.
    exceptions: Vec<String>,
}

/// The number that an event carries.
fn number(event: &Event<'_>) -> u64 {
    match event.args().next() {
        Some((_, Value::U64(n))) => n,
        other => panic!("{other:?}"),
    }
}

/// The first argument of a call: the word after its caller. `None`: functions of Rust record none.
fn argument(event: &Event<'_>) -> Option<u64> {
    let word = event.payload.get(8..16)?.try_into().ok()?;
    Some(u64::from_le_bytes(word))
}

impl Cut {
    /// Whether it is nothing, or the end of the round before `start` with all that belongs there.
    fn is_before(&self, start: u64, leaves: u64) -> bool {
        let calls = self.leaves.len() as u64;
        if !self.has_ended {
            return calls == 0 && self.event.is_none();
        }
        let behind_event = leaves - leaves / 2;
        let Some(n) = start.checked_sub(1).filter(|_| calls <= leaves) else {
            return false;
        };
        let has_its_event = match self.event {
            Some((number, before)) => number == n && before as u64 + behind_event == calls,
            None => calls <= behind_event,
        };
        let mut arguments = self.leaves.iter().zip(n + leaves - calls..);
        has_its_event && arguments.all(|(found, n)| found.is_none_or(|found| found == n))
    }
}

impl Thread {
    fn wrong(&mut self, what: &str, event: &Event<'_>) {
        let now = self.now;
        self.exceptions
            .push(format!("{what} at tick {} in {now:?}", event.tick));
    }

    fn take(&mut self, event: &Event<'_>, work: &Work, part: Part) {
        let symbol = event
            .function()
            .map_or(&b""[..], |function| &function.symbol);
        let symbol = symbol.escape_ascii().to_string();
        let is = |name: &str| symbol.contains(name);
        let is_cut = part == Part::Cover && !self.has_begun;
        match event.ty.function {
            None if event.name() == b"work.done" && is_cut => self.cut_event(event),
            None if event.name() == b"work.done" => self.emitted(event, work),
            Some(of) if is("work") && !of.exit => {
                if self.now.is_some() {
                    self.wrong("work inside of work", event);
                }
                self.has_begun = true;
                self.now = Some(Round {
                    n: argument(event),
                    entered: event.tick,
                    leaves: 0,
                    event: None,
                });
            }
            Some(of) if is("work") && of.exit && is_cut => self.cut_end(event),
            Some(of) if is("work") && of.exit => self.left(event, work),
            Some(of) if is("leaf") && !of.exit && is_cut => self.cut_leaf(event),
            Some(of) if is("leaf") && !of.exit => self.leaf(event),
            _ => {}
        }
    }

    fn cut_event(&mut self, event: &Event<'_>) {
        let place = (number(event), self.cut.leaves.len());
        if self.cut.has_ended || self.cut.event.replace(place).is_some() {
            self.wrong("event outside of a round", event);
        }
    }

    fn cut_leaf(&mut self, event: &Event<'_>) {
        self.cut.leaves.push(argument(event));
        if self.cut.has_ended {
            self.wrong("leaf outside of a round", event);
        }
    }

    fn cut_end(&mut self, event: &Event<'_>) {
        if std::mem::replace(&mut self.cut.has_ended, true) {
            self.wrong("end of work", event);
        }
    }

    fn leaf(&mut self, event: &Event<'_>) {
        let argument = argument(event);
        let is_next = |now: &Round| {
            let expected = now.n.map(|n| n + now.leaves);
            argument.is_none() || argument == expected
        };
        match &mut self.now {
            Some(now) if is_next(now) => now.leaves += 1,
            _ => self.wrong(&format!("leaf({argument:?})"), event),
        }
    }

    fn emitted(&mut self, event: &Event<'_>, work: &Work) {
        let number = number(event);
        let is_here = |now: &Round| {
            now.n.is_none_or(|n| n == number)
                && now.leaves == work.leaves / 2
                && now.event.is_none()
                && now.entered <= event.tick
        };
        match &mut self.now {
            Some(now) if is_here(now) => {
                now.n = Some(number);
                now.event = Some(event.tick);
            }
            _ => self.wrong(&format!("event {number}"), event),
        }
    }

    fn left(&mut self, event: &Event<'_>, work: &Work) {
        let Some(round) = self.now else {
            return self.wrong("end of work", event);
        };
        let is_whole = round.leaves == work.leaves && round.event.is_some_and(|t| t <= event.tick);
        if !is_whole {
            self.wrong("end of work too early", event);
        }
        self.now = None;
        self.rounds.extend(round.n);
        self.calls += 1 + round.leaves;
        let (first, _) = self.ticks.unwrap_or((round.entered, 0));
        self.ticks = Some((first, event.tick));
    }
}

/// Threads by their number in the process; nothing is lost.
fn threads(dump: &Dump, work: &Work, part: Part) -> BTreeMap<u32, Thread> {
    let from_ns = match part {
        Part::Whole | Part::Recorded => 0,
        Part::Cover => cover_of(dump),
    };
    let mut threads: BTreeMap<u32, Thread> = BTreeMap::new();
    for item in dump.events() {
        match item {
            Output::Event(event) => {
                let thread = threads.entry(event.page.header.tid).or_default();
                if event.name() == b"work.early" {
                    thread.early += 1;
                } else if event.t_ns >= from_ns {
                    thread.take(&event, work, part);
                }
            }
            Output::Lost(lost) if lost.t_ns > from_ns || part != Part::Cover => {
                panic!("lost inside of the cover: {:?}", lost.loss)
            }
            Output::Lost(_) => {}
        }
    }
    threads.retain(|_, thread| thread.early > 0 || !thread.rounds.is_empty());
    threads
}

/// From when on all sessions have everything.
fn cover_of(dump: &Dump) -> u64 {
    let covers = dump.covers();
    let begins = covers.iter().map(|cover| cover.from_ns).max();
    begins.expect("a cover")
}

/// Checks numbers and places of everything that `work` says was done.
pub(crate) fn check(dump: &Dump, work: &Work, copy: Copy, part: Part, what: &str) {
    let what = format!("{copy:?}, {what}");
    assert_eq!(dump.sessions.len(), copy.sessions(), "{what}");
    if copy != Copy::Both {
        // Two copies that start at one moment measure one each.
        check_zeros(dump, &what);
    }
    let all = threads(dump, work, part);
    assert_eq!(all.len() as u64, work.threads, "{what}: threads");
    assert_eq!(first_fault(&all, work, part), None, "{what}");
    let mut sums = Sums::default();
    all.values().for_each(|thread| sums.add(thread));
    let seconds = seconds(dump, sums.ticks);
    let Sums { events, calls, .. } = sums;
    println!("{what}: {events} events, {calls} calls in {seconds:.1} s, all in order");
    let rounds = work.threads * work.rounds;
    match part {
        Part::Whole | Part::Recorded => assert_eq!(
            (events, calls),
            (rounds, rounds * (1 + work.leaves)),
            "{what}"
        ),
        Part::Cover => assert!(
            (1..rounds).contains(&events),
            "{what}: none or all in the cover"
        ),
    }
    if is_long() {
        let is_enough = events >= 100_000 && calls >= 1_000_000 && seconds >= 10.0;
        assert!(is_enough, "{what}: too little to show anything");
    }
}

/// What is not as the program did it, of the first thread with such.
pub(crate) fn fault(dump: &Dump, work: &Work, part: Part) -> Option<String> {
    first_fault(&threads(dump, work, part), work, part)
}

fn first_fault(all: &BTreeMap<u32, Thread>, work: &Work, part: Part) -> Option<String> {
    let mut faults = all.iter().filter_map(|(tid, thread)| {
        let fault = fault_of_thread(thread, work, part)?;
        Some(format!("thread {tid}: {fault}"))
    });
    faults.next()
}

fn fault_of_thread(thread: &Thread, work: &Work, part: Part) -> Option<String> {
    let exceptions = &thread.exceptions;
    if let Some(first) = exceptions.first() {
        return Some(format!("{} exceptions, {first}", exceptions.len()));
    }
    if let Some(now) = thread.now {
        return Some(format!("{now:?} has no end"));
    }
    // A thread may be done before the cover begins.
    let start = thread.rounds.first().copied().unwrap_or(work.rounds);
    if !thread.rounds.iter().copied().eq(start..work.rounds) {
        return Some(format!("not all rounds from {start} on"));
    }
    let cut = &thread.cut;
    if !cut.is_before(start, work.leaves) {
        return Some(format!("{cut:?} before round {start}"));
    }
    let early = if part == Part::Recorded { 0 } else { EARLY };
    let is_whole = (start, thread.early) == (0, early);
    (part != Part::Cover && !is_whole).then(|| format!("from {start} on, {} early", thread.early))
}

/// What all threads did in the cover.
#[derive(Debug, Default)]
struct Sums {
    events: u64,
    calls: u64,
    /// From the first round to the end of the last one.
    ticks: u64,
    began: Option<u64>,
}

impl Sums {
    fn add(&mut self, thread: &Thread) {
        self.events += thread.rounds.len() as u64;
        self.calls += thread.calls;
        let Some((began, ended)) = thread.ticks else {
            return;
        };
        let last = self
            .began
            .map_or(ended, |first| ended.max(first + self.ticks));
        let first = self.began.map_or(began, |first| first.min(began));
        (self.began, self.ticks) = (Some(first), last - first);
    }
}

/// All sessions have one process, zero and rate.
fn check_zeros(dump: &Dump, what: &str) {
    let headers = dump
        .sessions
        .iter()
        .map(|session| session.header.expect("a header"));
    let zeros = headers.map(|header| {
        let zero = (header.tick_zero, header.mono_zero_ns, header.tick_mult);
        (header.process().expect("a process"), zero)
    });
    let zeros: BTreeSet<_> = zeros.collect();
    assert_eq!(zeros.len(), 1, "{what}: one zero and one rate: {zeros:?}");
}

fn seconds(dump: &Dump, ticks: u64) -> f64 {
    let rate = dump.sessions[0].header.map_or(0.0, |header| {
        header.tick_mult as f64 / 2_f64.powi(header.tick_shift as i32)
    });
    ticks as f64 * rate / 1e9
}
