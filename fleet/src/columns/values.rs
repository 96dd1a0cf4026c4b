//! Different values of a column, each once, in the bytes that a Parquet file has of them.

use ahash::RandomState;
use hashbrown::HashTable;

/// Values, numbered from 0.
pub(crate) struct Values {
    state: RandomState,
    by_hash: HashTable<u32>,
    /// The values one after the other; texts have their length before them.
    pub(super) plain: Vec<u8>,
    /// Where in `plain` each one ends.
    ends: Vec<usize>,
    /// Bytes of the length of a text; 0: values are numbers.
    length_bytes: usize,
}

impl Values {
    pub(crate) fn new(is_text: bool) -> Self {
        Self {
            state: RandomState::new(),
            by_hash: HashTable::new(),
            plain: Vec::new(),
            ends: Vec::new(),
            length_bytes: if is_text { 4 } else { 0 },
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The number of a value.
    pub(crate) fn number(&mut self, value: &[u8]) -> u32 {
        let hash = self.state.hash_one(value);
        let is_same = |number: &u32| self.get(*number) == value;
        if let Some(number) = self.by_hash.find(hash, is_same) {
            return *number;
        }
        let number = self.push(value);
        let Self { state, by_hash, .. } = self;
        let (plain, ends, length_bytes) = (&self.plain, &self.ends, self.length_bytes);
        let hash_of = |number: &u32| state.hash_one(at(plain, ends, length_bytes, *number));
        by_hash.insert_unique(hash, number, hash_of);
        number
    }

    /// Appends a value that is not looked for later.
    pub(super) fn push(&mut self, value: &[u8]) -> u32 {
        if self.length_bytes > 0 {
            let length = value.len() as u32;
            self.plain.extend_from_slice(&length.to_le_bytes());
        }
        self.plain.extend_from_slice(value);
        self.ends.push(self.plain.len());
        self.ends.len() as u32 - 1
    }

    /// A value by its number.
    pub(crate) fn get(&self, number: u32) -> &[u8] {
        at(&self.plain, &self.ends, self.length_bytes, number)
    }

    /// The same, as it stands in a file.
    pub(super) fn plain(&self, number: u32) -> &[u8] {
        at(&self.plain, &self.ends, 0, number)
    }

    /// Keeps the first values.
    pub(super) fn truncate(&mut self, count: usize) {
        self.by_hash.retain(|number| (*number as usize) < count);
        self.ends.truncate(count);
        self.plain.truncate(self.ends.last().copied().unwrap_or(0));
    }
}

fn at<'v>(plain: &'v [u8], ends: &[usize], length_bytes: usize, number: u32) -> &'v [u8] {
    let number = number as usize;
    let from = number.checked_sub(1).map_or(0, |before| ends[before]);
    &plain[from + length_bytes..ends[number]]
}
