//! Symbols as their language writes them, for filters and for output.
//!
//! A symbol is untrusted input. The name that comes out has a bounded length for any symbol, and so
//! has the time that it takes.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use core::fmt::{self, Write};

/// Longer symbols, and symbols whose names would become longer, stay as they are.
const BYTES_MAX: usize = 8 << 10;

/// Text up to [`BYTES_MAX`].
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
pub fn demangled(symbol: &[u8]) -> Cow<'_, [u8]> {
    let text = core::str::from_utf8(symbol).ok();
    let text = text.filter(|text| text.len() <= BYTES_MAX);
    match text.and_then(|text| rust(text).or_else(|| cpp(text))) {
        Some(name) => Cow::Owned(name.into_bytes()),
        None => Cow::Borrowed(symbol),
    }
}

/// The name of a function for people; without a symbol its place in its module's file, which is the
/// same in every run: `module+0x11d0`.
#[must_use]
pub fn readable<'s>(symbol: &'s [u8], module: &[u8], offset: u64) -> Cow<'s, [u8]> {
    if symbol.is_empty() {
        let place = format!("+{offset:#x}");
        return Cow::Owned([module, place.as_bytes()].concat());
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
    if !symbol.starts_with("_Z") {
        return None;
    }
    let name = cpp_demangle::Symbol::new(symbol).ok()?;
    let mut out = Bounded::default();
    let options = cpp_demangle::DemangleOptions::new();
    name.structured_demangle(&mut out, &options).ok()?;
    Some(with_literal_operators(out.0))
}

/// A user's literal operator as C++ writes it: `cpp_demangle` has `operator_km::operator ""` for
/// `operator"" _km`.
fn with_literal_operators(name: String) -> String {
    const TAIL: &str = "::operator \"\"";
    const HEAD: &str = "operator";
    let mut rest = name.as_str();
    let mut out = String::new();
    while let Some(tail) = rest.find(TAIL) {
        let before = &rest[..tail];
        let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
        let start = before.rfind(|c| !is_part(c)).map_or(0, |at| at + 1);
        let suffix = before[start..].strip_prefix(HEAD);
        match suffix {
            Some(suffix) => {
                out.push_str(&before[..start]);
                out.push_str("operator\"\" ");
                out.push_str(suffix);
            }
            None => out.push_str(&rest[..tail + TAIL.len()]),
        }
        rest = &rest[tail + TAIL.len()..];
    }
    match out.is_empty() {
        true => name,
        false => out + rest,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(symbol: &str) -> String {
        String::from_utf8(demangled(symbol.as_bytes()).into_owned()).unwrap()
    }

    #[test]
    fn names_of_three_languages() {
        assert_eq!(text("_ZN3foo3barEi"), "foo::bar(int)");
        assert_eq!(text("_ZN1uli3_kgEe"), "u::operator\"\" _kg(long double)");
        assert_eq!(text("_Zli3_kmy"), "operator\"\" _km(unsigned long long)");
        assert_eq!(
            text("_ZN4core3fmt9Formatter3pad17h0123456789abcdefE"),
            "core::fmt::Formatter::pad"
        );
        assert_eq!(text("main"), "main");
        assert_eq!(text("_Znonsense"), "_Znonsense");
        assert_eq!(text("_ZN3foo3bar17h0123456789abcdefE"), "foo::bar");
        assert_eq!(demangled(b"\xff\x00"), &b"\xff\x00"[..]);
        let long = format!("_Z{}", "1".repeat(9 << 10));
        assert_eq!(text(&long), long);
    }

    #[test]
    fn a_function_without_a_symbol_has_its_place() {
        assert_eq!(readable(b"_ZN3foo3barEi", b"x", 1), &b"foo::bar(int)"[..]);
        assert_eq!(readable(b"", b"server", 0x11d0), &b"server+0x11d0"[..]);
        assert_eq!(readable(b"", b"\xff", 1), &b"\xff+0x1"[..]);
    }

    #[test]
    fn a_symbol_that_would_grow_without_end_is_shown_as_it_is() {
        // Each argument's type names the one before twice.
        let mut bomb = String::from("_Z1f1AIiiE");
        for level in 0..30 {
            let last = char::from_digit(level, 36).unwrap().to_ascii_uppercase();
            bomb += &format!("S_IS{last}_S{last}_E");
        }
        assert_eq!(text(&bomb), bomb);
        let few = "_Z1f1AIiiES_IS0_S0_E";
        assert_eq!(text(few), "f(A<int, int>, A<A<int, int>, A<int, int> >)");
    }
}
