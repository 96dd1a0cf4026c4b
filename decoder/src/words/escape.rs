//! Text from a trace, made safe for a terminal and for JSON.
//!
//! A traced program may record any bytes. Control characters, characters that hide or reorder text,
//! and invalid UTF-8 are escaped, so that no trace can drive the terminal of its reader.

use std::fmt;

/// Whether a byte of a string can be shown as it is, alone: printable ASCII but the backslash.
#[inline]
const fn is_plain(byte: u8) -> bool {
    matches!(byte, b' '..=b'~') && byte != b'\\'
}

/// Appends `bytes` for text output.
///
/// Printable characters stay as they are. Backslash, line feed, carriage return and tab become
/// `\\`, `\n`, `\r`, `\t`; each byte of other control or invisible characters and of invalid UTF-8
/// becomes `\xNN`.
pub fn text(bytes: &[u8], out: &mut Vec<u8>) {
    if bytes.iter().all(|b| is_plain(*b)) {
        out.extend_from_slice(bytes);
        return;
    }
    for chunk in bytes.utf8_chunks() {
        chunk.valid().chars().for_each(|c| text_char(c, out));
        chunk.invalid().iter().for_each(|b| hex_byte(*b, out));
    }
}

fn text_char(c: char, out: &mut Vec<u8>) {
    match c {
        '\\' => out.extend_from_slice(b"\\\\"),
        '\n' => out.extend_from_slice(b"\\n"),
        '\r' => out.extend_from_slice(b"\\r"),
        '\t' => out.extend_from_slice(b"\\t"),
        c => {
            let mut buffer = [0; 4];
            let bytes = c.encode_utf8(&mut buffer).as_bytes();
            if drives_terminal(c) {
                bytes.iter().for_each(|b| hex_byte(*b, out));
            } else {
                out.extend_from_slice(bytes);
            }
        }
    }
}

/// Control characters, and those that reorder or hide text (bidirectional marks, zero widths,
/// line and paragraph separators, notes between lines, invisible letters of tags).
fn drives_terminal(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{061C}' | '\u{180E}' | '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}')
        || matches!(c, '\u{2060}'..='\u{206F}' | '\u{FEFF}' | '\u{FFF9}'..='\u{FFFB}' | '\u{E0000}'..='\u{E007F}')
}

fn hex_byte(byte: u8, out: &mut Vec<u8>) {
    out.extend_from_slice(b"\\x");
    hex(&[byte], out);
}

/// Appends two lower-case hexadecimal digits per byte.
pub fn hex(bytes: &[u8], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for byte in bytes {
        out.push(DIGITS[usize::from(byte >> 4)]);
        out.push(DIGITS[usize::from(byte & 15)]);
    }
}

/// Appends `bytes` as a JSON string with its quotes.
///
/// Invalid UTF-8 becomes `\xNN` in the string's value, which JSON spells `\\xNN`.
pub fn json(bytes: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    if bytes.iter().all(|b| is_plain(*b) && *b != b'"') {
        out.extend_from_slice(bytes);
    } else {
        for chunk in bytes.utf8_chunks() {
            chunk.valid().chars().for_each(|c| json_char(c, out));
            for byte in chunk.invalid() {
                out.extend_from_slice(b"\\\\x");
                hex(&[*byte], out);
            }
        }
    }
    out.push(b'"');
}

fn json_char(c: char, out: &mut Vec<u8>) {
    match c {
        '"' => out.extend_from_slice(b"\\\""),
        '\\' => out.extend_from_slice(b"\\\\"),
        '\n' => out.extend_from_slice(b"\\n"),
        '\r' => out.extend_from_slice(b"\\r"),
        '\t' => out.extend_from_slice(b"\\t"),
        c => json_other(c, out),
    }
}

/// A character that JSON needs no escape for.
fn json_other(c: char, out: &mut Vec<u8>) {
    if drives_terminal(c) {
        for unit in c.encode_utf16(&mut [0; 2]) {
            out.extend_from_slice(b"\\u");
            hex(&unit.to_be_bytes(), out);
        }
    } else {
        out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
    }
}

/// One line of JSON that another writer made, with `\\u` and digits for characters that drive a
/// terminal or hide: they stand in strings only.
///
/// A line of printable ASCII, as most are, stays what it is: a report may have hundreds of thousands.
#[must_use]
pub fn json_line(json: String) -> String {
    if json.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return json;
    }
    let mut out = Vec::with_capacity(json.len());
    json.chars().for_each(|c| json_other(c, &mut out));
    String::from_utf8_lossy(&out).into_owned()
}

/// Bytes that [`fmt::Display`] shows as [`text`] writes them, for messages.
#[derive(Debug, Clone, Copy)]
pub struct Printable<'a>(pub &'a [u8]);

impl fmt::Display for Printable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = Vec::with_capacity(self.0.len());
        text(self.0, &mut out);
        f.write_str(&String::from_utf8_lossy(&out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_can_drive_a_terminal() {
        let mut out = Vec::new();
        text(b"a\x1b[31m\x07\\\n\xff\xc2\x9b\xe2\x80\xae", &mut out);
        assert_eq!(out, br"a\x1b[31m\x07\\\n\xff\xc2\x9b\xe2\x80\xae");
    }

    #[test]
    fn json_of_others_is_escaped() {
        let made = "{\"a\":\"\u{202e}b\\n\u{9b}\u{e0041}\"}";
        assert_eq!(
            json_line(made.to_owned()),
            r#"{"a":"\u202eb\n\u009b\udb40\udc41"}"#
        );
    }

    #[test]
    fn json_strings_are_escaped() {
        let mut out = Vec::new();
        json(b"a\"\x1b\\\xff\xe2\x80\xae\xf3\xa0\x81\x81", &mut out);
        assert_eq!(out, br#""a\"\u001b\\\\xff\u202e\udb40\udc41""#);
    }
}
