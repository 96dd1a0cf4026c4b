//! The relative relocations of a file: words to which the loader adds the module's base.
//!
//! The loader tells of a module when it has mapped it, and relocates it after that. So tables of
//! patch sites are read as they will be.

use std::ops::Range;

use object::elf::{DF_TEXTREL, DT_FLAGS, DT_TEXTREL, ET_DYN, R_X86_64_RELATIVE};
use object::read::elf::{Dyn, ElfFile64, FileHeader, ProgramHeader};
use object::{LittleEndian, Object, ObjectSection, ReadRef, RelocationFlags};

/// A word that becomes the sum of the module's base and `sum`. Both are addresses in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Relocated {
    pub(super) at: u64,
    pub(super) sum: u64,
}

/// Calls `visit` with the address of each word that is relocated so, and with what the base is added
/// to; `None`: to the word itself.
pub(super) fn relative<'a, R: ReadRef<'a>>(
    elf: &ElfFile64<'a, LittleEndian, R>,
    mut visit: impl FnMut(u64, Option<i64>),
) {
    for (at, relocation) in elf.dynamic_relocations().into_iter().flatten() {
        if let RelocationFlags::Elf { r_type } = relocation.flags()
            && r_type == R_X86_64_RELATIVE
        {
            visit(at, Some(relocation.addend()));
        }
    }
    let packed = elf.section_by_name(".relr.dyn");
    let packed = packed.and_then(|section| section.data().ok());
    relr(packed.unwrap_or_default(), |at| visit(at, None));
}

/// Calls `at` with the place of each packed relative relocation. An even word is a place, an odd
/// one a bitmap of the 63 words after it.
fn relr(words: &[u8], mut at: impl FnMut(u64)) {
    let mut next = 0_u64;
    for word in words.as_chunks::<8>().0 {
        let word = u64::from_le_bytes(*word);
        if word & 1 == 0 {
            at(word);
            next = word.wrapping_add(8);
            continue;
        }
        for bit in (0..63).filter(|bit| word >> (bit + 1) & 1 != 0) {
            at(next.wrapping_add(8 * bit));
        }
        next = next.wrapping_add(8 * 63);
    }
}

/// The relocated words in `tables`, which are addresses in the file; sorted. None for a file whose code
/// is relocated, too: the loader changes the protection of its pages then, so nothing must be done to
/// it before.
pub(super) fn of_tables<'a, R: ReadRef<'a>>(
    elf: &ElfFile64<'a, LittleEndian, R>,
    tables: &[Range<u64>],
) -> Vec<Relocated> {
    let header = elf.elf_header();
    // Relocations are read for the tables alone: a large library has hundreds of thousands.
    if tables.is_empty() || header.e_type(LittleEndian) != ET_DYN || relocates_code(elf) {
        return Vec::new();
    }
    let is_in_table = |at: u64| tables.iter().any(|table| table.contains(&at));
    let mut words = Vec::new();
    relative(elf, |at, sum| {
        if is_in_table(at) {
            let sum = sum.map(i64::cast_unsigned).or_else(|| word(elf, at));
            words.extend(sum.map(|sum| Relocated { at, sum }));
        }
    });
    words.sort_unstable();
    words
}

fn relocates_code<'a, R: ReadRef<'a>>(elf: &ElfFile64<'a, LittleEndian, R>) -> bool {
    let entries = elf.elf_section_table().dynamic(LittleEndian, elf.data());
    let entries = entries.ok().flatten().map_or(&[][..], |found| found.0);
    entries.iter().any(|entry| {
        let tag = entry.d_tag(LittleEndian);
        let flags = entry.d_val(LittleEndian);
        tag == u64::from(DT_TEXTREL)
            || tag == u64::from(DT_FLAGS) && flags & u64::from(DF_TEXTREL) != 0
    })
}

/// The word at this address, as the file has it.
fn word<'a, R: ReadRef<'a>>(elf: &ElfFile64<'a, LittleEndian, R>, at: u64) -> Option<u64> {
    let mut segments = elf.elf_program_headers().iter();
    let bytes = segments.find_map(|segment| {
        let found = segment.data_range(LittleEndian, elf.data(), at, 8);
        found.ok().flatten()
    });
    Some(u64::from_le_bytes(bytes?.try_into().ok()?))
}
