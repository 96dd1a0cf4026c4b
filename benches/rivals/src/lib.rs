//! What all programs of rivals share: they work when told to through a pipe, as
//! `functions/worker.c` does, and say at their end what came out.

#![forbid(unsafe_code)]

use std::fs::File;
use std::hint::black_box;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;

use rustix::thread::{CpuSet, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};

/// Events before each window; `WARM` of `race.py`.
const WARM: u64 = 64;

/// A tracer.
pub trait Rival {
    /// Emits events with one u64.
    fn events(&mut self, n: u64);

    /// Begins and ends spans with one u64. One that has none is not asked.
    fn spans(&mut self, _n: u64) {}

    /// What is done before a window, outside of the time.
    fn between(&mut self) {}
}

/// Does what the pipe of the first argument says, answers on that of the second, on the core of
/// the third. What the rival has started by now stays on the cores it is on.
///
/// # Panics
/// The arguments are not those.
pub fn serve<R: Rival>(rival: &mut R) {
    let [orders, answers, core] = &std::env::args().skip(1).collect::<Vec<_>>()[..] else {
        panic!("usage: ORDERS ANSWERS CORE");
    };
    let mut set = CpuSet::new();
    set.set(core.parse().expect("a core"));
    sched_setaffinity(None, &set).expect("pinned");
    let orders = BufReader::new(File::open(orders).expect("the orders"));
    let mut answers = File::create(answers).expect("the answers");
    for line in orders.lines() {
        let line = line.expect("an order");
        let (verb, n) = line.split_once(' ').expect("a verb and a number");
        let n = black_box(n.parse().expect("a number"));
        let ns = match verb {
            "c" => window(rival, n, R::events, ClockId::Monotonic),
            "t" => window(rival, n, R::events, ClockId::ThreadCPUTime),
            "s" => window(rival, n, R::spans, ClockId::Monotonic),
            _ => return,
        };
        writeln!(answers, "{ns}").expect("answered");
    }
}

/// Some work before the time is taken: this process has just been woken.
fn window<R: Rival>(rival: &mut R, n: u64, work: fn(&mut R, u64), clock: ClockId) -> u128 {
    rival.between();
    work(rival, WARM);
    let start = now(clock);
    work(rival, n);
    now(clock) - start
}

fn now(clock: ClockId) -> u128 {
    let time = clock_gettime(clock);
    u128::from(time.tv_sec.unsigned_abs()) * 1_000_000_000 + u128::from(time.tv_nsec.unsigned_abs())
}

/// Says what came out: counts of events, and bytes.
pub fn account(delivered: u64, lost: u64, bytes: u64) {
    println!("account {delivered} {lost} {bytes}");
}

/// Lines of a file that hold `text`, and its bytes.
#[must_use]
pub fn lines_with(path: &Path, text: &str) -> (u64, u64) {
    let file = BufReader::new(File::open(path).expect("what was written"));
    let lines = file
        .lines()
        .filter(|line| line.as_ref().is_ok_and(|line| line.contains(text)));
    (
        lines.count() as u64,
        path.metadata().map_or(0, |data| data.len()),
    )
}
