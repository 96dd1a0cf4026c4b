//! Two locks that a fork knows. A fork waits until no thread changes sites or what is known of
//! them, so its child inherits whole sites, a true list of them, and a loader whose lock is free.
//! The lock of a whole operation, which may read files, it does not wait for: in the child, where
//! the thread that held it is not, it is free.

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

/// A value of which the process has one, made when it is first used and touched by one operation
/// at a time. A forked child has it as it was between two changes.
pub(crate) struct Operated<T>(UnsafeCell<Option<T>>);

// SAFETY: touched only by `with`, under the lock of operations; `T` may go from thread to thread.
unsafe impl<T: Send> Sync for Operated<T> {}

impl<T> Operated<T> {
    pub(crate) const fn new() -> Self {
        Self(UnsafeCell::new(None))
    }

    /// Runs `work` with the value, which `make` makes if there is none. Waits for other callers.
    /// `work` must not call this again.
    pub(crate) fn with<R>(&self, make: impl FnOnce() -> T, work: impl FnOnce(&mut T) -> R) -> R {
        let _guard = Guard::of(&OPERATION);
        // SAFETY: the lock is held, and a second call on this thread waits for it for ever. In a
        // forked child the thread that may have held it is gone, and every change of the value is
        // one that forks wait for.
        let value = unsafe { &mut *self.0.get() };
        work(value.get_or_insert_with(make))
    }
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

/// Waits, but not for ever: the forking thread may hold the loader's lock, which a change may wait
/// for.
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

/// This thread is the only one, and it was forking: the threads that held a lock are not here.
extern "C" fn in_child() {
    IS_HELD.set(false);
    for lock in [&CHANGE, &OPERATION] {
        // SAFETY: no other thread uses the lock, as said above.
        unsafe { libc::pthread_mutex_init(lock.0.get(), ptr::null()) };
    }
}
