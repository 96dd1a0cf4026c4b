//! What a file's unwind table says of the functions around addresses.

use std::collections::BTreeMap;

use gimli::{
    BaseAddresses, CfaRule, CieOrFde, EhFrame, EhFrameHdr, EndianSlice, LittleEndian, RegisterRule,
    UnwindContext, UnwindSection, X86_64,
};
use object::read::elf::ElfFile64;
use object::{Object, ObjectSection, ReadRef};

use crate::arch::ReturnPlace;

/// `.eh_frame` and the table that finds entries in it, with their addresses in the file.
#[derive(Debug)]
pub(super) struct Frames {
    header: (u64, Vec<u8>),
    entries: (u64, Vec<u8>),
}

impl Frames {
    /// Those of a file, if it has both.
    pub(super) fn of<'a, R: ReadRef<'a>>(
        elf: &ElfFile64<'a, object::LittleEndian, R>,
    ) -> Option<Self> {
        let section = |name| {
            let section = elf.section_by_name(name)?;
            let data = section.uncompressed_data().ok()?;
            Some((section.address(), data.into_owned()))
        };
        Some(Self {
            header: section(".eh_frame_hdr")?,
            entries: section(".eh_frame")?,
        })
    }

    /// Bytes of all functions by their first address.
    pub(super) fn sizes(&self) -> BTreeMap<u64, u64> {
        let bases = BaseAddresses::default().set_eh_frame(self.entries.0);
        let section = EhFrame::new(&self.entries.1, LittleEndian);
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

    /// Where the function around `at` begins, and where its return address is when the
    /// instruction at `at` is next.
    pub(super) fn around(&self, at: u64) -> Option<(u64, ReturnPlace)> {
        let bases = BaseAddresses::default()
            .set_eh_frame_hdr(self.header.0)
            .set_eh_frame(self.entries.0);
        let header = EhFrameHdr::new(&self.header.1, LittleEndian)
            .parse(&bases, 8)
            .ok()?;
        let section = EhFrame::new(&self.entries.1, LittleEndian);
        let table = header.table()?;
        let cie = EhFrame::<EndianSlice<'_, _>>::cie_from_offset;
        let entry = table.fde_for_address(&section, &bases, at, cie).ok()?;
        let mut context = UnwindContext::new();
        let row = entry
            .unwind_info_for_address(&section, &bases, &mut context, at)
            .ok()?;
        let place = match (row.cfa(), row.register(X86_64::RA)) {
            (CfaRule::RegisterAndOffset { register, offset }, RegisterRule::Offset(-8)) => {
                ReturnPlace::of(register.0, *offset)?
            }
            _ => return None,
        };
        Some((entry.initial_address(), place))
    }
}
