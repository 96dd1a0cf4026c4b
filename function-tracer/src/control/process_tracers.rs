//! The function tracers of this process, under a lock.

use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use rustix::thread::{Timespec, nanosleep};

use crate::patch::Threads;
use crate::record::{self, open_calls::OwnWork};
use crate::tracers::Tracers;

/// How long to wait before the lock is tried again.
const PAUSE: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 1_000_000,
};

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

/// The function tracers of this process. Waits for other users, and tries once for each
/// millisecond of `limit`.
pub(super) fn lock_within(limit: Duration) -> Option<Guard> {
    let locked = (0..limit.as_millis()).find_map(|_| {
        let guard = try_lock();
        if guard.is_none() {
            let _ = nanosleep(&PAUSE);
        }
        guard
    });
    locked.or_else(try_lock)
}

/// Runs `f` with the function tracers of this process, which are made on first use.
pub fn with_tracers<R>(f: impl FnOnce(&mut Tracers) -> R) -> R {
    record::find_in_library();
    let _own = OwnWork::begin();
    f(lock().get_or_insert_with(|| Tracers::new(Threads::Running)))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::thread;

    use super::*;

    /// Waits for another user of the tracers, and not for ever.
    #[test]
    fn a_short_use_by_another_thread_is_waited_for() {
        let (held, is_held) = channel();
        let (release, is_released) = channel::<()>();
        let user = thread::spawn(move || {
            let _guard = lock();
            held.send(()).expect("the test waits");
            let _ = is_released.recv_timeout(Duration::from_secs(60));
        });
        is_held.recv().expect("it is held");
        assert!(lock_within(Duration::from_millis(20)).is_none());
        let waiter = thread::spawn(|| lock_within(Duration::from_secs(60)).is_some());
        thread::sleep(Duration::from_millis(20));
        drop(release);
        assert!(waiter.join().expect("it ends"));
        user.join().expect("it ends");
    }
}
