//! How far two names are apart, to suggest the name that a user meant.

/// Bytes of a name that are compared; the time grows with the product of the lengths.
const COMPARED_BYTES_MAX: usize = 128;

/// Bytes to change, add or remove to turn one name into the other (Levenshtein distance).
/// Only the first [`COMPARED_BYTES_MAX`] bytes of each count.
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
