//! The engine of this process. Two would undo each other's work.

use std::cell::UnsafeCell;

use crate::engine::{Engine, Threads};
use crate::patch::fork;

struct OfProcess(UnsafeCell<Option<Engine>>);

// SAFETY: touched only by `with_engine`, under its lock.
unsafe impl Sync for OfProcess {}

static ENGINE: OfProcess = OfProcess(UnsafeCell::new(None));

/// Runs `work` with this process's engine, which the first call makes: with `threads` as it says,
/// see [`Engine::new`]. Waits for other callers. `work` must not call this again.
///
/// A forked child has its parent's engine as it was between two changes.
pub fn with_engine<R>(threads: Threads, work: impl FnOnce(&mut Engine) -> R) -> R {
    let _guard = fork::operation();
    // SAFETY: the lock is held, and `work` cannot get here again. In a forked child the thread
    // that may have held it is gone, and every change of an engine is one that forks wait for.
    let engine = unsafe { &mut *ENGINE.0.get() };
    work(engine.get_or_insert_with(|| Engine::new(threads)))
}
