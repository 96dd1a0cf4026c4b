//! A program whose spans run, wait, and have no processor, and which measures that itself: `turns ROUNDS`. The kernel's
//! counts are read just before each span and just after its beginning, and so at its end.
#![forbid(unsafe_code)]

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use ringmark::{event, span};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};

const PHASE: Duration = Duration::from_millis(20);

/// What the kernel counts of this thread: its processor time in ns, how often it waited and was preempted.
#[derive(Clone, Copy)]
struct Counts {
    cpu_ns: u64,
    waits: u64,
    preemptions: u64,
}

impl Counts {
    fn now() -> Self {
        let status = std::fs::read_to_string("/proc/thread-self/status").expect("proc");
        let number = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|rest| rest.trim().parse().ok())
                .expect("a number")
        };
        Self {
            cpu_ns: cpu_ns(),
            waits: number("voluntary_ctxt_switches:"),
            preemptions: number("nonvoluntary_ctxt_switches:"),
        }
    }

    fn since(self, before: Self) -> Self {
        Self {
            cpu_ns: self.cpu_ns - before.cpu_ns,
            waits: self.waits - before.waits,
            preemptions: self.preemptions - before.preemptions,
        }
    }
}

/// This thread's processor time in ns.
fn cpu_ns() -> u64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

/// Runs for so long.
fn spin() {
    let begun = cpu_ns();
    while cpu_ns() - begun < PHASE.as_nanos() as u64 {}
}

/// Does something in a span, and says what was counted in it, and around it.
fn measured(name: &str, round: u64, work: impl FnOnce()) {
    let around = Counts::now();
    let span = span!("phase", name = name, round = round);
    let inside = Counts::now();
    work();
    let inside = Counts::now().since(inside);
    drop(span);
    let around = Counts::now().since(around);
    event!(
        "measured",
        cpu_ns = inside.cpu_ns,
        waits = inside.waits,
        preemptions = inside.preemptions,
        cpu_ns_around = around.cpu_ns,
        waits_around = around.waits,
        preemptions_around = around.preemptions,
    );
}

/// Waits for a mutex that another thread has.
fn wait_for_mutex(round: u64) {
    let mutex = Arc::new(Mutex::new(()));
    let (held, is_held) = (Arc::clone(&mutex), Arc::new(AtomicBool::new(false)));
    let holds = Arc::clone(&is_held);
    let holder = thread::spawn(move || {
        let guard = held.lock();
        measured("held", round, || {
            holds.store(true, Ordering::Release);
            thread::sleep(PHASE);
        });
        drop(guard);
    });
    while !is_held.load(Ordering::Acquire) {
        thread::yield_now();
    }
    measured("mutex", round, || drop(mutex.lock()));
    holder.join().expect("the holder");
}

/// Runs beside another thread on one processor.
fn spin_beside(round: u64) {
    let before = sched_getaffinity(None).expect("its processors");
    let mut one = CpuSet::new();
    let first = (0..CpuSet::MAX_CPU).find(|cpu| before.is_set(*cpu));
    one.set(first.expect("a processor"));
    sched_setaffinity(None, &one).expect("one processor");
    let (stop, stopped) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicBool::new(false)),
    );
    let (ends, begun) = (Arc::clone(&stop), Arc::clone(&stopped));
    // A new thread has the processors of the one that begins it.
    let burner = thread::spawn(move || {
        begun.store(true, Ordering::Release);
        while !ends.load(Ordering::Acquire) {}
    });
    while !stopped.load(Ordering::Acquire) {
        thread::yield_now();
    }
    measured("beside", round, spin);
    stop.store(true, Ordering::Release);
    burner.join().expect("the burner");
    sched_setaffinity(None, &before).expect("all processors");
}

fn main() {
    let rounds = std::env::args().nth(1).and_then(|text| text.parse().ok());
    let _session = ringmark::start_from_env();
    // The recorder finds the session and begins to watch.
    thread::sleep(Duration::from_millis(200));
    for round in 0..rounds.unwrap_or(3) {
        measured("spin", round, spin);
        measured("sleep", round, || thread::sleep(PHASE));
        wait_for_mutex(round);
        spin_beside(round);
    }
}
