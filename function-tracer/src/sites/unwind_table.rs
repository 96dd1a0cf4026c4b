//! What a file's unwind table says about functions: where they begin, how long they are, and where
//! their return addresses are.

use std::collections::BTreeMap;

use gimli::{
    BaseAddresses, CfaRule, CieOrFde, EhFrame, EhFrameHdr, EndianSlice, LittleEndian, RegisterRule,
    UnwindContext, UnwindSection, X86_64,
};
use object::read::elf::ElfFile64;
use object::{Object, ObjectSection, ReadRef};

use crate::arch::ReturnPlace;

/// A section of a file.
#[derive(Debug)]
struct Section {
    /// Address in the file.
    at: u64,
    bytes: Vec<u8>,
}

/// `.eh_frame`, and `.eh_frame_hdr`, which finds entries in it.
#[derive(Debug)]
pub(super) struct UnwindTable {
    header: Section,
    entries: Section,
}

/// A function around an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FunctionFrame {
    /// Where the function begins.
    pub(super) start: u64,
    /// Where its return address is when that instruction is next.
    pub(super) return_place: ReturnPlace,
}

impl UnwindTable {
    /// The sections of a file that has both.
    pub(super) fn of<'a, R: ReadRef<'a>>(
        elf: &ElfFile64<'a, object::LittleEndian, R>,
    ) -> Option<Self> {
        let section = |name| {
            let section = elf.section_by_name(name)?;
            let data = section.uncompressed_data().ok()?;
            Some(Section {
                at: section.address(),
                bytes: data.into_owned(),
            })
        };
        Some(Self {
            header: section(".eh_frame_hdr")?,
            entries: section(".eh_frame")?,
        })
    }

    /// Sizes in bytes of all functions, by address in the file.
    pub(super) fn sizes(&self) -> BTreeMap<u64, u64> {
        let bases = BaseAddresses::default().set_eh_frame(self.entries.at);
        let section = EhFrame::new(&self.entries.bytes, LittleEndian);
        let mut entries = section.entries(&bases);
        let mut sizes = BTreeMap::new();
        while let Ok(Some(entry)) = entries.next() {
            if let CieOrFde::Fde(partial) = entry
                && let Ok(entry) = partial.parse(EhFrame::cie_from_offset)
            {
                sizes.insert(entry.initial_address(), entry.len());
            }
        }
        sizes
    }

    /// The function around the instruction at `at`, by address in the file.
    pub(super) fn around(&self, at: u64) -> Option<FunctionFrame> {
        let bases = BaseAddresses::default()
            .set_eh_frame_hdr(self.header.at)
            .set_eh_frame(self.entries.at);
        let header = EhFrameHdr::new(&self.header.bytes, LittleEndian)
            .parse(&bases, 8)
            .ok()?;
        let section = EhFrame::new(&self.entries.bytes, LittleEndian);
        let table = header.table()?;
        let cie = EhFrame::<EndianSlice<'_, _>>::cie_from_offset;
        let entry = table.fde_for_address(&section, &bases, at, cie).ok()?;
        let mut context = UnwindContext::new();
        let row = entry
            .unwind_info_for_address(&section, &bases, &mut context, at)
            .ok()?;
        let return_place = match (row.cfa(), row.register(X86_64::RA)) {
            (CfaRule::RegisterAndOffset { register, offset }, RegisterRule::Offset(-8)) => {
                ReturnPlace::of(register.0, *offset)?
            }
            _ => return None,
        };
        Some(FunctionFrame {
            start: entry.initial_address(),
            return_place,
        })
    }
}

/// Addresses in the file at which functions begin, sorted, as `.eh_frame_hdr` has them; that table
/// survives `strip`. `header` is the section, `at` its address in the file. Empty for a section
/// that is not in the form that linkers write.
pub(super) fn starts(header: &[u8], at: u64) -> Vec<u64> {
    // Version 1; count as four bytes; table of pairs of four signed bytes, from the section.
    let [1, _, 0x03, 0x3b, rest @ ..] = header else {
        return Vec::new();
    };
    let Some((_, table)) = rest.split_at_checked(4) else {
        return Vec::new();
    };
    let mut words = table.chunks_exact(4).map(|word| {
        let word: [u8; 4] = word.try_into().unwrap_or_default();
        i32::from_le_bytes(word)
    });
    let count = words.next().unwrap_or(0).cast_unsigned() as usize;
    let firsts = words.step_by(2).take(count);
    let mut starts: Vec<_> = firsts
        .map(|distance| at.wrapping_add_signed(distance.into()))
        .collect();
    starts.sort_unstable();
    starts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_read_and_a_cut_one_is_no_harm() {
        let mut header = vec![1, 0x1b, 0x03, 0x3b, 9, 9, 9, 9, 2, 0, 0, 0];
        for word in [-16_i32, 7, 32, 8] {
            header.extend(word.to_le_bytes());
        }
        assert_eq!(starts(&header, 0x2000), [0x1ff0, 0x2020]);
        for end in 0..header.len() {
            assert!(starts(&header[..end], 0x2000).len() <= 2);
        }
        header[3] = 0x1b;
        assert!(starts(&header, 0x2000).is_empty());
    }
}
