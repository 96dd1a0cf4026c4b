//! Functions that programs call themselves; `include/ringmark_functions.h` describes them.
//!
//! # Invariants
//!
//! 1. The caller promises that a text is null, or ends with a zero byte and stays until the
//!    function returns.
//! 2. The caller promises that `answer` is null, or has room for `bytes` bytes and is used by no
//!    other thread until the function returns.

use std::ffi::{CStr, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

use ringmark_function_tracer::{Callback, control};

type Entered = extern "C" fn(function: u64, caller: u64);

/// Sets the function that a callback tracer calls. Returns 0, or -1 on error.
///
/// # Safety
/// `name` must be null or a string; `function` null or such a function, which stays in memory.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn ringmark_functions_callback(
    name: *const c_char,
    function: Option<Entered>,
) -> c_int {
    // SAFETY: invariant 1.
    let Some(name) = (unsafe { text(name) }) else {
        return -1;
    };
    let is_word = !name.is_empty() && !name.contains(|c: char| c.is_whitespace() || c.is_control());
    let work = || control::set_callback(&name, function.map(Callback::from_c));
    match is_word.then(|| catch_unwind(AssertUnwindSafe(work))) {
        Some(Ok(Ok(()))) => 0,
        _ => -1,
    }
}

/// Does what a request says and writes the answer. Returns 0, or -1 on error.
///
/// # Safety
/// `request` must be null or a string, and `answer` null or room for `bytes`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn ringmark_functions_request(
    request: *const c_char,
    answer: *mut c_char,
    bytes: usize,
) -> c_int {
    // SAFETY: invariant 1.
    let request = unsafe { text(request) }.unwrap_or_default();
    let work = || {
        control::install();
        control::answer(&request)
    };
    let result = catch_unwind(AssertUnwindSafe(work));
    let result = result.unwrap_or_else(|_| Err("an error of the tracer's own".to_owned()));
    let (Ok(text) | Err(text)) = &result;
    if !answer.is_null() && bytes > 0 {
        let length = text.len().min(bytes - 1);
        // SAFETY: invariant 2.
        unsafe { answer.copy_from_nonoverlapping(text.as_ptr().cast(), length) };
        // SAFETY: invariant 2: `length` is less than `bytes`.
        unsafe { answer.wrapping_add(length).write(0) };
    }
    if result.is_ok() { 0 } else { -1 }
}

/// A copy of a string; `None` for null.
///
/// # Safety
/// It must be null or a string.
unsafe fn text(text: *const c_char) -> Option<String> {
    if text.is_null() {
        return None;
    }
    // SAFETY: invariant 1.
    let text = unsafe { CStr::from_ptr(text) };
    Some(text.to_string_lossy().into_owned())
}
