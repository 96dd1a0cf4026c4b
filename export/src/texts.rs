//! Texts, each kept once.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

/// Texts with their numbers, in the order in which they were met. Two that are the same have one
/// number, but for the rare ones whose hash another text has.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    bytes: Vec<u8>,
    /// Where each text ends.
    ends: Vec<usize>,
    numbers: HashMap<u64, u32>,
    hash: RandomState,
}

impl Texts {
    /// The number of a text.
    pub(crate) fn number(&mut self, text: &[u8]) -> u32 {
        let hash = self.hash.hash_one(text);
        if let Some(number) = self.numbers.get(&hash).copied()
            && self.get(number as usize) == Some(text)
        {
            return number;
        }
        let number = self.ends.len() as u32;
        self.bytes.extend_from_slice(text);
        self.ends.push(self.bytes.len());
        self.numbers.entry(hash).or_insert(number);
        number
    }

    /// The text with this number.
    pub(crate) fn get(&self, number: usize) -> Option<&[u8]> {
        let end = *self.ends.get(number)?;
        let start = match number {
            0 => 0,
            _ => *self.ends.get(number - 1)?,
        };
        self.bytes.get(start..end)
    }

    /// All texts in the order of their numbers.
    pub(crate) fn all(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.ends.len()).filter_map(|number| self.get(number))
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// All texts one after the other.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_one_number() {
        let mut texts = Texts::default();
        let numbers: Vec<_> = [&b"a"[..], b"", b"b", b"a", b""]
            .map(|t| texts.number(t))
            .into();
        assert_eq!(numbers, [0, 1, 2, 0, 1]);
        assert_eq!(texts.all().collect::<Vec<_>>(), [&b"a"[..], b"", b"b"]);
    }
}
