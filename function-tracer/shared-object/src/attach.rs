//! What `ringmark trace start -p` calls once it has loaded this object into a running program.

use std::ffi::{CStr, c_char, c_int};
use std::panic::catch_unwind;
use std::thread;

use ringmark_function_tracer::{Threads, control};

/// Starts a session, unless the program has one, and tracers as `requests` say, in the words of
/// `RINGMARK_TRACE`. On a thread of its own: the calling one may have been taken out of anything.
/// Returns 0, or -1 where there is no thread to be had.
///
/// # Safety
/// `requests` must be null or a string.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn ringmark_functions_start(requests: *const c_char) -> c_int {
    let requests = if requests.is_null() {
        c""
    } else {
        // SAFETY: the caller gives a string.
        unsafe { CStr::from_ptr(requests) }
    };
    let requests = requests.to_string_lossy().into_owned();
    let work = move || {
        // The program goes on without us, whatever happens here.
        let _ = catch_unwind(|| begin(&requests));
    };
    let name = "ringmark-attach".to_owned();
    let thread = thread::Builder::new().name(name).spawn(work);
    if thread.is_ok() { 0 } else { -1 }
}

fn begin(requests: &str) {
    let running = ringmark::Session::current();
    if running.is_some() || ringmark::Session::builder().start().is_ok() {
        // Requests come by the mailbox, too, and are answered there.
        let _ = control::install_and_start(Threads::Running, requests);
    }
}
