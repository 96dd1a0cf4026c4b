//! Groups that were met, by the places of the texts that make them.
//!
//! A name is in a dump once, or once for each type. So where it is tells which one it is, without a look at its bytes.
//! A text that is at another place has another entry with the same group.

use crate::rows::column::Column;
use crate::rows::row::Row;

/// Entries.
const PLACES: usize = 1 << PLACES_BITS;
const PLACES_BITS: u32 = 13;

/// The groups of the texts that were met last. An entry gives way to another one that falls on its place.
#[derive(Debug, Default)]
pub(super) struct Near<'d> {
    /// Texts of the entries, as many as there are columns for each; empty: nothing was met.
    texts: Vec<&'d [u8]>,
    /// Their groups.
    numbers: Vec<Option<usize>>,
    /// Those of the row at hand.
    row: Vec<&'d [u8]>,
}

impl<'d> Near<'d> {
    /// The place of a row's entry; `None`: it has none, because a column is no text of the dump.
    #[inline]
    pub(super) fn place(&mut self, columns: &[Column], row: &Row<'_, 'd>) -> Option<usize> {
        self.row.clear();
        let mut mixed = 0_u64;
        for column in columns {
            let text = column.text(row)?;
            let part = text.as_ptr().addr() as u64 ^ (text.len() as u64) << 48;
            mixed = (mixed ^ part).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            self.row.push(text);
        }
        Some((mixed >> (u64::BITS - PLACES_BITS)) as usize)
    }

    /// The group of the row at hand.
    #[inline]
    pub(super) fn number(&self, place: usize) -> Option<usize> {
        let number = (*self.numbers.get(place)?)?;
        let wide = self.row.len();
        let kept = &self.texts[place * wide..][..wide];
        let mut both = kept.iter().zip(&self.row);
        both.all(|(kept, text)| std::ptr::eq(*kept, *text))
            .then_some(number)
    }

    /// Notes the group of the row at hand.
    #[cold]
    pub(super) fn keep(&mut self, place: usize, number: usize) {
        let wide = self.row.len();
        if self.numbers.is_empty() {
            self.numbers = vec![None; PLACES];
            self.texts = vec![&[]; PLACES * wide];
        }
        self.numbers[place] = Some(number);
        self.texts[place * wide..][..wide].copy_from_slice(&self.row);
    }
}
