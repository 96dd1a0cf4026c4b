//! A traced program whose signal handlers emit: `signals HOW [MS]`. Prints what was emitted, as
//! `MAIN HANDLERS`.

use std::hint::black_box;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use std::{mem, thread};

use ringmark::{Event, event};

static HANDLERS: AtomicU64 = AtomicU64::new(0);
/// Events of one handler.
static BURST: AtomicU64 = AtomicU64::new(1);
/// Period of the timer: 20 kHz.
const PERIOD_US: i64 = 50;

#[derive(Event)]
#[repr(C)]
struct Forgotten {
    value: u64,
}

extern "C" fn handler(_signal: libc::c_int) {
    for _ in 0..BURST.load(Relaxed) {
        let seq = HANDLERS.fetch_add(1, Relaxed);
        event!("signals.handler", seq = seq);
    }
}

fn handle(signal: libc::c_int) {
    // SAFETY: zeros are a valid action to be filled in.
    let mut action: libc::sigaction = unsafe { mem::zeroed() };
    action.sa_sigaction = handler as *const () as libc::sighandler_t;
    action.sa_flags = libc::SA_RESTART;
    // SAFETY: the handler touches atomics and this thread's ring alone.
    let set = unsafe { libc::sigaction(signal, &raw const action, ptr::null_mut()) };
    assert_eq!(set, 0);
}

fn set_timer(period_us: i64) {
    let every = libc::timeval {
        tv_sec: 0,
        tv_usec: period_us,
    };
    let timer = libc::itimerval {
        it_interval: every,
        it_value: every,
    };
    // SAFETY: reads a timer of ours.
    let set = unsafe { libc::setitimer(libc::ITIMER_REAL, &raw const timer, ptr::null_mut()) };
    assert_eq!(set, 0);
}

fn emit_until(end: Instant, seq: &mut u64) {
    while Instant::now() < end {
        for _ in 0..200 {
            event!(
                "signals.main",
                seq = *seq,
                text = "some more words for the record"
            );
            *seq += 1;
            // Not so fast that the ring is always full.
            (0..2000).for_each(|n| _ = black_box(n));
        }
    }
}

/// The timer interrupts the one thread that emits.
fn timer(time: Duration) -> u64 {
    handle(libc::SIGALRM);
    set_timer(PERIOD_US);
    let mut seq = 0;
    emit_until(Instant::now() + time, &mut seq);
    set_timer(0);
    seq
}

/// Handlers emit so much that they give up the ring that they interrupted.
fn storm(time: Duration) -> u64 {
    BURST.store(1500, Relaxed);
    handle(libc::SIGALRM);
    set_timer(4000);
    let (end, mut seq) = (Instant::now() + time, 0);
    while Instant::now() < end {
        for _ in 0..1000 {
            event!("signals.main", seq = seq);
            seq += 1;
        }
    }
    set_timer(0);
    seq
}

/// The timer interrupts any of four threads.
fn threads(time: Duration) -> u64 {
    handle(libc::SIGALRM);
    set_timer(PERIOD_US);
    let emit = move || {
        let mut seq = 0;
        emit_until(Instant::now() + time, &mut seq);
        seq
    };
    let all: Vec<_> = (0..4).map(|_| thread::spawn(emit)).collect();
    let sum = all.into_iter().map(|t| t.join().expect("a thread")).sum();
    set_timer(0);
    sum
}

/// The first event of each thread is its handler's.
fn first() -> u64 {
    handle(libc::SIGUSR1);
    for _ in 0..20 {
        let raise = || {
            // SAFETY: a signal to this thread, which has a handler.
            unsafe { libc::raise(libc::SIGUSR1) };
        };
        thread::spawn(raise).join().expect("a thread");
    }
    0
}

/// A reservation is left behind, as `longjmp` over it would do.
fn forget() -> u64 {
    let mut seq = 0;
    for _ in 0..3 {
        mem::forget(ringmark::reserve::<Forgotten>());
        for _ in 0..20_000 {
            event!("signals.main", seq = seq);
            seq += 1;
        }
    }
    seq
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let how = arguments.next().expect("a way");
    let time = arguments
        .next()
        .and_then(|ms| ms.parse().ok())
        .unwrap_or(1000);
    ringmark::start_from_env();
    let main = match how.as_str() {
        "timer" => timer(Duration::from_millis(time)),
        "threads" => threads(Duration::from_millis(time)),
        "storm" => storm(Duration::from_millis(time)),
        "first" => first(),
        "forget" => forget(),
        _ => panic!("unknown way {how}"),
    };
    println!("{main} {}", HANDLERS.load(Relaxed));
}
