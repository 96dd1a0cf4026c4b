//! A traced program whose signal handlers emit: `signals HOW [MS]`, so long by its processor time. Prints what was emitted, and how
//! deep handlers were nested, as `MAIN HANDLERS DEPTH`.

use std::hint::black_box;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
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

/// Handlers that are running, where there is one thread; and the most there were.
static DEPTH: AtomicU64 = AtomicU64::new(0);
static DEPTH_MAX: AtomicU64 = AtomicU64::new(0);
/// Signals that interrupt each other's handlers.
const NESTING: [libc::c_int; 3] = [libc::SIGALRM, libc::SIGUSR1, libc::SIGUSR2];

/// Emits, and works a while, so that others may come in between.
extern "C" fn nesting_handler(_signal: libc::c_int) {
    let depth = DEPTH.fetch_add(1, Relaxed) + 1;
    DEPTH_MAX.fetch_max(depth, Relaxed);
    for _ in 0..3 {
        let seq = HANDLERS.fetch_add(1, Relaxed);
        event!("signals.nested", seq = seq, depth = depth);
        (0..3000).for_each(|n| _ = black_box(n));
    }
    DEPTH.fetch_sub(1, Relaxed);
}

/// Emits behind the handler of another signal that it raises: that one's event is the first.
extern "C" fn raising_handler(_signal: libc::c_int) {
    // SAFETY: a signal to this thread, which has a handler.
    unsafe { libc::raise(libc::SIGUSR2) };
    handler(0);
}

extern "C" fn handler(_signal: libc::c_int) {
    for _ in 0..BURST.load(Relaxed) {
        let seq = HANDLERS.fetch_add(1, Relaxed);
        event!("signals.handler", seq = seq);
    }
}

fn handle(signal: libc::c_int) {
    handle_by(signal, handler, 0);
}

fn handle_by(signal: libc::c_int, handler: extern "C" fn(libc::c_int), flags: libc::c_int) {
    // SAFETY: zeros are a valid action to be filled in.
    let mut action: libc::sigaction = unsafe { mem::zeroed() };
    action.sa_sigaction = handler as *const () as libc::sighandler_t;
    action.sa_flags = libc::SA_RESTART | flags;
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

/// What this process has used of the processors: a busy machine makes it longer, not less of it.
fn used() -> Duration {
    let mut used = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: a place for the time.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut used) };
    Duration::new(used.tv_sec as u64, used.tv_nsec as u32)
}

fn emit_until(end: Duration, seq: &mut u64) {
    while used() < end {
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
    emit_until(used() + time, &mut seq);
    set_timer(0);
    seq
}

/// Three timers, whose handlers interrupt each other, on an alternate stack or on the thread's own.
fn nested(time: Duration, flags: libc::c_int) -> u64 {
    let mut stack = vec![0_u8; 64 << 10];
    let alternate = libc::stack_t {
        ss_sp: stack.as_mut_ptr().cast(),
        ss_flags: 0,
        ss_size: stack.len(),
    };
    mem::forget(stack);
    // SAFETY: the stack is never freed. (The one of the standard library holds no three handlers.)
    let set = unsafe { libc::sigaltstack(&raw const alternate, ptr::null_mut()) };
    assert_eq!(set, 0);
    for (signal, period_us) in NESTING.into_iter().zip(PERIOD_US..) {
        handle_by(signal, nesting_handler, flags);
        start_timer(signal, period_us);
    }
    let mut seq = 0;
    emit_until(used() + time, &mut seq);
    for signal in NESTING {
        // SAFETY: from now on the signal is ignored; its timer goes on.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
    seq
}

fn start_timer(signal: libc::c_int, period_us: i64) {
    // SAFETY: zeros are an event to be filled in.
    let mut event: libc::sigevent = unsafe { mem::zeroed() };
    (event.sigev_notify, event.sigev_signo) = (libc::SIGEV_SIGNAL, signal);
    let mut timer = ptr::null_mut();
    let clock = libc::CLOCK_MONOTONIC;
    // SAFETY: the event is read, the timer is a place for the new one.
    let made = unsafe { libc::timer_create(clock, &raw mut event, &raw mut timer) };
    assert_eq!(made, 0);
    let every = libc::timespec {
        tv_sec: 0,
        tv_nsec: 1000 * period_us,
    };
    let times = libc::itimerspec {
        it_interval: every,
        it_value: every,
    };
    // SAFETY: the timer made above, and times of ours.
    let set = unsafe { libc::timer_settime(timer, 0, &raw const times, ptr::null_mut()) };
    assert_eq!(set, 0);
}

/// Handlers emit so much that they give up the ring that they interrupted.
fn storm(time: Duration) -> u64 {
    BURST.store(1500, Relaxed);
    handle(libc::SIGALRM);
    set_timer(4000);
    let (end, mut seq) = (used() + time, 0);
    while used() < end {
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
        emit_until(used() + time, &mut seq);
        seq
    };
    let all: Vec<_> = (0..4).map(|_| thread::spawn(emit)).collect();
    let sum = all.into_iter().map(|t| t.join().expect("a thread")).sum();
    set_timer(0);
    sum
}

/// The first event of each thread is its handler's, or that of a handler that interrupts it.
fn first(outer: extern "C" fn(libc::c_int), flags: libc::c_int) -> u64 {
    handle_by(libc::SIGUSR1, outer, flags);
    handle_by(libc::SIGUSR2, handler, flags);
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
        "nested" => nested(Duration::from_millis(time), 0),
        "nested-stack" => nested(Duration::from_millis(time), libc::SA_ONSTACK),
        "first" => first(handler, 0),
        "first-nested" => first(raising_handler, 0),
        "first-stack" => first(raising_handler, libc::SA_ONSTACK),
        "forget" => forget(),
        _ => panic!("unknown way {how}"),
    };
    let (handlers, depth) = (HANDLERS.load(Relaxed), DEPTH_MAX.load(Relaxed));
    println!("{main} {handlers} {depth}");
}
