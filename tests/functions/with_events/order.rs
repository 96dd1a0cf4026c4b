//! The order in which the records of a program's sessions are merged, against what the program did:
//! each round is `work(n)`, `leaf(n)` to `leaf(n + leaves - 1)`, and in their middle the event `n`.

use std::collections::{BTreeMap, BTreeSet};

use ringmark_decoder::{Dump, Event, Output, Value};

use super::program::{Copy, EARLY, Work};

/// Which rounds must be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// All.
    Whole,
    /// Those in the time that all sessions cover, up to the last one.
    Cover,
}

/// A round that has begun.
#[derive(Debug, Clone, Copy)]
struct Round {
    /// By its argument, or else by its event.
    n: Option<u64>,
    entered: u64,
    entered_ns: u64,
    leaves: u64,
    event: Option<u64>,
}

/// What a thread has recorded, in the order of the merged sessions.
#[derive(Debug, Default)]
struct Thread {
    now: Option<Round>,
    /// A round was seen to begin. A ring may start in the middle of one.
    has_begun: bool,
    /// Numbers of whole rounds inside the cover.
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

impl Thread {
    fn wrong(&mut self, what: &str, event: &Event<'_>, from_ns: u64) {
        if event.t_ns >= from_ns && (self.has_begun || from_ns == 0) {
            let now = self.now;
            self.exceptions
                .push(format!("{what} at tick {} in {now:?}", event.tick));
        }
    }

    fn take(&mut self, event: &Event<'_>, work: &Work, from_ns: u64) {
        let symbol = event
            .function()
            .map_or(&b""[..], |function| &function.symbol);
        let symbol = symbol.escape_ascii().to_string();
        let is = |name: &str| symbol.contains(name);
        match event.ty.function {
            None if event.name() == b"work.early" => self.early += 1,
            None if event.name() == b"work.done" => self.emitted(event, work, from_ns),
            Some(of) if is("work") && !of.exit => {
                if self.now.is_some() {
                    self.wrong("work inside of work", event, from_ns);
                }
                self.has_begun = true;
                self.now = Some(Round {
                    n: argument(event),
                    entered: event.tick,
                    entered_ns: event.t_ns,
                    leaves: 0,
                    event: None,
                });
            }
            Some(of) if is("work") && of.exit => self.left(event, work, from_ns),
            Some(of) if is("leaf") && !of.exit => self.leaf(event, from_ns),
            _ => {}
        }
    }

    fn leaf(&mut self, event: &Event<'_>, from_ns: u64) {
        let argument = argument(event);
        let is_next = |now: &Round| {
            let expected = now.n.map(|n| n + now.leaves);
            argument.is_none() || argument == expected
        };
        match &mut self.now {
            Some(now) if is_next(now) => now.leaves += 1,
            _ => self.wrong(&format!("leaf({argument:?})"), event, from_ns),
        }
    }

    fn emitted(&mut self, event: &Event<'_>, work: &Work, from_ns: u64) {
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
            _ => self.wrong(&format!("event {number}"), event, from_ns),
        }
    }

    fn left(&mut self, event: &Event<'_>, work: &Work, from_ns: u64) {
        let Some(round) = self.now.take() else {
            return self.wrong("end of work", event, from_ns);
        };
        if round.entered_ns < from_ns {
            return;
        }
        let is_whole = round.leaves == work.leaves && round.event.is_some_and(|t| t <= event.tick);
        if !is_whole {
            self.now = Some(round);
            self.wrong("end of work too early", event, from_ns);
            self.now = None;
        }
        self.rounds.extend(round.n);
        self.calls += 1 + round.leaves;
        let (first, _) = self.ticks.unwrap_or((round.entered, 0));
        self.ticks = Some((first, event.tick));
    }
}

/// Threads by their number in the process; nothing is lost.
fn threads(dump: &Dump, work: &Work, from_ns: u64) -> BTreeMap<u32, Thread> {
    let mut threads: BTreeMap<u32, Thread> = BTreeMap::new();
    for item in dump.events() {
        match item {
            Output::Event(event) => {
                let tid = event.page.header.tid;
                threads.entry(tid).or_default().take(&event, work, from_ns);
            }
            Output::Lost(lost) if lost.t_ns > from_ns && from_ns > 0 => {
                panic!("lost inside of the cover: {:?}", lost.loss)
            }
            Output::Lost(lost) if from_ns == 0 => panic!("lost {:?}", lost.loss),
            Output::Lost(_) => {}
        }
    }
    threads.retain(|_, thread| thread.early > 0 || !thread.rounds.is_empty());
    threads
}

/// Checks numbers and places of everything that `work` says was done.
pub(crate) fn check(dump: &Dump, work: &Work, copy: Copy, part: Part, what: &str) {
    let what = format!("{copy:?}, {what}");
    assert_eq!(dump.sessions.len(), copy.sessions(), "{what}");
    if copy != Copy::Both {
        // Two copies that start at one moment measure one each.
        check_zeros(dump, &what);
    }
    let from_ns = match part {
        Part::Whole => 0,
        Part::Cover => dump
            .covers()
            .iter()
            .map(|cover| cover.from_ns)
            .max()
            .unwrap_or(0),
    };
    let all = threads(dump, work, from_ns);
    assert_eq!(all.len() as u64, work.threads, "{what}: threads");
    let (mut events, mut calls, mut exceptions) = (0, 0, 0);
    let (mut first, mut last) = (u64::MAX, 0);
    for (tid, thread) in &all {
        let what = format!("{what}, thread {tid}");
        // A thread may be done before all rings begin.
        let Some((began, ended)) = thread
            .ticks
            .or((part == Part::Cover).then_some((u64::MAX, 0)))
        else {
            panic!("{what}: no rounds");
        };
        (first, last) = (first.min(began), last.max(ended));
        events += thread.rounds.len() as u64;
        calls += thread.calls;
        exceptions += thread.exceptions.len();
        if let Some(text) = thread.exceptions.first() {
            println!("{what}: {text}");
        }
        let start = thread.rounds.first().copied().unwrap_or(work.rounds);
        assert!(
            thread.rounds.iter().copied().eq(start..work.rounds),
            "{what}: rounds"
        );
        if part == Part::Whole {
            assert_eq!((start, thread.early), (0, EARLY), "{what}");
        }
    }
    println!(
        "{what}: {events} events, {calls} calls in {:.1} s, {exceptions} out of their order",
        seconds(dump, last.saturating_sub(first))
    );
    assert_eq!(exceptions, 0, "{what}: in the order of the program");
    assert!(events > 0, "{what}: rounds in the common cover");
    if part == Part::Whole {
        let rounds = work.threads * work.rounds;
        assert_eq!(
            (events, calls),
            (rounds, rounds * (1 + work.leaves)),
            "{what}"
        );
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
