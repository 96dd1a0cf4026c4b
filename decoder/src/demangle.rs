//! Symbols as their language writes them. A symbol is input like any other: what comes out is
//! bounded, whatever goes in.

use std::fmt::{self, Write};

/// Longer symbols, and names that would become longer, are shown as they are.
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

/// The name of a Rust or C++ symbol for people; any other symbol as it is.
pub(crate) fn demangled(symbol: &[u8]) -> Vec<u8> {
    let readable = std::str::from_utf8(symbol)
        .ok()
        .filter(|text| text.len() <= BYTES_MAX);
    let name = readable.and_then(|text| rust(text).or_else(|| cpp(text)));
    name.map_or_else(|| symbol.to_vec(), String::into_bytes)
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
    Some(out.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(symbol: &str) -> String {
        String::from_utf8(demangled(symbol.as_bytes())).unwrap()
    }

    #[test]
    fn names_of_three_languages() {
        assert_eq!(text("_ZN3foo3barEi"), "foo::bar(int)");
        assert_eq!(
            text("_ZN4core3fmt9Formatter3pad17h0123456789abcdefE"),
            "core::fmt::Formatter::pad"
        );
        assert_eq!(text("main"), "main");
        assert_eq!(text("_Znonsense"), "_Znonsense");
        assert_eq!(demangled(b"\xff\x00"), b"\xff\x00");
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
