//! Keys, as a terminal sends them.

/// A key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Key {
    Char(char),
    Enter,
    Tab,
    BackTab,
    Backspace,
    Escape,
    Up,
    Down,
    PageUp,
    PageDown,
    Home,
    /// One that means nothing here.
    Other,
}

/// The keys in what was read at one time: a key that sends several bytes sends them together.
pub(crate) fn keys(bytes: &[u8]) -> Vec<Key> {
    let text = String::from_utf8_lossy(bytes);
    let (mut rest, mut keys) = (text.as_ref(), Vec::new());
    while let Some(first) = rest.chars().next() {
        let (key, used) = match first {
            '\x1b' => sequence(rest),
            '\r' | '\n' => (Key::Enter, 1),
            '\t' => (Key::Tab, 1),
            '\x08' | '\x7f' => (Key::Backspace, 1),
            c if c.is_control() || c == char::REPLACEMENT_CHARACTER => (Key::Other, c.len_utf8()),
            c => (Key::Char(c), c.len_utf8()),
        };
        keys.push(key);
        rest = &rest[used..];
    }
    keys
}

/// The key of an escape sequence at the beginning of a text, and the bytes that it has.
fn sequence(text: &str) -> (Key, usize) {
    let Some(body) = text.strip_prefix("\x1b[").or(text.strip_prefix("\x1bO")) else {
        return (Key::Escape, 1);
    };
    let end = body.find(|c: char| c.is_ascii_alphabetic() || c == '~');
    let Some(end) = end else {
        return (Key::Other, text.len());
    };
    let key = match &body[..=end] {
        "A" => Key::Up,
        "B" => Key::Down,
        "H" | "1~" | "7~" => Key::Home,
        "5~" => Key::PageUp,
        "6~" => Key::PageDown,
        "Z" => Key::BackTab,
        _ => Key::Other,
    };
    (key, 2 + end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_taken_apart() {
        use Key::{Backspace, Char, Down, Enter, Escape, Other, PageDown, Up};
        assert_eq!(keys(b"q?"), [Char('q'), Char('?')]);
        assert_eq!(keys("要x".as_bytes()), [Char('要'), Char('x')]);
        assert_eq!(keys(b"\x1b[A\x1bOBq"), [Up, Down, Char('q')]);
        assert_eq!(
            keys(b"\x1b[6~\x1b[1;5C\r\x7f"),
            [PageDown, Other, Enter, Backspace]
        );
        assert_eq!(keys(b"\x1b"), [Escape]);
        assert_eq!(keys(b"\x1b["), [Other]);
        assert_eq!(keys(b"\xff\x01"), [Other, Other]);
        assert_eq!(keys("\x1b[要".as_bytes()), [Other]);
    }
}
