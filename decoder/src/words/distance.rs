//! How far two names are apart.

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
    fn distances() {
        assert_eq!(distance(b"kitten", b"sitting"), 3);
        assert_eq!(distance(b"", b"abc"), 3);
    }
}
