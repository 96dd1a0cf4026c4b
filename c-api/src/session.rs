//! Starting and ending a session from C.

use core::ffi::{CStr, c_char, c_int};

use ringmark::{Builder, Options, Session};

use crate::caught;

/// Starts a session with options as the environment variable `RINGMARK` has them, and filters as
/// `RINGMARK_FILTER` has them; null or empty: the defaults. Returns 0; -1 if tracing is off, and
/// then `error`, if it is not null, gets the reason, cut to `error_bytes` and ended by a zero.
///
/// # Safety
/// `options` and `filter` must be null or strings, `error` null or a place of `error_bytes`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn ringmark_start(
    options: *const c_char,
    filter: *const c_char,
    error: *mut c_char,
    error_bytes: usize,
) -> c_int {
    // SAFETY: as the caller says.
    let options = unsafe { text(options) };
    // SAFETY: as the caller says.
    let filter = unsafe { text(filter) };
    let started = caught(Err("the library failed".to_owned()), || {
        start(&options, filter.clone())
    });
    let Err(reason) = started else {
        return 0;
    };
    if !error.is_null() && error_bytes > 0 {
        let bytes = reason.len().min(error_bytes - 1);
        // SAFETY: at most `error_bytes` bytes, in the caller's place.
        unsafe { core::ptr::copy_nonoverlapping(reason.as_ptr().cast(), error, bytes) };
        let behind = error.wrapping_add(bytes);
        // SAFETY: as above.
        unsafe { behind.write(0) };
    }
    -1
}

fn start(options: &str, filter: String) -> Result<(), String> {
    let options = match options.trim() {
        "" => Options::default(),
        text => Options::parse(text)
            .map_err(|error| error.to_string())?
            .ok_or("the options say 0: not wanted")?,
    };
    let builder = Builder::from(options).filter(filter);
    builder.start().map(|_| ()).map_err(|e| e.to_string())
}

/// Starts a session as `RINGMARK`, `RINGMARK_FILTER` and `RINGMARK_TAGS` say. Returns 0; -1 if it
/// is not wanted, or not possible.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn ringmark_start_from_env() -> c_int {
    let started = caught(None, ringmark::start_from_env);
    if started.is_some() { 0 } else { -1 }
}

/// Gets a ring for the calling thread ahead of its first event. Returns 0; -1 if there is none.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn ringmark_attach_thread() -> c_int {
    if caught(false, ringmark::attach_thread) {
        0
    } else {
        -1
    }
}

/// Switches all events off and ends the session. There is no other one in this process.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn ringmark_close() {
    caught((), || {
        if let Some(session) = Session::current() {
            session.close();
        }
    });
}

/// Events that were not recorded because this process is a raw clone of a traced one.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn ringmark_foreign_events() -> u64 {
    caught(0, Session::foreign_events)
}

unsafe fn text(from: *const c_char) -> String {
    if from.is_null() {
        return String::new();
    }
    // SAFETY: the caller gives a string.
    let text = unsafe { CStr::from_ptr(from) };
    text.to_string_lossy().into_owned()
}
