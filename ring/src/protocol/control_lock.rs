//! A lock for the control path that survives fork: the child of a fork gets it released.

use core::cell::UnsafeCell;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::Ordering::Relaxed;

use crate::protocol::order;
use crate::protocol::sync::{AtomicU32, const_unless_loom};

/// Nobody holds the lock.
const FREE: u32 = 0;
/// Somebody holds it.
const TAKEN: u32 = 1;
/// Somebody holds it, and somebody may sleep until it is given back.
const AWAITED: u32 = 2;

/// Who waits for it sleeps: a thread of real-time priority that spun would keep the holder from the
/// processor. Never taken on the event path.
#[derive(Debug)]
pub struct ControlLock<T> {
    word: AtomicU32,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached only through the guard, which one thread holds at a time.
unsafe impl<T: Send> Sync for ControlLock<T> {}

/// Holds the lock.
#[derive(Debug)]
pub struct Guard<'l, T> {
    lock: &'l ControlLock<T>,
}

impl<T> ControlLock<T> {
    const_unless_loom! {
        /// A lock that nobody holds.
        pub fn new(value: T) -> Self {
            Self {
                word: AtomicU32::new(FREE),
                value: UnsafeCell::new(value),
            }
        }
    }

    /// Waits for the lock.
    pub fn lock(&self) -> Guard<'_, T> {
        let taken = order::lock_acquire(); // [L1] pairs with [L2]
        let free = self.word.compare_exchange(FREE, TAKEN, taken, Relaxed);
        if free.is_err() {
            while self.word.swap(AWAITED, taken) != FREE {
                sleep_while(&self.word, AWAITED);
            }
        }
        Guard { lock: self }
    }

    /// Takes the lock for the time of a fork; see [`ControlLock::after_fork`].
    pub fn before_fork(&self) {
        core::mem::forget(self.lock());
    }

    /// Gives back what [`ControlLock::before_fork`] took, in the parent and in the child.
    pub fn after_fork(&self) {
        let before = self.word.swap(FREE, order::lock_release()); // [L2] pairs with [L1]
        if before == AWAITED {
            wake_one(&self.word);
        }
    }
}

#[cfg(not(loom))]
fn sleep_while(word: &AtomicU32, value: u32) {
    use rustix::io::Errno;
    use rustix::thread::futex;
    match futex::wait(word, futex::Flags::PRIVATE, value, None) {
        Ok(()) | Err(Errno::AGAIN | Errno::INTR) => {}
        // A filter forbids it.
        Err(_) => std::thread::yield_now(),
    }
}

#[cfg(not(loom))]
fn wake_one(word: &AtomicU32) {
    use rustix::thread::futex;
    let _ = futex::wake(word, futex::Flags::PRIVATE, 1);
}

#[cfg(loom)]
fn sleep_while(_word: &AtomicU32, _value: u32) {
    loom::thread::yield_now();
}

#[cfg(loom)]
fn wake_one(_word: &AtomicU32) {}

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
