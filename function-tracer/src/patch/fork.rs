//! Two locks that a fork knows. A fork waits until nobody changes sites or what is known of them,
//! so its child inherits whole sites, a true list of them, and a loader whose lock is free. The
//! lock of a whole operation, which may read files, it does not wait for: in the child, where the
//! thread that held it is not, it is free.

use std::cell::UnsafeCell;
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

/// Held while sites change, or what is known of them. Short: forks wait for it.
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
        // SAFETY: locked by this thread, or by that of the parent which this one is a copy of.
        unsafe { libc::pthread_mutex_unlock(self.0.get()) };
    }
}

extern "C" fn before() {
    CHANGE.lock();
}

extern "C" fn in_parent() {
    CHANGE.unlock();
}

extern "C" fn in_child() {
    CHANGE.unlock();
    // SAFETY: this thread is the only one, and it was not in an operation: it was forking.
    unsafe { libc::pthread_mutex_init(OPERATION.0.get(), ptr::null()) };
}
