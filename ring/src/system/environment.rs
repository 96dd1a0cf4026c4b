//! The environment variables of Ringmark, as far as they may be obeyed.
//!
//! A program that runs with more rights than its caller, such as one with the setuid bit, does nothing that
//! the caller's environment says: there its variables read as if they were not set.

use std::ffi::OsString;

use crate::system::raw;

/// The value of a variable. `None`: it is not set, it is empty, or it may not be obeyed.
#[must_use]
pub fn variable(name: &str) -> Option<OsString> {
    if raw::is_secure() {
        return None;
    }
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// The same as text. What is no UTF-8 becomes U+FFFD, which stands in no value that means something: it is
/// refused where the value is read, and not taken for no value.
#[must_use]
pub fn text(name: &str) -> Option<String> {
    let value = variable(name)?;
    Some(value.to_string_lossy().into_owned())
}

/// Whether the program is to print why it is not traced.
#[must_use]
pub fn is_verbose() -> bool {
    variable("RINGMARK_VERBOSE").is_some_and(|value| value == "1")
}
