//! Two locks that a fork knows. A fork waits until nobody changes sites or what is known of them,
//! so its child inherits whole sites, a true list of them, and a loader whose lock is free. The
//! lock of a whole operation, which may read files, it does not wait for: in the child, where the
//! thread that held it is not, it is free.

use std::cell::{Cell, UnsafeCell};
use std::marker::PhantomData;
use std::ptr;
use std::sync::Once;

struct Lock(UnsafeCell<libc::pthread_mutex_t>);

// SAFETY: a mutex is made to be used by several threads, and only its functions touch it.
unsafe impl Sync for Lock {}

static CHANGE: Lock = Lock(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER));
static OPERATION: Lock = Lock(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER));
static INSTALLED: Once = Once::new();

/// A lock that this thread holds until it drops this.
pub(crate) struct Guard(&'static Lock, PhantomData<*mut ()>);

/// Held while sites change, or what is known of them, or while the loader's lock is held. Short:
/// forks wait for it.
pub(crate) fn change() -> Guard {
    Guard::of(&CHANGE)
}

/// Held during one operation on the engine.
pub(crate) fn operation() -> Guard {
    Guard::of(&OPERATION)
}

impl Guard {
    fn of(lock: &'static Lock) -> Self {
        INSTALLED.call_once(|| {
            // SAFETY: the handlers live as long as this code, which is never unloaded.
            unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) };
        });
        lock.lock();
        Self(lock, PhantomData)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.unlock();
    }
}

impl Lock {
    fn lock(&self) {
        // SAFETY: statically initialised, never destroyed; no caller holds it already.
        unsafe { libc::pthread_mutex_lock(self.0.get()) };
    }

    fn unlock(&self) {
        // SAFETY: locked by this thread.
        unsafe { libc::pthread_mutex_unlock(self.0.get()) };
    }
}

thread_local! {
    /// Whether the fork that this thread is in holds the lock.
    static IS_HELD: Cell<bool> = const { Cell::new(false) };
}

/// Waits, but not for ever: who forks may hold the loader's lock, which a change may wait for.
extern "C" fn before() {
    const SECONDS_MAX: i64 = 1;
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is written here only.
    unsafe { libc::clock_gettime(libc::CLOCK_REALTIME, &raw mut time) };
    time.tv_sec += SECONDS_MAX;
    // SAFETY: as in `Lock::lock`; `time` is read only.
    let result = unsafe { libc::pthread_mutex_timedlock(CHANGE.0.get(), &raw const time) };
    IS_HELD.set(result == 0);
}

extern "C" fn in_parent() {
    if IS_HELD.replace(false) {
        CHANGE.unlock();
    }
}

/// This thread is the only one, and it was forking: whoever holds a lock is not here.
extern "C" fn in_child() {
    IS_HELD.set(false);
    for lock in [&CHANGE, &OPERATION] {
        // SAFETY: nobody else uses the lock, as said above.
        unsafe { libc::pthread_mutex_init(lock.0.get(), ptr::null()) };
    }
}
