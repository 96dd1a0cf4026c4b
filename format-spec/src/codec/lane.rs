//! A lane: the payload words of one place of one kind of record, and how the next is predicted.

use alloc::vec::Vec;

/// Differences as small unsigned numbers: 0, -1, 1, -2, …
pub(super) const fn zigzag(difference: u64) -> u64 {
    (difference << 1) ^ (((difference as i64) >> 63) as u64)
}

/// The reverse of [`zigzag`].
pub(super) const fn unzigzag(folded: u64) -> u64 {
    (folded >> 1) ^ (folded & 1).wrapping_neg()
}

/// Chooses between a word as it is and its difference from the lane's previous word, by which
/// of the two took fewer bits lately. Both sides see the same words, so no choice is stored.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Predictor {
    previous: u64,
    /// Positive: words as they are have been shorter than differences.
    plain_is_shorter: i32,
}

impl Predictor {
    const fn learn(&mut self, word: u64) {
        let difference = zigzag(word.wrapping_sub(self.previous));
        let gain = word.leading_zeros() as i32 - difference.leading_zeros() as i32;
        self.plain_is_shorter += gain - self.plain_is_shorter / 16;
        self.previous = word;
    }

    /// What is stored for `word`.
    pub(super) const fn code(&mut self, word: u64) -> u64 {
        let code = if self.plain_is_shorter > 0 {
            word
        } else {
            zigzag(word.wrapping_sub(self.previous))
        };
        self.learn(word);
        code
    }

    /// The word that `code` was stored for.
    pub(super) const fn word(&mut self, code: u64) -> u64 {
        let word = if self.plain_is_shorter > 0 {
            code
        } else {
            unzigzag(code).wrapping_add(self.previous)
        };
        self.learn(word);
        word
    }
}

/// A lane's predictor and its words as stored.
#[derive(Debug, Default)]
pub(super) struct Lane {
    pub(super) predictor: Predictor,
    pub(super) codes: Vec<u64>,
    /// Decoding: the next code to take.
    pub(super) next: usize,
}

impl Lane {
    pub(super) fn put(&mut self, word: u64) {
        let code = self.predictor.code(word);
        self.codes.push(code);
    }

    pub(super) fn take(&mut self) -> Option<u64> {
        let code = *self.codes.get(self.next)?;
        self.next += 1;
        Some(self.predictor.word(code))
    }
}
