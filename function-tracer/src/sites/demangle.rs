//! Symbols as their language writes them, for filters and for people.

use std::borrow::Cow;
use std::fmt::{self, Write};

/// Longer symbols, and names that would become longer, stay as they are.
const BYTES_MAX: usize = 8 << 10;

#[derive(Default)]
struct Bounded(String);

impl Write for Bounded {
    fn write_str(&mut self, piece: &str) -> fmt::Result {
        if self.0.len() + piece.len() > BYTES_MAX {
            return Err(fmt::Error);
        }
        self.0.push_str(piece);
        Ok(())
    }
}

/// The name of a Rust or C++ symbol, Rust's hash left out; any other symbol as it is.
#[must_use]
pub fn demangled(symbol: &[u8]) -> Cow<'_, str> {
    let text = String::from_utf8_lossy(symbol);
    if text.len() > BYTES_MAX {
        return text;
    }
    match rust(&text).or_else(|| cpp(&text)) {
        Some(name) => Cow::Owned(name),
        None => text,
    }
}

/// The name of a function for people; without a symbol its place in its module's file, which is the
/// same in every run: `module+0x11d0`.
#[must_use]
pub fn readable<'s>(symbol: &'s [u8], module: &[u8], offset: u64) -> Cow<'s, str> {
    if symbol.is_empty() {
        return Cow::Owned(format!("{}+{offset:#x}", String::from_utf8_lossy(module)));
    }
    demangled(symbol)
}

fn rust(symbol: &str) -> Option<String> {
    let name = rustc_demangle::try_demangle(symbol).ok()?;
    let mut out = Bounded::default();
    write!(out, "{name:#}").ok()?;
    Some(out.0)
}

fn cpp(symbol: &str) -> Option<String> {
    let symbol = symbol.starts_with("_Z").then_some(symbol)?;
    let name = cpp_demangle::Symbol::new(symbol).ok()?;
    let mut out = Bounded::default();
    let options = cpp_demangle::DemangleOptions::new();
    name.structured_demangle(&mut out, &options).ok()?;
    Some(out.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_three_languages() {
        assert_eq!(demangled(b"main"), "main");
        assert_eq!(demangled(b"_ZN3foo3barEi"), "foo::bar(int)");
        assert_eq!(demangled(b"_ZN3foo3bar17h0123456789abcdefE"), "foo::bar");
        assert_eq!(readable(b"_ZN3foo3barEi", b"x", 1), "foo::bar(int)");
        assert_eq!(readable(b"", b"server", 0x11d0), "server+0x11d0");
        let bomb = [b"_Z".as_slice(), &[b'1'; 9 << 10]].concat();
        assert_eq!(demangled(&bomb).len(), bomb.len());
    }
}
