//! A program that speaks through `tracing` and forks: `traced_forks HOW [COUNT]`.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use std::{env, process, thread};

use ringmark::event;
use tracing_subscriber::layer::SubscriberExt;

/// Call sites of [`all_sites`].
const SITES: u64 = 512;

macro_rules! eight_times {
    ($($site:stmt)*) => {
        $($site)* $($site)* $($site)* $($site)* $($site)* $($site)* $($site)* $($site)*
    };
}

macro_rules! sites {
    ($pid:ident) => {
        eight_times!(eight_times!(eight_times!(tracing::info!(
            $pid,
            text = "x",
            "a site"
        ))))
    };
}

/// Emits one event from each of the sites that parent and children share.
#[inline(never)]
fn all_sites() {
    let pid = process::id();
    sites!(pid);
}

/// Forks; the child does its part and ends.
fn fork(child: impl FnOnce()) -> i32 {
    // SAFETY: the child calls what the library promises to work after a fork.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0);
    if pid == 0 {
        child();
        // SAFETY: ends the child.
        unsafe { libc::_exit(0) };
    }
    pid
}

/// What is said goes to the recorder itself.
fn to_recorder() {
    let _ = ringmark::tracing::init();
}

/// What is said goes to a registry, and to the recorder through a layer.
fn to_layer() {
    let _ = ringmark::start_from_env();
    let registry = tracing_subscriber::registry().with(ringmark::tracing::layer());
    tracing::subscriber::set_global_default(registry).expect("the first subscriber");
}

/// Waits for a child; whether it ended by itself.
fn ended_well(pid: i32) -> bool {
    let mut status = 0;
    // SAFETY: `status` is a place for the status.
    let waited = unsafe { libc::waitpid(pid, &raw mut status, 0) };
    waited == pid && status == 0
}

/// Threads meet every site for the first time while another one forks; so do its children. Again
/// and again in new processes; says how many children got stuck.
fn new_sites(rounds: u64, listen: fn()) {
    let mut stuck = 0;
    for _ in 0..rounds {
        // Its exit status is the number of its children that got stuck.
        let parent = fork(|| {
            listen();
            let threads: Vec<_> = (0..3).map(|_| thread::spawn(all_sites)).collect();
            let children: Vec<_> = (0..6).map(|_| fork_a_child()).collect();
            let stuck = children.into_iter().filter(|pid| !ended_well(*pid));
            let stuck = stuck.count();
            threads
                .into_iter()
                .for_each(|t| t.join().expect("a thread"));
            // SAFETY: ends this process.
            unsafe { libc::_exit(stuck as i32) };
        });
        let mut status = 0;
        // SAFETY: `status` is a place for the status.
        unsafe { libc::waitpid(parent, &raw mut status, 0) };
        stuck += u64::from(libc::WEXITSTATUS(status) as u32);
    }
    println!("{stuck} of {SITES}");
}

fn fork_a_child() -> i32 {
    let child = fork(|| {
        // SAFETY: ends this process should it never come back.
        unsafe { libc::alarm(30) };
        all_sites();
    });
    thread::sleep(Duration::from_micros(300));
    child
}

/// How long the spans take, at least.
const SPAN: Duration = Duration::from_millis(20);

/// Does something that takes a while; says how long it took in all, in ns.
fn measured(work: impl FnOnce()) -> u64 {
    let start = Instant::now();
    work();
    start.elapsed().as_nanos() as u64
}

fn native_span() {
    let _span = ringmark::span!("forked.native");
    thread::sleep(SPAN);
}

fn tracing_span() {
    tracing::info_span!("forked.tracing").in_scope(|| thread::sleep(SPAN));
}

/// The first thing that a forked child does is a span, or to look at the clock.
fn spans() {
    let _ = ringmark::tracing::init();
    static TICKS: AtomicU64 = AtomicU64::new(0);
    for work in [native_span, tracing_span] {
        work();
        TICKS.store(ringmark::ticks(), Relaxed);
        let child = fork(|| {
            let took = measured(work);
            event!("forked.took", ns = took);
        });
        assert!(ended_well(child));
    }
    let child = fork(|| {
        let (before, now) = (TICKS.load(Relaxed), ringmark::ticks());
        event!("forked.ticks", before = before, now = now);
    });
    assert!(ended_well(child));
}

/// More types than a small session can describe, one by one and (in the child) all at once.
fn types() {
    let _ = ringmark::tracing::init();
    all_sites();
    assert!(ended_well(fork(all_sites)));
    println!("ready");
    let _ = std::io::stdin().read_line(&mut String::new());
}

fn main() {
    let mut arguments = env::args().skip(1);
    let how = arguments.next().expect("a way");
    let count = arguments.next().and_then(|n| n.parse().ok()).unwrap_or(4);
    match how.as_str() {
        "sites" => new_sites(count, to_recorder),
        "sites-of-a-layer" => new_sites(count, to_layer),
        "spans" => spans(),
        "types" => types(),
        _ => panic!("unknown way {how}"),
    }
}
