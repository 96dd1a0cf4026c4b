//! Each address in code that code or data leads to.

use object::elf::{R_X86_64_64, R_X86_64_IRELATIVE, R_X86_64_RELATIVE};
use object::{
    Object, ObjectSection, ObjectSymbol, ObjectSymbolTable, RelocationFlags, RelocationTarget,
};

use crate::distances;
use crate::frames::Frames;
use crate::image::{Elf, Image};
use crate::instructions::{Lead, Passed};
use crate::refusal::LeadKind;
use crate::starts::Starts;

/// All leads, sorted by where they lead to.
#[derive(Debug)]
pub(crate) struct Leads {
    all: Vec<Lead>,
    /// Places that the loader writes to, sorted.
    relocated: Vec<u64>,
}

/// Entries of a table of addresses that are read at most.
const ENTRIES_MAX: usize = 70_000;

impl Leads {
    pub(crate) fn of(
        elf: &Elf<'_>,
        image: &Image<'_>,
        frames: &Frames<'_>,
        starts: &Starts,
        passed: &Passed,
    ) -> Self {
        let mut leads = Self {
            all: Vec::new(),
            relocated: Vec::new(),
        };
        leads.all.extend_from_slice(&passed.branches);
        let computed = passed.computed.iter().map(|one| Lead {
            to: one.to,
            from: one.from,
            kind: LeadKind::Address,
        });
        leads.all.extend(computed);
        leads.relocations(elf);
        leads.packed_relocations(elf, image);
        leads.words(image);
        leads.tables(image, passed);
        distances::leads(image, frames, starts, passed, &mut leads.all);
        leads.all.retain(|lead| image.is_code(lead.to));
        leads.all.sort_unstable_by_key(|lead| (lead.to, lead.from));
        leads.relocated.sort_unstable();
        leads
    }

    fn pointer(&mut self, from: u64, to: u64) {
        let kind = LeadKind::Pointer;
        self.all.push(Lead { to, from, kind });
    }

    /// Pointers that the loader makes.
    fn relocations(&mut self, elf: &Elf<'_>) {
        let symbols = elf.dynamic_symbol_table();
        for (at, relocation) in elf.dynamic_relocations().into_iter().flatten() {
            self.relocated.push(at);
            let RelocationFlags::Elf { r_type } = relocation.flags() else {
                continue;
            };
            let addend = relocation.addend().cast_unsigned();
            match (r_type, relocation.target()) {
                (R_X86_64_RELATIVE | R_X86_64_IRELATIVE, _) => self.pointer(at, addend),
                (R_X86_64_64, RelocationTarget::Symbol(index)) => {
                    let symbol = symbols
                        .as_ref()
                        .and_then(|all| all.symbol_by_index(index).ok());
                    let defined = symbol.filter(|symbol| symbol.address() != 0);
                    if let Some(symbol) = defined {
                        self.pointer(at, symbol.address().wrapping_add(addend));
                    }
                }
                _ => {}
            }
        }
    }

    /// The same in the packed form: a word is an address, or says which of the 63 words that follow it are
    /// relocated.
    fn packed_relocations(&mut self, elf: &Elf<'_>, image: &Image<'_>) {
        let section = elf.section_by_name(".relr.dyn");
        let bytes = section.as_ref().and_then(|section| section.data().ok());
        let mut base = 0_u64;
        for word in bytes.unwrap_or_default().chunks_exact(8) {
            let word = word
                .iter()
                .rev()
                .fold(0, |all, byte| all << 8 | u64::from(*byte));
            if word & 1 == 0 {
                self.packed(image, word);
                base = word.wrapping_add(8);
                continue;
            }
            let set = (0..63).filter(|bit| word >> (bit + 1) & 1 == 1);
            set.for_each(|bit| self.packed(image, base.wrapping_add(bit * 8)));
            base = base.wrapping_add(63 * 8);
        }
    }

    fn packed(&mut self, image: &Image<'_>, at: u64) {
        self.relocated.push(at);
        if let Some(to) = image.word(at) {
            self.pointer(at, to);
        }
    }

    /// Where addresses in the file are those in memory, any word of data may be one.
    fn words(&mut self, image: &Image<'_>) {
        for piece in image.data.iter().filter(|_| image.is_fixed) {
            let skip = piece.at.next_multiple_of(8) - piece.at;
            let words = piece.bytes.get(skip as usize..).unwrap_or_default();
            let places = (piece.at + skip..).step_by(8);
            for (at, word) in places.zip(words.chunks_exact(8)) {
                let to = word
                    .iter()
                    .rev()
                    .fold(0, |all, byte| all << 8 | u64::from(*byte));
                if image.is_code(to) {
                    self.pointer(at, to);
                }
            }
        }
    }

    /// Tables of addresses.
    fn tables(&mut self, image: &Image<'_>, passed: &Passed) {
        for table in &passed.tables {
            let words = image.constants_from(*table).chunks_exact(8);
            for word in words.take(ENTRIES_MAX) {
                let to = word
                    .iter()
                    .rev()
                    .fold(0, |all, byte| all << 8 | u64::from(*byte));
                if !image.is_code(to) {
                    break;
                }
                self.all.push(Lead {
                    to,
                    from: *table,
                    kind: LeadKind::Table,
                });
            }
        }
    }

    /// Where the pointer in data at this address leads.
    pub(crate) fn pointer_at(&self, at: u64) -> Option<u64> {
        let is_there = |lead: &&Lead| lead.kind == LeadKind::Pointer && lead.from == at;
        self.all.iter().find(is_there).map(|lead| lead.to)
    }

    /// Those that lead into a range, in order.
    pub(crate) fn into(&self, range: std::ops::Range<u64>) -> &[Lead] {
        let first = self.all.partition_point(|lead| lead.to < range.start);
        let end = self.all.partition_point(|lead| lead.to < range.end);
        self.all.get(first..end).unwrap_or_default()
    }

    /// Whether the loader writes into a range.
    pub(crate) fn is_relocated(&self, range: &std::ops::Range<u64>) -> bool {
        // A relocation writes 8 bytes at most.
        let from = range.start.saturating_sub(7);
        let first = self.relocated.partition_point(|at| *at < from);
        self.relocated.get(first).is_some_and(|at| *at < range.end)
    }
}
