//! The function tracers of this process, under a lock.

use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use crate::patch::Threads;
use crate::tracers::Tracers;

/// The lock of the tracers. There are none before the first use.
pub(super) type Guard = MutexGuard<'static, Option<Tracers>>;

static TRACERS: Mutex<Option<Tracers>> = Mutex::new(None);

/// The function tracers of this process. Waits for other users.
pub(super) fn lock() -> Guard {
    TRACERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The function tracers of this process; `None`: another thread uses them.
pub(super) fn try_lock() -> Option<Guard> {
    match TRACERS.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(guard)) => Some(guard.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// Runs `f` with the function tracers of this process, which are made on first use.
pub fn with_tracers<R>(f: impl FnOnce(&mut Tracers) -> R) -> R {
    f(lock().get_or_insert_with(|| Tracers::new(Threads::Running)))
}
