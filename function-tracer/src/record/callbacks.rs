//! The functions of the program that callback tracers call, by the tracer's number.

use core::panic::AssertUnwindSafe;
use core::ptr;
use core::sync::atomic::AtomicPtr;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use std::panic::catch_unwind;

use ringmark_format::function::TRACERS_MAX;

use super::nodes;
use super::open_calls::Block;

/// The function that a callback tracer calls.
#[derive(Clone, Copy)]
pub struct Callback(&'static (dyn Fn(u64, u64) + Send + Sync));

impl core::fmt::Debug for Callback {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Callback")
    }
}

impl Callback {
    /// A callback that runs `function` before each entry. `function` gets an address in the called
    /// function and the return address of the call.
    ///
    /// It runs on the calling thread, also in signal handlers: on the stack that the call is on, where
    /// 32 KiB of it are left; else on one of 256 KiB, with signals blocked. Calls inside
    /// it are recorded for other tracers, but call no callback. A panic ends in it. It stays in
    /// memory for ever.
    #[must_use]
    pub fn new(function: impl Fn(u64, u64) + Send + Sync + 'static) -> Self {
        Self(Box::leak(Box::new(function)))
    }

    /// A callback that runs a function in C, which must return.
    #[must_use]
    pub fn from_c(function: extern "C" fn(function: u64, caller: u64)) -> Self {
        Self::new(move |of, caller| function(of, caller))
    }
}

static CALLBACKS: [AtomicPtr<Callback>; TRACERS_MAX as usize] =
    [const { AtomicPtr::new(ptr::null_mut()) }; TRACERS_MAX as usize];

/// Sets what a tracer calls. A thread may be inside the former callback for a while.
pub(crate) fn set(tracer: u32, callback: Option<Callback>) {
    let callback = callback.map_or(ptr::null_mut(), |c| Box::into_raw(Box::new(c)));
    if let Some(place) = CALLBACKS.get(tracer as usize) {
        // The former callback is leaked: a thread may be about to call it.
        let _ = place.swap(callback, AcqRel);
    }
}

/// Whether a tracer has a callback.
pub(crate) fn is_set(tracer: u32) -> bool {
    let place = CALLBACKS.get(tracer as usize);
    place.is_some_and(|place| !place.load(Acquire).is_null())
}

/// Runs `work` and restores `errno`, so that the program does not see what a callback did to it.
fn keeping_errno(work: impl FnOnce()) {
    // SAFETY: the function has no preconditions.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: the address of this thread's `errno`, valid while it runs.
    let before = unsafe { errno.read() };
    work();
    // SAFETY: the address of this thread's `errno`, valid while it runs.
    unsafe { errno.write(before) };
}

/// Calls the callbacks of `tracers`, unless one is running on this thread.
pub(super) fn call(block: &Block, tracers: u64, function: u64, caller: u64) {
    // A handler that comes between leaves the word as it found it.
    if block.busy.load(Relaxed) != 0 {
        nodes::count_not_called(block.first_place());
        return;
    }
    block.busy.store(1, Relaxed);
    keeping_errno(|| {
        let mut rest = tracers;
        while let Some(place) = CALLBACKS.get(rest.trailing_zeros() as usize) {
            rest &= rest - 1;
            // SAFETY: record invariant 1.
            if let Some(callback) = unsafe { place.load(Acquire).as_ref() }
                && let Err(panic) = catch_unwind(AssertUnwindSafe(|| callback.0(function, caller)))
            {
                core::mem::forget(panic); // Its payload may panic when dropped.
            }
        }
    });
    block.busy.store(0, Relaxed);
}
