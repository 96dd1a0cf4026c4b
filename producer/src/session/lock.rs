//! A lock for the control path that survives fork: the child of a fork gets it released.

use core::cell::UnsafeCell;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicBool, Ordering};

/// Spins, then yields. Never taken on the event path.
pub(crate) struct ControlLock<T> {
    taken: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached only through the guard, which one thread holds at a time.
unsafe impl<T: Send> Sync for ControlLock<T> {}

/// Holds the lock.
pub(crate) struct Guard<'l, T> {
    lock: &'l ControlLock<T>,
}

impl<T> ControlLock<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self {
            taken: AtomicBool::new(false),
            value: UnsafeCell::new(value),
        }
    }

    /// Waits for the lock.
    pub(crate) fn lock(&self) -> Guard<'_, T> {
        let mut tries = 0_u32;
        // [L1] pairs with [L2]
        while self.taken.swap(true, Ordering::Acquire) {
            tries += 1;
            if tries > 64 {
                std::thread::yield_now();
            } else {
                core::hint::spin_loop();
            }
        }
        Guard { lock: self }
    }

    /// Takes the lock for the time of a fork; see [`ControlLock::after_fork`].
    pub(crate) fn before_fork(&self) {
        core::mem::forget(self.lock());
    }

    /// Gives back what [`ControlLock::before_fork`] took, in the parent and in the child.
    pub(crate) fn after_fork(&self) {
        self.taken.store(false, Ordering::Release); // [L2] pairs with [L1]
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the guard holds the lock.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the guard holds the lock.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    fn drop(&mut self) {
        self.lock.after_fork();
    }
}
