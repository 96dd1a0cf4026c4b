//! Two locks that a fork handles.
//!
//! - The lock of changes: a fork waits until no thread changes patch sites or what is known about
//!   them. So its child inherits whole sites, a true list of them, and a loader whose lock is free.
//! - The lock of operations, which may read files: a fork does not wait for it. In the child, which
//!   does not have the thread that held it, the lock is free.
//!
//! In the parent a fork changes nothing. A fork that cannot take the lock of changes within a
//! second goes on without it. Its child then may have sites in the middle of a change, all of which
//! can be executed, and a list that does not say so.
//!
//! # Invariants
//!
//! 1. Both mutexes are initialised statically and never destroyed, and only the functions for
//!    mutexes access them. They are initialised anew in a forked child only, while it has one
//!    thread.
//! 2. The value of an [`Operated`] is accessed by `with` only, under the lock of operations. A
//!    second call on the same thread would wait for ever, and never reach the value.
//! 3. The hooks of forks are part of this library, which is never unloaded.

use std::cell::{Cell, UnsafeCell};
use std::marker::PhantomData;
use std::ptr;
use std::sync::Once;

struct Lock(UnsafeCell<libc::pthread_mutex_t>);

// SAFETY: invariant 1: several threads may use a mutex.
unsafe impl Sync for Lock {}

static CHANGE: Lock = Lock(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER));
static OPERATION: Lock = Lock(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER));
static INSTALLED: Once = Once::new();

/// A lock that is held until this is dropped, by the thread that took it.
pub(crate) struct Guard(&'static Lock, PhantomData<*mut ()>);

/// Takes the lock of changes, for a short time, because forks wait for it. Held while sites change,
/// or what is known about them, or while the loader's lock is held.
pub(crate) fn change() -> Guard {
    Guard::of(&CHANGE)
}

/// A single value of the process, made when first used, for one operation at a time. A forked child
/// has it as it was between two changes.
pub(crate) struct Operated<T>(UnsafeCell<Option<T>>);

// SAFETY: invariant 2, and `T` may change threads.
unsafe impl<T: Send> Sync for Operated<T> {}

impl<T> Operated<T> {
    /// No value yet.
    pub(crate) const fn new() -> Self {
        Self(UnsafeCell::new(None))
    }

    /// Runs `work` with the value, which `make` makes if there is none. Waits for other callers.
    /// `work` must not call this again.
    pub(crate) fn with<R>(&self, make: impl FnOnce() -> T, work: impl FnOnce(&mut T) -> R) -> R {
        let _guard = Guard::of(&OPERATION);
        // SAFETY: invariant 2: the lock is held. In a forked child no thread holds it, and forks
        // wait for every change of the value.
        let value = unsafe { &mut *self.0.get() };
        work(value.get_or_insert_with(make))
    }
}

impl Guard {
    fn of(lock: &'static Lock) -> Self {
        INSTALLED.call_once(|| {
            // SAFETY: invariant 3.
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
        // SAFETY: invariant 1, and not held by this thread.
        unsafe { libc::pthread_mutex_lock(self.0.get()) };
    }

    fn unlock(&self) {
        // SAFETY: invariant 1, and this thread holds the lock.
        let result = unsafe { libc::pthread_mutex_unlock(self.0.get()) };
        // A call and no jump: ThreadSanitizer passes over calls that this library makes, told by where they return to.
        core::hint::black_box(result);
    }
}

thread_local! {
    /// Whether this thread holds the lock of changes for its fork.
    static IS_HELD: Cell<bool> = const { Cell::new(false) };
}

/// Takes the lock of changes for a fork. Gives up after a second, because the forking thread may
/// hold the loader's lock, which a change may wait for.
extern "C" fn before() {
    const SECONDS_MAX: i64 = 1;
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the function writes `time`, a local.
    unsafe { libc::clock_gettime(libc::CLOCK_REALTIME, &raw mut time) };
    time.tv_sec += SECONDS_MAX;
    // SAFETY: invariant 1, and not held by this thread; the function reads `time`, a local.
    let result = unsafe { libc::pthread_mutex_timedlock(CHANGE.0.get(), &raw const time) };
    IS_HELD.set(result == 0);
}

extern "C" fn in_parent() {
    if IS_HELD.replace(false) {
        CHANGE.unlock();
    }
}

/// Frees both locks in a forked child: its only thread is the one that forked, which holds neither.
extern "C" fn in_child() {
    IS_HELD.set(false);
    for lock in [&CHANGE, &OPERATION] {
        // SAFETY: invariant 1: no other thread exists that could use the lock.
        unsafe { libc::pthread_mutex_init(lock.0.get(), ptr::null()) };
    }
}
