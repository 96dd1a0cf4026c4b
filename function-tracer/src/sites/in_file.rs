//! What could be traced in a file that does not run. The file is laid out in memory as the loader
//! would do it, and scanned like a loaded module.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use object::elf::{ET_EXEC, FileHeader64, PT_LOAD, PT_NOTE};
use object::read::elf::{ElfFile64, FileHeader, ProgramHeader};
use object::{LittleEndian, Object, ObjectSection, ObjectSymbol, SymbolKind};

use super::file_error::FileError;
use super::loader::{self, Loaded, Segment};
use super::module::{Function, Module, ModuleId, Refused, SiteKind};
use super::{relocations, scan};

/// Bytes of an image that is laid out at most.
const IMAGE_BYTES_MAX: u64 = 4 << 30;
const PAGE: usize = 4096;
/// Tables of patch sites that hold absolute addresses.
const TABLES: [&str; 3] = [
    "__patchable_function_entries",
    "__mcount_loc",
    "__return_loc",
];

/// What could be traced in a file. Addresses are those in the file.
#[derive(Debug, Default)]
pub struct InFile {
    /// Functions with patch sites.
    pub functions: Vec<Function>,
    /// Table entries that are no patch sites.
    pub refused: Vec<Refused>,
    /// Symbols of functions without a patch site.
    pub others: BTreeSet<Vec<u8>>,
    /// Symbols of functions of other objects that it uses.
    pub imported: BTreeSet<Vec<u8>>,
    /// Whether the file is a program that loads no shared objects.
    pub is_static: bool,
    /// What functions call in place of patch sites, in a file that was built for another tracer.
    pub calls: Option<Instrumentation>,
}

/// A function that other tracers have called at the entry of each function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Instrumentation {
    /// The called function's symbol.
    pub called: &'static str,
    /// The compiler's flags that make functions call it.
    pub flags: &'static str,
}

const INSTRUMENTATIONS: [Instrumentation; 4] = [
    Instrumentation {
        called: "mcount",
        flags: "-pg",
    },
    Instrumentation {
        called: "_mcount",
        flags: "-pg",
    },
    Instrumentation {
        called: "__fentry__",
        flags: "-pg -mfentry",
    },
    Instrumentation {
        called: "__cyg_profile_func_enter",
        flags: "-finstrument-functions",
    },
];

type ElfBytes<'a> = ElfFile64<'a, LittleEndian, &'a [u8]>;

/// Finds what could be traced in a program or shared object.
///
/// # Errors
/// The file cannot be read, or is neither of the two. The error does not name the path.
pub fn in_file(path: &Path) -> Result<InFile, FileError> {
    let path = fs::canonicalize(path)?;
    let bytes = fs::read(&path)?;
    let elf: ElfBytes<'_> = super::elf::parse(bytes.as_slice())?;
    let image = Image::of(&elf, &bytes)?;
    let loaded = image.loaded(&elf, &path);
    let base = loaded.base;
    let mut found = InFile {
        is_static: super::elf::is_static(&elf),
        ..InFile::default()
    };
    let draft = scan::draft(loaded, &[], false).filter(scan::Draft::is_of_interest);
    let module = draft.and_then(|draft| loader::hold(|held| draft.module(held, ModuleId(0), 0).0));
    if let Some(module) = module {
        found.take(module, base);
    }
    let is_called = |name: &str| {
        let mut symbols = elf.dynamic_symbols().chain(elf.symbols());
        symbols.any(|s| s.is_undefined() && s.name_bytes().is_ok_and(|n| n == name.as_bytes()))
    };
    let mut instrumentations = INSTRUMENTATIONS.into_iter();
    found.calls = instrumentations.find(|one| is_called(one.called));
    let known: BTreeSet<_> = found.functions.iter().map(|f| f.address).collect();
    let symbols = elf.symbols().chain(elf.dynamic_symbols());
    let functions = symbols.filter(|s| s.kind() == SymbolKind::Text && s.is_definition());
    let others = functions.filter(|s| s.address() != 0 && !known.contains(&s.address()));
    let names = others.filter_map(|s| s.name_bytes().ok());
    let refused: BTreeSet<_> = found.refused.iter().map(|r| r.symbol.as_slice()).collect();
    let others = names.filter(|name| !refused.contains(name));
    found.others = others.map(<[u8]>::to_vec).collect();
    let imported = elf.dynamic_symbols().filter(ObjectSymbol::is_undefined);
    let imported = imported.filter(|s| s.kind() == SymbolKind::Text);
    let imported = imported.filter_map(|s| s.name_bytes().ok());
    found.imported = imported.map(<[u8]>::to_vec).collect();
    Ok(found)
}

impl InFile {
    fn take(&mut self, module: Module, base: u64) {
        let in_file = |address: u64| address.wrapping_sub(base);
        let entered = module
            .sites
            .iter()
            .filter(|site| site.kind == SiteKind::Entry);
        let entered: BTreeSet<_> = entered.map(|site| site.function as usize).collect();
        let functions = module.functions.into_iter().enumerate();
        let functions = functions.filter(|(place, _)| entered.contains(place));
        self.functions = functions.map(|(_, function)| function).collect();
        self.refused = module.refused;
        for function in &mut self.functions {
            function.address = in_file(function.address);
        }
        for refused in &mut self.refused {
            refused.address = in_file(refused.address);
        }
    }
}

/// A file's segments in memory, at the distances from each other that they have in a process.
struct Image {
    memory: Vec<u8>,
    /// Index in `memory` of the lowest segment's page.
    start: usize,
    /// Address in the file of that page.
    lowest: u64,
}

impl Image {
    fn of(elf: &ElfBytes<'_>, bytes: &[u8]) -> Result<Self, FileError> {
        let endian = LittleEndian;
        let loads = || {
            let headers = elf.elf_program_headers().iter();
            headers.filter(|header| header.p_type(endian) == PT_LOAD)
        };
        let lowest = loads().map(|h| h.p_vaddr(endian)).min().unwrap_or(0);
        let lowest = lowest & !(PAGE as u64 - 1);
        let ends = loads().map(|h| h.p_vaddr(endian).saturating_add(h.p_memsz(endian)));
        let length = ends.max().unwrap_or(0).saturating_sub(lowest);
        if length > IMAGE_BYTES_MAX {
            return Err(FileError::TooLarge { bytes: length });
        }
        let memory = vec![0; length as usize + 2 * PAGE];
        let start = memory.as_ptr().align_offset(PAGE);
        let mut image = Self {
            memory,
            start,
            lowest,
        };
        for load in loads() {
            let from = load.p_offset(endian) as usize;
            let content = from.checked_add(load.p_filesz(endian) as usize);
            let content = content.and_then(|end| bytes.get(from..end));
            let to = image.at(load.p_vaddr(endian), load.p_filesz(endian));
            if let (Some(content), Some(to)) = (content, to) {
                to.copy_from_slice(content);
            }
        }
        image.relocate(elf);
        Ok(image)
    }

    /// The sum of this and an address in the file is the address in memory.
    fn base(&self) -> u64 {
        let first = self.memory.as_ptr().wrapping_add(self.start) as u64;
        first.wrapping_sub(self.lowest)
    }

    fn at(&mut self, address: u64, length: u64) -> Option<&mut [u8]> {
        let from = address.checked_sub(self.lowest)? as usize;
        let from = from.checked_add(self.start)?;
        self.memory
            .get_mut(from..from.checked_add(length as usize)?)
    }

    fn word(&mut self, address: u64) -> Option<&mut [u8; 8]> {
        self.at(address, 8)?.try_into().ok()
    }

    fn set(&mut self, address: u64, value: u64) {
        if let Some(word) = self.word(address) {
            *word = value.to_le_bytes();
        }
    }

    fn add(&mut self, address: u64, value: u64) {
        if let Some(word) = self.word(address) {
            *word = u64::from_le_bytes(*word).wrapping_add(value).to_le_bytes();
        }
    }

    /// Relocates tables of addresses as the loader does.
    fn relocate(&mut self, elf: &ElfBytes<'_>) {
        let base = self.base();
        relocations::relative(elf, |at, sum| match sum {
            Some(sum) => self.set(at, base.wrapping_add_signed(sum)),
            None => self.add(at, base),
        });
        let header: &FileHeader64<LittleEndian> = elf.elf_header();
        if header.e_type(LittleEndian) == ET_EXEC {
            for section in TABLES.iter().filter_map(|name| elf.section_by_name(name)) {
                let words = (0..section.size() / 8).map(|n| section.address() + 8 * n);
                words.for_each(|at| self.add(at, base));
            }
        }
    }

    fn loaded(&self, elf: &ElfBytes<'_>, path: &Path) -> Loaded {
        let endian = LittleEndian;
        let base = self.base();
        let headers = elf.elf_program_headers();
        let of_type = |kind| headers.iter().filter(move |h| h.p_type(endian) == kind);
        let segments = of_type(PT_LOAD).map(|header| {
            let start = base.wrapping_add(header.p_vaddr(endian));
            let flags = header.p_flags(endian);
            Segment {
                start,
                end: start.wrapping_add(header.p_memsz(endian)),
                is_readable: true,
                is_writable: flags & object::elf::PF_W != 0,
                is_executable: flags & object::elf::PF_X != 0,
            }
        });
        let notes =
            of_type(PT_NOTE).map(|h| (base.wrapping_add(h.p_vaddr(endian)), h.p_memsz(endian)));
        Loaded {
            name: path.to_owned(),
            base,
            segments: segments.collect(),
            notes: notes.collect(),
            headers: super::elf::headers(elf),
        }
    }
}
