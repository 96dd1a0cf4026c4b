//! A lock for the control path that survives fork: the child of a fork gets it released.
//!
//! A mutex of the standard library that another thread holds at a fork stays locked in the child
//! for ever. This one is taken by the forking thread before the fork and given back on both sides,
//! so the child finds it free and the value whole. The hooks are installed by the producer.
//!
//! Three states, and the next one is always chosen by one atomic operation:
//!
//! ```text
//!          lock                    lock of another thread, which sleeps
//!  FREE ─────────▶ TAKEN ───────────────────────────────────────────▶ AWAITED
//!   ▲                │ drop: no system call                               │
//!   └────────────────┴──────────────────── drop: wakes one thread ◀───────┘
//! ```
//!
//! A thread that was woken takes the lock as AWAITED, because it cannot know whether others sleep:
//! at worst one wake-up finds no sleeper.
//!
//! # What it is not
//!
//! Not for the event path, and not for signal handlers: a handler that interrupts the holder would
//! wait for ever. It does not poison: a panic of the holder gives it back, and the value must be
//! whole at every step of the holder. It is not fair.
//!
//! # Invariant
//!
//! 1. At most one [`Guard`] of a lock exists, and the value is reached through it alone.

use core::cell::UnsafeCell;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::Ordering::Relaxed;

use crate::protocol::order;
use crate::protocol::sync::{AtomicU32, const_unless_loom};

/// No thread holds the lock.
const FREE: u32 = 0;
/// A thread holds it, and none sleeps.
const TAKEN: u32 = 1;
/// A thread holds it, and others may sleep until it is given back.
const AWAITED: u32 = 2;

/// A value that one thread at a time may use, also across forks.
///
/// A thread that waits for it sleeps: one of real-time priority that spun would keep the holder
/// from the processor.
#[derive(Debug)]
pub struct ControlLock<T> {
    word: AtomicU32,
    value: UnsafeCell<T>,
}

// SAFETY: invariant 1: the value is reached through the guard, which one thread holds.
unsafe impl<T: Send> Sync for ControlLock<T> {}

/// Holds the lock until it is dropped.
#[derive(Debug)]
pub struct Guard<'l, T> {
    lock: &'l ControlLock<T>,
}

impl<T> ControlLock<T> {
    const_unless_loom! {
        /// A lock that no thread holds.
        pub fn new(value: T) -> Self {
            Self {
                word: AtomicU32::new(FREE),
                value: UnsafeCell::new(value),
            }
        }
    }

    /// Waits for the lock, without a limit. A thread that holds it already waits for ever.
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

    /// Takes the lock for the time of a fork, without a guard: see [`ControlLock::after_fork`].
    pub fn before_fork(&self) {
        core::mem::forget(self.lock());
    }

    /// Gives back what [`ControlLock::before_fork`] took: once in the parent and once in the child,
    /// whose copy of the word is its own.
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
        // SAFETY: invariant 1.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: invariant 1, and the guard is borrowed mutably.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    fn drop(&mut self) {
        self.lock.after_fork();
    }
}
