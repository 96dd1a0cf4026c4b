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

/// Bytes of an entry of this kind of table.
fn entry_bytes(kind: TableKind) -> usize {
    if kind == TableKind::Xray {
        SLED_BYTES
    } else {
        8
    }
}

/// Number of entries in a table of that many bytes.
pub(super) fn count(kind: TableKind, bytes: usize) -> usize {
    bytes / entry_bytes(kind)
}

/// The entries of a table at address `at`. There may be hundreds of thousands.
pub(super) fn entries(table: Table, at: u64, bytes: &[u8]) -> impl Iterator<Item = TableEntry> {
    let size = entry_bytes(table.kind);
    let places = (at..).step_by(size).zip(bytes.chunks_exact(size));
    places.filter_map(move |(at, bytes)| entry(table.kind, at, bytes))
}

/// The entry at address `at`.
fn entry(kind: TableKind, at: u64, bytes: &[u8]) -> Option<TableEntry> {
    let (origin, site) = match kind {
        TableKind::Patchable => (Origin::Patchable, SiteKind::Entry),
        TableKind::Mcount => (Origin::Mcount, SiteKind::Entry),
        TableKind::Inside => (Origin::Inside, SiteKind::Entry),
        TableKind::Return => (Origin::Return, SiteKind::BeforeReturn),
        TableKind::Xray => return sled(at, bytes),
    };
    // Entries of sites inside functions hold the distance from the entry to the site.
    let from = if kind == TableKind::Inside { at } else { 0 };
    Some(TableEntry {
        at: from.wrapping_add(word(bytes)),
        origin,
        kind: site,
        function: None,
    })
}

fn word(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .rev()
        .fold(0, |word, byte| word << 8 | u64::from(*byte))
}

const SLED_BYTES: usize = 32;

/// An entry of XRay's map: address, function, kind, "always", version, padding. From version 2 on both
/// addresses count from where they stand.
fn sled(here: u64, sled: &[u8]) -> Option<TableEntry> {
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
            found.map(|entry| entry.at).collect::<Vec<_>>(),
            [0x10, 0x20]
        );

        let distances = [0x10_u64, 0xffff_ffff_ffff_fff0].map(u64::to_le_bytes);
        let distances = distances.concat();
        let found = entries(table(TableKind::Inside), 0x1000, &distances);
        let found: Vec<_> = found.map(|entry| entry.at).collect();
        assert_eq!(found, [0x1010, 0xff8]);

        let mut sled = [0x100_u64.to_le_bytes(), 0xf8_u64.to_le_bytes()].concat();
        sled.extend([1, 0, 2]);
        sled.resize(32, 0);
        let found: Vec<_> = entries(table(TableKind::Xray), 0x1000, &sled).collect();
        let expected = TableEntry {
            at: 0x1100,
            origin: Origin::SledExit,
            kind: SiteKind::Exit,
            function: Some(0x1100),
        };
        assert_eq!(found, [expected]);
        sled[16] = 4;
        assert_eq!(entries(table(TableKind::Xray), 0x1000, &sled).count(), 0);
    }
}
