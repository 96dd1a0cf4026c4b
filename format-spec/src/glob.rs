//! Patterns for names of events, functions and modules, the same in filters of every kind.

/// Whether all of `text` matches `pattern`: `*` is any bytes, `?` one byte. Nothing is allocated;
/// the time is at most the product of the lengths.
#[must_use]
pub fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    // The pattern after the latest `*`, and the end of what that stands for so far.
    let mut star = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                p += 1;
                star = Some((p, t));
            }
            Some(b) if *b == b'?' || *b == text[t] => {
                p += 1;
                t += 1;
            }
            _ => {
                let Some((after, end)) = star else {
                    return false;
                };
                star = Some((after, end + 1));
                (p, t) = (after, end + 1);
            }
        }
    }
    pattern[p..].iter().all(|b| *b == b'*')
}

#[cfg(test)]
mod tests {
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
        ] {
            let found = matches(pattern.as_bytes(), text.as_bytes());
            assert_eq!(found, expected, "{pattern:?} {text:?}");
        }
    }

    /// The definition, in exponential time.
    fn defined(pattern: &[u8], text: &[u8]) -> bool {
        match (pattern.split_first(), text.split_first()) {
            (None, rest) => rest.is_none(),
            (Some((b'*', behind)), _) => {
                (0..=text.len()).any(|taken| defined(behind, &text[taken..]))
            }
            (Some((b, behind)), Some((c, rest))) => (*b == b'?' || b == c) && defined(behind, rest),
            (Some(_), None) => false,
        }
    }

    proptest! {
        #[test]
        fn it_matches_what_the_definition_does(pattern in "[ab*?]{0,7}", text in "[ab*]{0,9}") {
            let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
            prop_assert_eq!(matches(pattern, text), defined(pattern, text));
        }
    }
}
