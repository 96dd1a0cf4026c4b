//! Patterns for names of events, functions and modules, the same in filters of every kind.

/// Whether all of `text` matches `pattern`: `*` is any characters, none included, `?` is one. A
/// character is one of UTF-8; a byte that belongs to none counts as one by itself. Nothing is
/// allocated; the time is at most the product of the lengths.
#[must_use]
pub fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut pattern, mut text) = (pattern, text);
    // The pattern after the latest `*`, and the text after what that stands for so far.
    let mut star = None;
    while let Some((character, rest)) = split_first(text) {
        match split_first(pattern) {
            Some((b"*", after)) => {
                pattern = after;
                star = Some((after, text));
            }
            Some((wanted, after)) if wanted == b"?" || wanted == character => {
                (pattern, text) = (after, rest);
            }
            _ => {
                let Some((after, from)) = star else {
                    return false;
                };
                let Some((_, shorter)) = split_first(from) else {
                    return false;
                };
                star = Some((after, shorter));
                (pattern, text) = (after, shorter);
            }
        }
    }
    pattern.iter().all(|byte| *byte == b'*')
}

/// The first character of `text`, and what follows it; `None`: it is empty.
fn split_first(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let length = match text.first()? {
        0xC2..=0xDF => 2,
        0xE0..=0xEF => 3,
        0xF0..=0xF4 => 4,
        _ => 1,
    };
    let whole = text.split_at_checked(length);
    let whole = whole.filter(|(character, _)| core::str::from_utf8(character).is_ok());
    Some(whole.unwrap_or_else(|| text.split_at(1)))
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn patterns() {
        for (pattern, text, expected) in [
            ("", "", true),
            ("", "a", false),
            ("*", "", true),
            ("?", "", false),
            ("**", "a", true),
            ("a*c", "abbbc", true),
            ("a*c", "abbbd", false),
            ("h?llo*", "hello world", true),
            ("*a*a*a", "aaab", false),
            ("*a*b*c", "xxaxxbxxc", true),
            ("*a*b*c", "xxaxxbxx", false),
            ("exact", "exact", true),
            ("exact", "exactly", false),
            ("db.*", "db.query", true),
            ("*query", "db.query", true),
            ("d?.q*y", "db.query", true),
            ("?", "\u{e9}", true),
            ("??", "\u{e9}", false),
            ("h?llo", "h\u{e9}llo", true),
            ("?", "\u{1f980}", true),
            ("*?", "\u{20ac}", true),
            ("*??", "\u{20ac}", false),
            ("?*?", "\u{20ac}", false),
            ("*\u{20ac}?", "a\u{20ac}\u{20ac}\u{e9}", true),
            ("\u{e9}*", "\u{e9}\u{e8}", true),
            ("\u{e9}", "\u{e8}", false),
        ] {
            let found = matches(pattern.as_bytes(), text.as_bytes());
            assert_eq!(found, expected, "{pattern:?} {text:?}");
        }
    }

    #[test]
    fn a_byte_that_belongs_to_no_character_counts_as_one() {
        let cut = &"\u{20ac}".as_bytes()[..2];
        for (pattern, text, expected) in [
            (b"?".as_slice(), b"\xff".as_slice(), true),
            (b"??", b"\xff", false),
            (b"??", cut, true),
            (b"?", cut, false),
            // A surrogate, and a character in more bytes than it needs.
            (b"???", b"\xed\xa0\x80", true),
            (b"??", b"\xc0\x80", true),
            (b"a?b", b"a\x80b", true),
            (b"\xff*", b"\xff\xc3\xa9", true),
            // A byte of a character is not the character.
            (b"*\xa9", b"\xc3\xa9", false),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern:?} {text:?}");
        }
    }

    /// The definition, in exponential time, over characters.
    fn defined(pattern: &[&[u8]], text: &[&[u8]]) -> bool {
        match (pattern.split_first(), text.split_first()) {
            (None, rest) => rest.is_none(),
            (Some((&b"*", after)), _) => {
                (0..=text.len()).any(|taken| defined(after, &text[taken..]))
            }
            (Some((wanted, after)), Some((character, rest))) => {
                (*wanted == b"?" || wanted == character) && defined(after, rest)
            }
            (Some(_), None) => false,
        }
    }

    /// Characters as the standard library finds them; bytes that belong to none, each by itself.
    fn characters(text: &[u8]) -> Vec<&[u8]> {
        let chunks = text.utf8_chunks().flat_map(|chunk| {
            let valid = chunk.valid().split_inclusive(|_| true).map(str::as_bytes);
            valid.chain(chunk.invalid().chunks(1))
        });
        chunks.collect()
    }

    proptest! {
        #[test]
        fn it_matches_what_the_definition_does(
            pattern in "[ab*?\u{e9}\u{20ac}]{0,7}",
            text in "[ab*\u{e9}\u{20ac}]{0,9}",
            broken in proptest::collection::vec(any::<proptest::sample::Index>(), 0..3),
        ) {
            let mut text = text.into_bytes();
            for index in broken {
                // A byte less may leave half a character.
                if !text.is_empty() {
                    text.remove(index.index(text.len()));
                }
            }
            let expected = defined(&characters(pattern.as_bytes()), &characters(&text));
            prop_assert_eq!(matches(pattern.as_bytes(), &text), expected);
        }
    }
}
