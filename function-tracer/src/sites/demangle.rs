//! Symbols as their language writes them, as text.

use std::borrow::Cow;

use ringmark_format::demangle;

/// The name of a Rust or C++ symbol, Rust's hash left out; any other symbol as it is.
#[must_use]
pub fn demangled(symbol: &[u8]) -> Cow<'_, str> {
    text(demangle::demangled(symbol))
}

/// The name of a function for people; without a symbol its place in its module's file, which is the
/// same in every run: `module+0x11d0`.
#[must_use]
pub fn readable<'s>(symbol: &'s [u8], module: &[u8], offset: u64) -> Cow<'s, str> {
    text(demangle::readable(symbol, module, offset))
}

fn text(name: Cow<'_, [u8]>) -> Cow<'_, str> {
    match name {
        Cow::Borrowed(name) => String::from_utf8_lossy(name),
        Cow::Owned(name) => Cow::Owned(String::from_utf8_lossy(&name).into_owned()),
    }
}
