//! The status with which the process exits, which `atexit` does not give.
//!
//! The GNU C library gives it to the functions of `on_exit`. A program may define a function of that
//! name for itself, so the library's own is asked for. Where it has none, as a library that stands in
//! for it may, the status stays unknown.
//!
//! # Invariants
//!
//! 1. What is registered here is a function of this object, which `pin` keeps mapped until the
//!    process ends. Its argument is null and not read.
//! 2. A function that `pin` finds in the GNU C library has the type that the library declares.

use core::ffi::{c_int, c_void};
use core::mem::transmute;
use core::ptr;

use ringmark_ring::published_static::Published;

use super::pin;

/// What runs at the exit: with the status, where the C library gives it.
pub(super) struct AtExit(pub(super) fn(Option<c_int>));

/// What was asked for.
static AT_EXIT: Published<AtExit> = Published::new();

type OnExit = unsafe extern "C" fn(extern "C" fn(c_int, *mut c_void), *mut c_void) -> c_int;

/// Has `function` run when the process exits. To be called once, under a lock.
pub(super) fn at_exit(function: &'static AtExit) {
    AT_EXIT.publish(function);
    if !with_status() {
        // SAFETY: invariant 1.
        unsafe { libc::atexit(without_status) };
    }
}

/// Registers with the GNU C library. Returns whether it could.
fn with_status() -> bool {
    if let Some(on_exit) = pin::of_glibc(c"on_exit") {
        // SAFETY: invariant 2.
        let on_exit = unsafe { transmute::<usize, OnExit>(on_exit) };
        // SAFETY: invariant 1.
        return unsafe { on_exit(status_first, ptr::null_mut()) } == 0;
    }
    in_static_program()
}

/// The GNU C library calls functions of `__cxa_atexit` with the status after their argument, as its
/// `on_exit` is built on it. No loader finds that one in a static program, and a program cannot
/// define this name.
fn in_static_program() -> bool {
    unsafe extern "C" {
        fn __cxa_atexit(
            function: extern "C" fn(*mut c_void, c_int),
            argument: *mut c_void,
            object: *mut c_void,
        ) -> c_int;
    }
    if pin::has_loader() {
        return false;
    }
    // SAFETY: invariant 1.
    unsafe { __cxa_atexit(status_last, ptr::null_mut(), ptr::null_mut()) == 0 }
}

extern "C" fn status_first(status: c_int, _argument: *mut c_void) {
    run(Some(status));
}

extern "C" fn status_last(_argument: *mut c_void, status: c_int) {
    run(Some(status));
}

extern "C" fn without_status() {
    run(None);
}

fn run(status: Option<c_int>) {
    if let Some(AtExit(function)) = AT_EXIT.current() {
        function(status);
    }
}
