//! The functions of callback tracers, by the tracer's number.

use core::panic::AssertUnwindSafe;
use core::ptr;
use core::sync::atomic::AtomicPtr;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use std::panic::catch_unwind;

use ringmark_format::function::TRACERS_MAX;

use super::nodes;
use super::open_calls::Block;

/// The function of a callback tracer.
#[derive(Clone, Copy)]
pub struct Callback(&'static (dyn Fn(u64, u64) + Send + Sync));

impl core::fmt::Debug for Callback {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Callback")
    }
}

impl Callback {
    /// `function` gets an address in the function that was called, and the return address of the
    /// call. It runs on the thread that called, on a small stack of ours, before each entry: also
    /// in signal handlers, and wherever else the program calls. Calls inside it are recorded for
    /// other tracers, but call no callback. A panic ends in it.
    ///
    /// It stays in memory for ever.
    #[must_use]
    pub fn new(function: impl Fn(u64, u64) + Send + Sync + 'static) -> Self {
        Self(Box::leak(Box::new(function)))
    }

    /// A callback in C. It must return.
    #[must_use]
    pub fn from_c(function: extern "C" fn(function: u64, caller: u64)) -> Self {
        Self::new(move |of, caller| function(of, caller))
    }
}

static CALLBACKS: [AtomicPtr<Callback>; TRACERS_MAX as usize] =
    [const { AtomicPtr::new(ptr::null_mut()) }; TRACERS_MAX as usize];

/// Says what a tracer calls from now on. A thread may be in the one before for a while.
pub(crate) fn set(tracer: u32, callback: Option<Callback>) {
    let callback = callback.map_or(ptr::null_mut(), |c| Box::into_raw(Box::new(c)));
    if let Some(place) = CALLBACKS.get(tracer as usize) {
        // The one before is leaked: some thread may be about to call it.
        let _ = place.swap(callback, AcqRel);
    }
}

/// Whether a tracer calls anything.
pub(crate) fn is_set(tracer: u32) -> bool {
    let place = CALLBACKS.get(tracer as usize);
    place.is_some_and(|place| !place.load(Acquire).is_null())
}

/// The program must not see what a callback does to `errno`.
fn keeping_errno(work: impl FnOnce()) {
    // SAFETY: no arguments, no conditions.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: the thread's own `errno`.
    let before = unsafe { errno.read() };
    work();
    // SAFETY: as above.
    unsafe { errno.write(before) };
}

/// Calls the functions of `tracers`, unless one is running on this thread.
pub(super) fn call(block: &Block, tracers: u64, function: u64, caller: u64) {
    // Handlers that come between leave it as they found it.
    if block.busy.load(Relaxed) != 0 {
        nodes::count_not_called(block.first_place());
        return;
    }
    block.busy.store(1, Relaxed);
    keeping_errno(|| {
        let mut rest = tracers;
        while let Some(place) = CALLBACKS.get(rest.trailing_zeros() as usize) {
            rest &= rest - 1;
            // SAFETY: null, or a callback that was leaked.
            if let Some(callback) = unsafe { place.load(Acquire).as_ref() }
                && let Err(panic) = catch_unwind(AssertUnwindSafe(|| callback.0(function, caller)))
            {
                core::mem::forget(panic); // What is in it may panic when dropped.
            }
        }
    });
    block.busy.store(0, Relaxed);
}
