//! The entries of a module's tables of patch sites, as the loader left them in memory.

use super::elf::{Table, TableKind};
use super::module::SiteKind;
use crate::arch::Origin;

/// An entry of a table. Addresses are those in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TableEntry {
    /// Address of the first NOP, call or sled.
    pub(super) at: u64,
    pub(super) origin: Origin,
    pub(super) kind: SiteKind,
    /// Where the function begins, in tables that say so.
    pub(super) function: Option<u64>,
}

/// The entries of a table at address `at`.
pub(super) fn entries(table: Table, at: u64, bytes: &[u8]) -> Vec<TableEntry> {
    let (origin, kind) = match table.kind {
        TableKind::Patchable => (Origin::Patchable, SiteKind::Entry),
        TableKind::Mcount => (Origin::Mcount, SiteKind::Entry),
        TableKind::Inside => (Origin::Inside, SiteKind::Entry),
        TableKind::Return => (Origin::Return, SiteKind::BeforeReturn),
        TableKind::Xray => return sleds(at, bytes),
    };
    let words = bytes.chunks_exact(8).map(word);
    // Entries of sites inside functions hold the distance from the entry to the site.
    let is_relative = table.kind == TableKind::Inside;
    let entry = |(place, word): (u64, u64)| TableEntry {
        at: if is_relative {
            place.wrapping_add(word)
        } else {
            word
        },
        origin,
        kind,
        function: None,
    };
    (at..).step_by(8).zip(words).map(entry).collect()
}

fn word(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .rev()
        .fold(0, |word, byte| word << 8 | u64::from(*byte))
}

/// Entries of XRay's map: address, function, kind, "always", version, padding; 32 bytes. From
/// version 2 on both addresses count from where they stand.
fn sleds(at: u64, bytes: &[u8]) -> Vec<TableEntry> {
    const SLED_BYTES: usize = 32;
    let sled = |(index, sled): (usize, &[u8])| {
        let here = at + (index * SLED_BYTES) as u64;
        let (address, function) = (word(&sled[..8]), word(&sled[8..16]));
        let is_relative = sled[18] >= 2;
        let from = |place: u64| if is_relative { place } else { 0 };
        let (origin, kind) = match sled[16] {
            // An entry, and one with its first argument logged.
            0 | 3 => (Origin::SledEntry, SiteKind::Entry),
            1 => (Origin::SledExit, SiteKind::Exit),
            2 => (Origin::SledEntry, SiteKind::TailExit),
            // Events of the program itself.
            _ => return None,
        };
        Some(TableEntry {
            at: address.wrapping_add(from(here)),
            origin,
            kind,
            function: Some(function.wrapping_add(from(here + 8))),
        })
    };
    bytes
        .chunks_exact(SLED_BYTES)
        .enumerate()
        .filter_map(sled)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_sleds() {
        let table = |kind| Table {
            kind,
            at: 0,
            length: 0,
        };
        let bytes = [0x10_u64, 0x20].map(u64::to_le_bytes).concat();
        let found = entries(table(TableKind::Patchable), 0, &bytes);
        assert_eq!(
            found.iter().map(|entry| entry.at).collect::<Vec<_>>(),
            [0x10, 0x20]
        );

        let distances = [0x10_u64, 0xffff_ffff_ffff_fff0].map(u64::to_le_bytes);
        let found = entries(table(TableKind::Inside), 0x1000, &distances.concat());
        let found: Vec<_> = found.iter().map(|entry| entry.at).collect();
        assert_eq!(found, [0x1010, 0xff8]);

        let mut sled = [0x100_u64.to_le_bytes(), 0xf8_u64.to_le_bytes()].concat();
        sled.extend([1, 0, 2]);
        sled.resize(32, 0);
        let found = entries(table(TableKind::Xray), 0x1000, &sled);
        let expected = TableEntry {
            at: 0x1100,
            origin: Origin::SledExit,
            kind: SiteKind::Exit,
            function: Some(0x1100),
        };
        assert_eq!(found, [expected]);
        sled[16] = 4;
        assert!(entries(table(TableKind::Xray), 0x1000, &sled).is_empty());
    }
}
