//! `RINGMARK`, as it is given to us and as a traced program finds it.

use std::ffi::OsString;

use crate::output::Failure;

/// What a program is traced with unless `RINGMARK` says otherwise: nothing may be missing, and the
/// session of a short-lived program is still there when the recorder finds it.
const WANTED: &str = "mode=discard,ring=1M,session=64M,keep=always";

/// The same where functions are traced: their calls come by the million.
const WANTED_FOR_FUNCTIONS: &str = "mode=discard,ring=4M,session=256M,keep=always";

fn given() -> Option<OsString> {
    std::env::var_os("RINGMARK").filter(|v| !v.is_empty())
}

/// Checks `RINGMARK`, before a program is started with it.
///
/// # Errors
/// What is wrong with it.
pub(super) fn check() -> Result<(), Failure> {
    let given = given().unwrap_or_default();
    let Some(text) = given.to_str() else {
        return Err(Failure::usage("RINGMARK: is not UTF-8"));
    };
    match ringmark::Options::parse(text) {
        Ok(_) => Ok(()),
        Err(error) => Err(Failure::usage(format!("RINGMARK={text}: {error}"))),
    }
}

/// What the program finds in `RINGMARK`. `keep=always` is added to settings without `keep`: a
/// program that ends before it is found would leave nothing.
pub(super) fn for_program(functions_are_traced: bool) -> OsString {
    let given = given().unwrap_or_default();
    match given.to_str().map(str::trim) {
        Some("" | "1") if functions_are_traced => WANTED_FOR_FUNCTIONS.into(),
        Some("" | "1") => WANTED.into(),
        Some(text) if kept_by_us() && text != "0" => format!("{text},keep=always").into(),
        _ => given,
    }
}

/// Whether the recording adds `keep=always`, and so removes what is kept.
pub(super) fn kept_by_us() -> bool {
    let given = given().unwrap_or_default();
    let text = given.to_string_lossy();
    !text.split(',').any(|pair| pair.trim().starts_with("keep="))
}

/// Whether `RINGMARK` switches tracing off.
pub(super) fn is_off() -> bool {
    given().is_some_and(|text| text.to_string_lossy().trim() == "0")
}
