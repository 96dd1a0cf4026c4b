//! The entry point that `ringmark trace start -p` calls after it loaded this object into a program.
//!
//! # Invariants
//!
//! 1. The caller promises that the text is null, or ends with a zero byte and stays until the
//!    function returns.

use std::ffi::{CStr, c_char, c_int};
use std::panic::catch_unwind;
use std::thread;

use ringmark::Session;
use ringmark_function_tracer::{Threads, control};

/// Starts a session of this object's own, unless it has one, and answers requests from then on.
/// `settings` change the options that the environment gives the session; they are written as in
/// `RINGMARK`, and may be empty. The work is done on a thread of its own, because the calling thread
/// may be stopped anywhere. Returns 0, or -1 if no thread could be started.
///
/// # Safety
/// `settings` must be null or a string.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn ringmark_functions_start(settings: *const c_char) -> c_int {
    let settings = if settings.is_null() {
        c""
    } else {
        // SAFETY: invariant 1.
        unsafe { CStr::from_ptr(settings) }
    };
    let settings = settings.to_string_lossy().into_owned();
    let work = move || {
        // The program goes on without tracing, whatever happens here.
        let _ = catch_unwind(|| begin(&settings));
    };
    let name = "ringmark-attach".to_owned();
    let thread = thread::Builder::new().name(name).spawn(work);
    if thread.is_ok() { 0 } else { -1 }
}

fn begin(settings: &str) {
    let start = || Session::start_in_running_process(settings);
    if Session::current().or_else(start).is_some() {
        // No request comes with it that could be refused.
        let _ = control::install_and_start(Threads::Running, "");
    }
}
