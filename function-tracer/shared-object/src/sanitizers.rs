//! What ThreadSanitizer asks the objects of a program for when it begins. It sees calls of this library that it has
//! functions for, such as `malloc` and `memcpy`, and none of what orders them: so it would report races, and end
//! the program with its exit code.

use std::ffi::c_char;

/// Calls that this library makes are passed over. A program's own function of this name comes first.
#[unsafe(no_mangle)]
extern "C" fn __tsan_default_suppressions() -> *const c_char {
    c"called_from_lib:libringmark_functions.so\n".as_ptr()
}
