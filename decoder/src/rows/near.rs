//! Groups that were met, by the places of the texts that make them.
//!
//! A name is in a dump once, or once for each type. So where it is tells which one it is, without a look at its bytes.
//! A text that is at another place has another entry with the same group.

use std::marker::PhantomData;

use crate::rows::column::Column;
use crate::rows::row::Row;

/// Entries.
const PLACES: usize = 1 << PLACES_BITS;
const PLACES_BITS: u32 = 13;

/// Bits of a word that have an address. Above them is the length of the text there.
const ADDRESS_BITS: u32 = 48;

/// The groups of the texts that were met last. An entry gives way to another one that falls on its place.
#[derive(Debug, Default)]
pub(super) struct Near<'d> {
    /// The entries: a word for each column, and one more than the number of the group; 0: nothing was met. They are
    /// next to each other, so that one line of memory has them.
    entries: Vec<u64>,
    /// The words of the row at hand.
    row: Vec<u64>,
    /// The texts stay where they are.
    texts: PhantomData<&'d [u8]>,
}

impl<'d> Near<'d> {
    /// The place of a row's entry; `None`: it has none, because a column is no text of the dump.
    #[inline]
    pub(super) fn place(&mut self, columns: &[Column], row: &Row<'_, 'd>) -> Option<usize> {
        self.row.clear();
        let mut mixed = 0_u64;
        for column in columns {
            let word = word(column.text(row)?)?;
            mixed = (mixed ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            self.row.push(word);
        }
        Some((mixed >> (u64::BITS - PLACES_BITS)) as usize)
    }

    /// The group of the row at hand.
    #[inline]
    pub(super) fn number(&self, place: usize) -> Option<usize> {
        let wide = self.row.len();
        let (number, texts) = self.entries.get(place * (wide + 1)..)?.split_first()?;
        let is_it = texts.get(..wide)? == self.row;
        (*number as usize).checked_sub(1).filter(|_| is_it)
    }

    /// Notes the group of the row at hand.
    #[cold]
    pub(super) fn keep(&mut self, place: usize, number: usize) {
        let wide = self.row.len();
        self.entries.resize(PLACES * (wide + 1), 0);
        let entry = &mut self.entries[place * (wide + 1)..][..=wide];
        entry[0] = number as u64 + 1;
        entry[1..].copy_from_slice(&self.row);
    }
}

/// Where a text is and how long it is, as one word; `None`: it does not fit.
#[inline]
fn word(text: &[u8]) -> Option<u64> {
    let (address, length) = (text.as_ptr().addr() as u64, text.len() as u64);
    let fits = address >> ADDRESS_BITS == 0 && length >> (u64::BITS - ADDRESS_BITS) == 0;
    fits.then_some(address | length << ADDRESS_BITS)
}
