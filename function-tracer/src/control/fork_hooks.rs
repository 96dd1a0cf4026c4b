//! Forks wait until no request is being done: their children inherit tracers that are whole, and
//! nobody who holds their lock.

use std::cell::Cell;
use std::sync::{MutexGuard, Once};

use rustix::thread::{Timespec, nanosleep};

use super::try_tracers;
use crate::engine::with_engine;
use crate::patch::Threads;
use crate::record::profile_tables::forget;
use crate::tracers::Tracers;

/// A fork waits for about a second at most: it may hold a lock that the request waits for.
const LOOKS_MAX: u32 = 10_000;
const PAUSE: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000,
};

thread_local! {
    static HELD: Cell<Option<MutexGuard<'static, Option<Tracers>>>> = const { Cell::new(None) };
}

/// Once. The engine's own handlers must come first: a fork takes the locks as a request does.
pub(super) fn install(threads: Threads) {
    static INSTALLED: Once = Once::new();
    with_engine(threads, |_| ());
    INSTALLED.call_once(|| {
        // SAFETY: the handlers live as long as this code, which is never unloaded.
        unsafe { libc::pthread_atfork(Some(before), Some(after), Some(after_in_child)) };
    });
}

extern "C" fn before() {
    for _ in 0..LOOKS_MAX {
        if let Some(guard) = try_tracers() {
            // A thread that is ending has no place for it, and goes without.
            let _ = HELD.try_with(|held| held.set(Some(guard)));
            return;
        }
        // Cut short by a signal it is asked again all the same.
        let _ = nanosleep(&PAUSE);
    }
}

extern "C" fn after() {
    let _ = HELD.try_with(|held| drop(held.take()));
}

/// What was counted of the parent says nothing of the child.
extern "C" fn after_in_child() {
    forget();
    let _ = HELD.try_with(|held| {
        if let Some(tracers) = held.take().as_deref_mut().and_then(Option::as_mut) {
            tracers.begin_watch_anew();
        }
    });
}
