//! The beginning of a program that is traced from its start: its one thread waits in our code for its sites, and can be
//! held there while the helper thread puts jumps in the place of several instructions.
//!
//! The waiting thread and the helper thread speak by one word. [`WANTED`] is the helper's, [`HELD`] the answer: from
//! then on the waiting thread is in [`serve`] and runs nothing else, no signal handler either, until the helper takes
//! the word back to [`WAITING`].

use std::fs;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use ringmark::__private::helper::HeldSignals;
use rustix::process::{Pid, getpid};
use rustix::thread::{Timespec, gettid, nanosleep};

use crate::patch::prepare::has_threads;

static STATE: AtomicU32 = AtomicU32::new(RUNNING);
const RUNNING: u32 = 0;
const WAITING: u32 = 1;
const WANTED: u32 = 2;
const HELD: u32 = 3;

/// How often either looks.
const LOOK_EVERY: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 1_000_000,
};
/// How often the helper looks for an answer: a second. A handler may run so long.
const ANSWER_LOOKS_MAX: usize = 1_000;

/// Waits until `is_over`, and stands still meanwhile whenever it is asked to.
pub(super) fn wait_until(mut is_over: impl FnMut() -> bool) {
    STATE.store(WAITING, Relaxed);
    while !is_over() {
        let _ = nanosleep(&LOOK_EVERY);
        serve();
    }
    while STATE
        .compare_exchange(WAITING, RUNNING, Relaxed, Relaxed)
        .is_err()
    {
        serve();
    }
}

/// Stands still while the helper thread wants it. It calls nothing of the program's or a library's.
fn serve() {
    if STATE.load(Relaxed) != WANTED {
        return;
    }
    let _signals = HeldSignals::hold();
    // Release: the helper acquires it, so that it writes after this thread has come here.
    if STATE
        .compare_exchange(WANTED, HELD, Release, Relaxed)
        .is_err()
    {
        return;
    }
    // Acquire: with the helper's release, so that the code that this thread runs next is written.
    while STATE.load(Acquire) == HELD {
        let _ = nanosleep(&LOOK_EVERY);
    }
}

/// The program stands still at its beginning while this lives: no thread is in its code, or in a library's.
#[derive(Debug)]
pub(super) struct HeldStart(());

impl HeldStart {
    /// Asks the waiting thread to stand still. `None`: the program has begun, or has other threads already.
    pub(super) fn hold() -> Option<Self> {
        STATE
            .compare_exchange(WAITING, WANTED, Relaxed, Relaxed)
            .ok()?;
        for _ in 0..ANSWER_LOOKS_MAX {
            if STATE.load(Acquire) == HELD {
                let held = Self(());
                return is_all_of_it().then_some(held);
            }
            let _ = nanosleep(&LOOK_EVERY);
        }
        let given_up = STATE.compare_exchange(WANTED, WAITING, Relaxed, Acquire);
        let held = given_up.err().map(|_| Self(()));
        held.filter(|_| is_all_of_it())
    }
}

impl Drop for HeldStart {
    fn drop(&mut self) {
        STATE.store(WAITING, Release);
    }
}

/// Whether nothing but the waiting thread and this one runs in this memory.
fn is_all_of_it() -> bool {
    has_threads(2) && !has_children()
}

/// Whether one of the two threads may have a child, which could share the memory. An object that the loader set up earlier has
/// started it.
fn has_children() -> bool {
    let children_of = |thread: Pid| {
        let thread = thread.as_raw_nonzero();
        let children = fs::read(format!("/proc/self/task/{thread}/children"));
        !children.is_ok_and(|list| list.is_empty())
    };
    [getpid(), gettid()].into_iter().any(children_of)
}
