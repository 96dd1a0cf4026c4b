//! Cells of CSV (RFC 4180), which do nothing in a terminal, and are no formula in a spreadsheet.
//!
//! A text is escaped as all text output is: a line feed is `\n`, a backslash `\\`. It begins with an
//! apostrophe if a spreadsheet would calculate it, or if it has an apostrophe there itself; so what
//! the program recorded can be told from the cell.

use ringmark_format::schema::semantic;

use crate::show::json_args;
use crate::trace_file::field::Field;
use crate::trace_file::value::Value;
use crate::words::escape;
use crate::words::number::{signed, unsigned};

/// What begins a formula: in some spreadsheets the wide forms do, too.
const FORMULA: [char; 9] = [
    '=', '+', '-', '@', '\'', '\u{FF1D}', '\u{FF0B}', '\u{FF0D}', '\u{FF20}',
];

/// Appends a text as a cell of CSV: one that does nothing in a terminal, and is no formula in a spreadsheet.
pub fn text(bytes: &[u8], out: &mut Vec<u8>) {
    const PLAIN: &[u8] = b"_:./-+=@ ()<>#*&[]{}!?%";
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || PLAIN.contains(byte);
    let is_formula = matches!(bytes, [b'=' | b'+' | b'-' | b'@', ..]);
    if !is_formula && bytes.iter().all(is_plain) {
        return out.extend_from_slice(bytes);
    }
    let mut shown = Vec::with_capacity(bytes.len());
    escape::text(bytes, &mut shown);
    let text = String::from_utf8_lossy(&shown);
    out.push(b'"');
    if text.starts_with(FORMULA) {
        out.push(b'\'');
    }
    doubled(text.as_bytes(), out);
    out.push(b'"');
}

/// Appends JSON, which is escaped already, and no formula.
pub(super) fn json(json: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    doubled(json, out);
    out.push(b'"');
}

/// Appends a text between quotes.
fn doubled(text: &[u8], out: &mut Vec<u8>) {
    for byte in text {
        if *byte == b'"' {
            out.push(b'"');
        }
        out.push(*byte);
    }
}

/// Appends a number; nothing for one that is not known.
pub(super) fn number(number: Option<u64>, out: &mut Vec<u8>) {
    if let Some(number) = number {
        unsigned(number, out);
    }
}

/// Appends an array as JSON.
pub(super) fn array(
    (field, value): (Option<&Field>, Value<'_>),
    budget: &mut usize,
    out: &mut Vec<u8>,
) {
    let mut pair = b"{".to_vec();
    json_args::pair(b"", (field, value), budget, &mut pair);
    let value = pair.strip_prefix(b"{\"\":").unwrap_or_default();
    out.extend_from_slice(value);
}

/// Appends the value of an argument: numbers with all their digits, addresses and bytes in hexadecimal,
/// arrays as JSON; nothing for a value that is absent. `budget`: bytes of text that may still be
/// written.
pub(super) fn value(
    (field, value): (Option<&Field>, Value<'_>),
    budget: &mut usize,
    out: &mut Vec<u8>,
) {
    let is_address = field.is_some_and(|field| field.semantic == Some(semantic::ADDRESS));
    match value.within(budget) {
        Value::U64(address) if is_address => {
            out.extend_from_slice(b"0x");
            escape::hex(&address.to_be_bytes(), out);
        }
        Value::U64(number) => unsigned(number, out),
        Value::I64(number) => signed(number, out),
        Value::U128(number) => out.extend_from_slice(number.to_string().as_bytes()),
        Value::I128(number) => out.extend_from_slice(number.to_string().as_bytes()),
        Value::F32(number) => out.extend_from_slice(format!("{number:?}").as_bytes()),
        Value::F64(number) => out.extend_from_slice(format!("{number:?}").as_bytes()),
        Value::Bool(is_so) => out.extend_from_slice(if is_so { b"true" } else { b"false" }),
        Value::Char(char) => text(char.encode_utf8(&mut [0; 4]).as_bytes(), out),
        Value::Str(bytes) => text(bytes, out),
        Value::Bytes(bytes) => escape::hex(bytes, out),
        array @ Value::Array(..) => {
            let mut shown = Vec::new();
            self::array((field, array), budget, &mut shown);
            json(&shown, out);
        }
        Value::None | Value::Missing => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(bytes: &[u8]) -> String {
        let mut out = Vec::new();
        text(bytes, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_cell_is_one_cell_and_no_formula() {
        for (bytes, expected) in [
            (&b"shop.order"[..], "shop.order"),
            (b"", ""),
            (b"web-1", "web-1"),
            (b"a,b", "\"a,b\""),
            (b"a\"b", "\"a\"\"b\""),
            (b"a\r\n\tb", "\"a\\r\\n\\tb\""),
            (b"=1+1", "\"'=1+1\""),
            (b"@SUM(A1)", "\"'@SUM(A1)\""),
            (b"-1", "\"'-1\""),
            (b"+1", "\"'+1\""),
            (b"'=1", "\"''=1\""),
            ("\u{FF1D}1".as_bytes(), "\"'\u{FF1D}1\""),
            (b"\x1b[2J", "\"\\x1b[2J\""),
            (b"a\\b", "\"a\\\\b\""),
        ] {
            assert_eq!(cell(bytes), expected);
        }
    }
}
