//! Patterns for names, and how far two names are apart.

/// Whether all of `text` matches: `*` any bytes, `?` one byte. Time: product of the lengths.
pub(crate) fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut star = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(b) if *b == b'?' || *b == text[t] => {
                p += 1;
                t += 1;
            }
            _ => {
                let Some((at, from)) = star else { return false };
                star = Some((at, from + 1));
                p = at + 1;
                t = from + 1;
            }
        }
    }
    pattern[p..].iter().all(|b| *b == b'*')
}

/// Longest names that are compared letter by letter.
const COMPARED_BYTES_MAX: usize = 128;

/// Letters to change, add or remove to make one of the other (Levenshtein).
pub(crate) fn distance(a: &[u8], b: &[u8]) -> usize {
    let (a, b) = (
        &a[..a.len().min(COMPARED_BYTES_MAX)],
        &b[..b.len().min(COMPARED_BYTES_MAX)],
    );
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let changed = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        for (pattern, text, wanted) in [
            ("a*c", "abbbc", true),
            ("a*c", "abbbd", false),
            ("*", "", true),
            ("?", "", false),
            ("h?llo*", "hello world", true),
            ("*a*a*a", "aaab", false),
            ("exact", "exact", true),
            ("exact", "exactly", false),
        ] {
            assert_eq!(
                matches(pattern.as_bytes(), text.as_bytes()),
                wanted,
                "{pattern} {text}"
            );
        }
    }

    #[test]
    fn distances() {
        assert_eq!(distance(b"kitten", b"sitting"), 3);
        assert_eq!(distance(b"", b"abc"), 3);
    }
}
