//! The traced program of the single-step tests: `stepped WORKLOAD COUNT LEDGER`. It stops
//! itself before and after the work; what it did until any instruction stands in the ledger.
//!
//! The ledger is a page shared with the test: for each context (main, handler, handler in a
//! handler, second thread) how many events it began, and how many of these calls returned. Each
//! event carries its context and its number there, and words that follow from them.

#[path = "stepped/child.rs"]
mod child;

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed, Ordering::SeqCst, compiler_fence};
use std::thread;

use child::{be_traced, handle, share, stop};
use ringmark::{Event, event, event_at, span};

const MAIN: usize = 0;
const HANDLER: usize = 1;
const INNER: usize = 2;
const THREAD: usize = 3;
const CONTEXT_SHIFT: u32 = 48;
/// In the highest byte of every event's id, so that no word that is something else looks like one.
const MARK: u64 = 0xA5 << 56;

static LEDGER: OnceLock<&'static [AtomicU64]> = OnceLock::new();

#[derive(Event)]
#[repr(C)]
#[event(name = "step.one")]
struct One {
    id: u64,
}

#[derive(Event)]
#[repr(C)]
#[event(name = "step.four")]
struct Four {
    id: u64,
    rest: [u64; 3],
}

#[derive(Event)]
#[repr(C)]
#[event(name = "step.large")]
struct Large {
    id: u64,
    rest: [u64; 374],
}

#[derive(Event)]
#[repr(C)]
#[event(name = "step.brim")]
struct Brim {
    all: [u64; 496],
}

/// Word `index` of the event with this id.
fn word(id: u64, index: usize) -> u64 {
    id ^ (index as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

fn rest<const N: usize>(id: u64) -> [u64; N] {
    std::array::from_fn(|i| word(id, i + 1))
}

/// The next event of a context: said before the call and after it.
#[inline(always)]
fn call(context: usize, emit: impl FnOnce(u64)) {
    let Some(ledger) = LEDGER.get() else { return };
    let number = ledger[2 * context].load(Relaxed);
    ledger[2 * context].store(number + 1, Relaxed);
    compiler_fence(SeqCst);
    emit(MARK | (context as u64) << CONTEXT_SHIFT | number);
    compiler_fence(SeqCst);
    ledger[2 * context + 1].store(number + 1, Relaxed);
}

fn one(context: usize) {
    call(context, |id| ringmark::emit(&One { id }));
}

fn four(context: usize) {
    call(context, |id| ringmark::emit(&Four { id, rest: rest(id) }));
}

fn fast(count: u64) {
    for _ in 0..count {
        call(MAIN, |_| event!("step.empty"));
        one(MAIN);
        four(MAIN);
        large(1);
    }
}

/// Reserves all of a page of 4 KiB but two words, and gives it up: a page is full in few
/// instructions.
fn brim() {
    call(MAIN, |_| {
        if let Some(reserved) = ringmark::reserve::<Brim>() {
            reserved.cancel();
        }
    });
}

fn large(count: u64) {
    for _ in 0..count {
        call(MAIN, |id| ringmark::emit(&Large { id, rest: rest(id) }));
    }
}

/// Ticks too far from the page's for 32 bits, before it and behind it.
fn late(count: u64) {
    const FAR: u64 = 1 << 34;
    for number in 1..=count {
        one(MAIN);
        let now = ringmark::ticks();
        let ahead = now.wrapping_add(FAR * number);
        call(MAIN, |id| event_at!(ahead, "step.late", id = id));
        call(MAIN, |id| event_at!(now, "step.late", id = id));
        let before = now.wrapping_sub(FAR);
        call(MAIN, |id| event_at!(before, "step.late", id = id));
    }
}

fn spans(count: u64) {
    for _ in 0..count {
        call(MAIN, |id| drop(span!("step.span", id = id)));
        call(MAIN, |_| {
            if let Some(reserved) = ringmark::reserve::<Four>() {
                reserved.cancel();
            }
        });
        call(MAIN, |id| {
            if let Some(reserved) = ringmark::reserve::<One>() {
                reserved.write(&One { id }).commit();
            }
        });
    }
}

/// Threads one after the other: each takes a ring, and gives it back at its end.
fn threads(count: u64) {
    one(MAIN);
    for _ in 0..count {
        let work = || (0..3).for_each(|_| one(THREAD));
        thread::spawn(work).join().expect("a thread");
        one(MAIN);
    }
}

/// Event types that are not known before their first event.
fn register() {
    call(MAIN, |id| tracing::info!(name: "step.dynamic.a", id));
    call(MAIN, |id| tracing::info!(name: "step.dynamic.b", id));
    one(MAIN);
    call(MAIN, |id| tracing::warn!(name: "step.dynamic.c", id));
}

extern "C" fn handler(signal: libc::c_int) {
    let is_first = signal == libc::SIGUSR1;
    one(if is_first { HANDLER } else { INNER });
}

fn work(workload: &str, count: u64) {
    match workload {
        "fast" => fast(count),
        "fours" | "attach" => (0..count).for_each(|_| four(MAIN)),
        "brim" => (0..count).for_each(|_| brim()),
        "large" => large(count),
        "late" => late(count),
        "spans" => spans(count),
        "threads" => threads(count),
        "register" => register(),
        "start" => {
            ringmark::start_from_env();
            (0..count).for_each(|_| one(MAIN));
        }
        "close" => {
            (0..count).for_each(|_| four(MAIN));
            if let Some(session) = ringmark::Session::current() {
                session.close();
            }
        }
        _ => panic!("unknown workload {workload}"),
    }
}

fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [workload, count, ledger] = &arguments[..] else {
        panic!("stepped WORKLOAD COUNT LEDGER");
    };
    let count = count.parse().expect("a number");
    assert!(LEDGER.set(share(ledger)).is_ok());
    handle(libc::SIGUSR1, handler);
    handle(libc::SIGUSR2, handler);
    match workload.as_str() {
        "start" => {}
        "register" => drop(ringmark::tracing::init()),
        _ => drop(ringmark::start_from_env()),
    }
    if !matches!(workload.as_str(), "start" | "attach" | "threads") {
        ringmark::attach_thread();
    }
    be_traced();
    stop();
    work(workload, count);
    stop();
}
