//! Hooks of forks. A fork waits until no request is being done, so its child inherits whole tracers
//! and a free lock.
//!
//! Locks are taken in one order, by a request and by a fork alike: that of the tracers, then that
//! of changes (`fork_locks`). The system calls hooks before a fork in the reverse order of their
//! installation, so these hooks are installed after those of `fork_locks`.

use std::cell::Cell;
use std::sync::Once;

use rustix::thread::{Timespec, nanosleep};

use super::process_tracers::{Guard, try_lock};
use super::profile_report;
use crate::engine::with_engine;
use crate::loader_watch;
use crate::patch::Threads;
use crate::record::open_calls::OwnWork;
use crate::record::profile_tables::forget;

/// A fork waits for about a second at most, because it may hold a lock that the request waits for.
const LOOKS_MAX: u32 = 10_000;
const PAUSE: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000,
};

thread_local! {
    /// The lock, while this thread forks.
    static HELD: Cell<Option<Guard>> = const { Cell::new(None) };
}

/// Installs the hooks on the first call. The engine's hooks must be there before, because a fork
/// takes the locks in the order in which a request does.
pub(super) fn install(threads: Threads) {
    static INSTALLED: Once = Once::new();
    with_engine(threads, |_| ());
    INSTALLED.call_once(|| {
        // SAFETY: invariant 3 of `fork_locks`: the hooks are never unloaded.
        unsafe { libc::pthread_atfork(Some(before), Some(after), Some(after_in_child)) };
    });
}

extern "C" fn before() {
    // The first touch of it takes the loader's lock, whose holder may wait for the thread that needs ours.
    let _ = HELD.try_with(|_| ());
    for _ in 0..LOOKS_MAX {
        if let Some(guard) = try_lock() {
            // A thread that is ending has no thread-local memory, and forks without the lock.
            let _ = HELD.try_with(|held| held.set(Some(guard)));
            return;
        }
        // A signal may end the pause early; the lock is tried again all the same.
        let _ = nanosleep(&PAUSE);
    }
}

extern "C" fn after() {
    let _ = HELD.try_with(|held| drop(held.take()));
}

/// Counts of the parent say nothing about the child. What it counts itself, it says that it begins: else nobody would
/// know of it if it ended by `_exit`.
extern "C" fn after_in_child() {
    // The beginning of the child's session calls functions that may be traced.
    let _own = OwnWork::begin();
    forget();
    loader_watch::forget_unmapping();
    let _ = HELD.try_with(|held| {
        if let Some(tracers) = held.take().as_deref_mut().and_then(Option::as_mut) {
            tracers.begin_watch_anew();
            tracers.counts_were_emptied();
            let on = tracers.all().iter().filter(|tracer| tracer.is_on());
            on.for_each(profile_report::begin);
        }
    });
}
