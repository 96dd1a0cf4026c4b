//! A file's code and data by address.

use std::ops::Range;

use object::elf::{SHF_ALLOC, SHF_EXECINSTR, SHF_WRITE};
use object::read::elf::ElfFile64;
use object::{LittleEndian, Object, ObjectKind, ObjectSection, SectionFlags};

/// No program has code or data from here on.
pub(crate) const ADDRESS_MAX: u64 = 1 << 62;

/// A program or shared object in memory.
pub(crate) type Elf<'f> = ElfFile64<'f, LittleEndian, &'f [u8]>;

/// A section's bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Piece<'f> {
    /// Address in the file.
    pub(crate) at: u64,
    pub(crate) bytes: &'f [u8],
    pub(crate) is_writable: bool,
    /// Whether it holds the linker's stubs of imported functions.
    pub(crate) is_stubs: bool,
}

impl Piece<'_> {
    pub(crate) fn end(&self) -> u64 {
        self.at + self.bytes.len() as u64
    }
}

/// All that is loaded of a file.
#[derive(Debug)]
pub(crate) struct Image<'f> {
    /// Sections with code, sorted.
    pub(crate) code: Vec<Piece<'f>>,
    /// Sections with data, sorted.
    pub(crate) data: Vec<Piece<'f>>,
    /// Whether its addresses are those in memory.
    pub(crate) is_fixed: bool,
}

impl<'f> Image<'f> {
    pub(crate) fn of(elf: &Elf<'f>) -> Self {
        let mut image = Self {
            code: Vec::new(),
            data: Vec::new(),
            is_fixed: elf.kind() == ObjectKind::Executable,
        };
        for section in elf.sections() {
            let SectionFlags::Elf { sh_flags } = section.flags() else {
                continue;
            };
            let has = |flag: u32| sh_flags & u64::from(flag) != 0;
            let bytes = section.data().unwrap_or_default();
            let at = section.address();
            let is_loaded = has(SHF_ALLOC) && at != 0 && !bytes.is_empty();
            let end = at.checked_add(bytes.len() as u64);
            if !is_loaded || end.is_none_or(|end| end > ADDRESS_MAX) {
                continue;
            }
            let name = section.name_bytes().unwrap_or_default();
            let pieces = match has(SHF_EXECINSTR) {
                true => &mut image.code,
                false => &mut image.data,
            };
            pieces.push(Piece {
                at,
                bytes,
                is_writable: has(SHF_WRITE),
                is_stubs: name.starts_with(b".plt"),
            });
        }
        image.code.sort_by_key(|piece| piece.at);
        image.data.sort_by_key(|piece| piece.at);
        image
    }

    /// The section of code that `at` lies in.
    pub(crate) fn code_around(&self, at: u64) -> Option<&Piece<'f>> {
        around(&self.code, at)
    }

    pub(crate) fn is_code(&self, at: u64) -> bool {
        self.code_around(at).is_some()
    }

    /// The code from `at` to the end of its section; empty where there is none.
    pub(crate) fn code_from(&self, at: u64) -> &'f [u8] {
        self.code_around(at).map_or(&[], |piece| from(piece, at))
    }

    /// The code in a range, as far as it lies in one section.
    pub(crate) fn code_in(&self, range: &Range<u64>) -> &'f [u8] {
        let bytes = self.code_from(range.start);
        let length = usize::try_from(range.end.saturating_sub(range.start)).unwrap_or(usize::MAX);
        bytes.get(..length).unwrap_or(bytes)
    }

    /// Data, or constants between code, from `at` to the end of its section; empty where there is none.
    pub(crate) fn constants_from(&self, at: u64) -> &'f [u8] {
        match around(&self.data, at) {
            Some(piece) => from(piece, at),
            None => self.code_from(at),
        }
    }

    /// The word of data at an address.
    pub(crate) fn word(&self, at: u64) -> Option<u64> {
        let bytes = self.constants_from(at).first_chunk::<8>()?;
        Some(u64::from_le_bytes(*bytes))
    }
}

fn around<'p, 'f>(pieces: &'p [Piece<'f>], at: u64) -> Option<&'p Piece<'f>> {
    let after = pieces.partition_point(|piece| piece.at <= at);
    let piece = pieces.get(after.checked_sub(1)?)?;
    (at < piece.end()).then_some(piece)
}

fn from<'f>(piece: &Piece<'f>, at: u64) -> &'f [u8] {
    let offset = usize::try_from(at - piece.at).unwrap_or(usize::MAX);
    piece.bytes.get(offset..).unwrap_or_default()
}
