//! Mutexes that a panic does not poison: one connection must not end all others.

use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

/// Locks a mutex, also after a thread panicked while it held it. What the mutexes of a collector
/// guard is checked before each write, so a change left half way is noticed there.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Locks a mutex, unless another thread has it.
pub(crate) fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}
