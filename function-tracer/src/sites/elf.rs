//! What a module's file says: where its tables of patch sites are, and its functions.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::Path;

use object::elf::{DT_NEEDED, Dyn64, EM_AARCH64, EM_X86_64, PF_X, PT_INTERP, PT_LOAD};
use object::read::elf::{Dyn, ElfFile64, FileHeader, ProgramHeader};
use object::{LittleEndian, Object, ObjectSection, ReadCache, ReadRef};

use super::asks_caller::{self, FunctionStart};
use super::debug_file;
use super::file_error::FileError;
use super::names::SymbolName;
use super::relocations::{self, Relocated};
use super::symbol::{self, Elf, Symbol};
use super::unwind_table::{self, UnwindTable};

/// Which table of patch sites, by the compiler that writes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TableKind {
    /// `__patchable_function_entries`, of gcc and clang.
    Patchable,
    /// `__mcount_loc`, of gcc's `-mrecord-mcount`.
    Mcount,
    /// `ringmark_functions`, of `#[trace_fn]`: sites inside functions.
    Inside,
    /// `__return_loc`, of gcc's `-mrecord-return`.
    Return,
    /// `xray_instr_map`, of clang's XRay.
    Xray,
}

/// A table of patch sites in a file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Table {
    pub(super) kind: TableKind,
    /// Address in the file.
    pub(super) at: u64,
    /// Bytes.
    pub(super) length: u64,
}

/// By the address of an outlying piece of code: where the functions begin that it may belong to.
pub(super) type Parts = BTreeMap<u64, Vec<u64>>;

/// What is needed of one file. Addresses are those in the file.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    pub(super) tables: Vec<Table>,
    /// Functions sorted by address, one for each address.
    pub(super) symbols: Vec<Symbol>,
    pub(super) parts: Parts,
    /// Functions that may hand their return address on to one that asks who called it.
    pub(super) handing: BTreeSet<u64>,
    pub(crate) build_id: Vec<u8>,
    /// The program headers, to compare with those in memory.
    pub(super) headers: Vec<[u64; 4]>,
    /// Words of the tables as the loader relocates them; none where it surely has.
    relocated: Vec<Relocated>,
    /// The unwind table, in a file with sites inside functions.
    pub(super) unwind_table: Option<UnwindTable>,
}

/// Whether the loader has relocated a module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Relocation {
    /// Yes: the program, whose code runs.
    Done,
    /// It may not have yet: a module that was just mapped.
    Unknown,
}

/// Takes a file apart that is for the processor whose patch sites are known.
pub(super) fn parse<'a, R: ReadRef<'a>>(
    bytes: R,
) -> Result<ElfFile64<'a, LittleEndian, R>, FileError> {
    let elf = ElfFile64::<LittleEndian, R>::parse(bytes)?;
    match elf.elf_header().e_machine(LittleEndian) {
        EM_X86_64 => Ok(elf),
        EM_AARCH64 => Err(FileError::OtherProcessor {
            found: "aarch64".to_owned(),
        }),
        other => Err(FileError::OtherProcessor {
            found: format!("processor number {other}"),
        }),
    }
}

/// Reads the file at `path`; functions only where it has a table of patch sites.
pub(crate) fn read(path: &Path, relocation: Relocation) -> Result<Contents, FileError> {
    let file = File::open(path)?;
    let code = file.try_clone()?;
    let cache = ReadCache::new(file);
    let elf = parse(&cache)?;
    let build_id = elf.build_id().ok().flatten();
    let mut contents = Contents {
        tables: tables(&elf),
        build_id: build_id.unwrap_or_default().to_vec(),
        headers: headers(&elf),
        ..Contents::default()
    };
    if !contents.tables.is_empty() {
        contents.symbols = symbols(path, &elf, &code);
        contents.parts = parts(&contents.symbols);
        // The first of each address stays.
        contents.symbols.dedup_by_key(|symbol| symbol.at);
        contents.handing = asks_caller::of_file(&elf, &code, || contents.starts());
    }
    if relocation == Relocation::Unknown {
        let tables = contents.tables.iter();
        let tables: Vec<_> = tables
            .map(|t| t.at..t.at.saturating_add(t.length))
            .collect();
        contents.relocated = relocations::of_tables(&elf, &tables);
    }
    let mut tables = contents.tables.iter();
    if tables.any(|table| table.kind == TableKind::Inside) {
        contents.unwind_table = UnwindTable::of(&elf);
    }
    Ok(contents)
}

/// Where those functions of a file begin that may end in a jump to one that asks who called it, such as
/// `dlopen`, by address in the file: their return address must stay.
///
/// # Errors
/// The file cannot be read, or is neither a program nor a shared object.
pub fn handing_on(path: &Path) -> Result<BTreeSet<u64>, FileError> {
    let file = File::open(path)?;
    let code = file.try_clone()?;
    let cache = ReadCache::new(file);
    let elf = parse(&cache)?;
    let starts = || {
        let mut symbols = symbols(path, &elf, &code);
        let parts = parts(&symbols);
        symbols.dedup_by_key(|symbol| symbol.at);
        let contents = Contents {
            symbols,
            parts,
            ..Contents::default()
        };
        contents.starts()
    };
    Ok(asks_caller::of_file(&elf, &code, starts))
}

/// What the headers of a program or shared object say, without its symbols.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Headers {
    /// Whether it has a table of patch sites.
    pub names_sites: bool,
    /// Whether it is a program that loads no shared objects.
    pub is_static: bool,
    /// Whether it loads the runtime of AddressSanitizer as a shared object.
    pub loads_asan: bool,
    /// What is added to the place of code in the file for its address in the file.
    pub code_distance: u64,
}

impl Headers {
    /// Reads those of the file at `path`.
    ///
    /// # Errors
    /// The file cannot be read, or is neither of the two.
    pub fn of(path: &Path) -> Result<Self, FileError> {
        let cache = ReadCache::new(File::open(path)?);
        let elf = parse(&cache)?;
        Ok(Self {
            names_sites: !tables(&elf).is_empty(),
            is_static: is_static(&elf),
            loads_asan: needs(&elf, is_asan).unwrap_or(false),
            code_distance: code_distance(&elf),
        })
    }
}

fn code_distance(elf: &Elf<'_>) -> u64 {
    let mut headers = elf.elf_program_headers().iter();
    let is_code = |header: &&object::elf::ProgramHeader64<LittleEndian>| {
        header.p_type(LittleEndian) == PT_LOAD && header.p_flags(LittleEndian) & PF_X != 0
    };
    headers.find(is_code).map_or(0, |header| {
        let place = header.p_offset(LittleEndian);
        header.p_vaddr(LittleEndian).wrapping_sub(place)
    })
}

/// Whether a file is a program that loads no shared objects.
pub(super) fn is_static<'a, R: ReadRef<'a>>(elf: &ElfFile64<'a, LittleEndian, R>) -> bool {
    let mut headers = elf.elf_program_headers().iter();
    elf.entry() != 0 && !headers.any(|header| header.p_type(LittleEndian) == PT_INTERP)
}

/// Whether a file needs a shared object that `is_meant`.
fn needs(elf: &Elf<'_>, is_meant: fn(&[u8]) -> bool) -> Option<bool> {
    let (endian, data) = (elf.endian(), elf.data());
    let sections = elf.elf_section_table();
    let (entries, strings) = sections.dynamic(endian, data).ok()??;
    let strings = sections.strings(endian, data, strings).ok()?;
    let mut needed = entries
        .iter()
        .filter(|entry| entry.tag32(endian) == Some(DT_NEEDED));
    let name = |entry: &Dyn64<LittleEndian>| strings.get(entry.val32(endian)?).ok();
    Some(needed.any(|entry| name(entry).is_some_and(is_meant)))
}

/// Whether a shared object is the runtime of AddressSanitizer, by its name: gcc's, or that of clang with
/// `-shared-libasan`.
fn is_asan(name: &[u8]) -> bool {
    name.starts_with(b"libasan.so") || name.starts_with(b"libclang_rt.asan")
}

fn tables(elf: &Elf<'_>) -> Vec<Table> {
    let table = |section: object::read::elf::ElfSection64<'_, '_, LittleEndian, _>| {
        let kind = match section.name_bytes().ok()? {
            b"__patchable_function_entries" => TableKind::Patchable,
            b"__mcount_loc" => TableKind::Mcount,
            b"ringmark_functions" => TableKind::Inside,
            b"__return_loc" => TableKind::Return,
            b"xray_instr_map" => TableKind::Xray,
            _ => return None,
        };
        let (at, length) = (section.address(), section.size());
        (at != 0 && length != 0).then_some(Table { kind, at, length })
    };
    elf.sections().filter_map(table).collect()
}

/// The program headers of a file as the loader's list has them: type and flags, offset, address,
/// size.
pub(super) fn headers<'a, R: ReadRef<'a>>(elf: &ElfFile64<'a, LittleEndian, R>) -> Vec<[u64; 4]> {
    let endian = LittleEndian;
    let headers = elf.elf_program_headers().iter();
    let numbers = headers.map(|header| {
        let kind = u64::from(header.p_type(endian)) << 32 | u64::from(header.p_flags(endian));
        [
            kind,
            header.p_offset(endian),
            header.p_vaddr(endian),
            header.p_memsz(endian),
        ]
    });
    numbers.collect()
}

/// Functions of both symbol tables and of a separate debug file, then those that only the unwind
/// table knows, without a name.
fn symbols(path: &Path, elf: &Elf<'_>, file: &File) -> Vec<Symbol> {
    let mut symbols = symbol::functions(elf, file);
    symbols.extend(debug_file::functions(path, elf));
    let header = elf.section_by_name(".eh_frame_hdr");
    let data =
        header.and_then(|section| Some((section.uncompressed_data().ok()?, section.address())));
    let starts = data.map(|(data, at)| unwind_table::starts(&data, at));
    let is_stripped = elf.symbols().next().is_none();
    let frames = is_stripped.then(|| UnwindTable::of(elf)).flatten();
    let sizes = frames.map(|frames| frames.sizes()).unwrap_or_default();
    in_order(&mut symbols);
    let named = symbols.len();
    for at in starts.unwrap_or_default() {
        let known = symbols[..named].binary_search_by_key(&at, |symbol| symbol.at);
        if known.is_err() {
            symbols.push(Symbol {
                at,
                size: sizes.get(&at).copied().unwrap_or(0),
                name: SymbolName::default(),
            });
        }
    }
    if symbols.len() > named {
        in_order(&mut symbols);
    }
    symbols
}

/// Sorts by address. Among several names of one address, one with a size that is no local label's comes
/// first.
fn in_order(symbols: &mut [Symbol]) {
    symbols.sort_unstable_by(|a, b| {
        let key = |symbol: &Symbol| (symbol.at, symbol.name.is_empty(), symbol.size == 0);
        (key(a), &*a.name).cmp(&(key(b), &*b.name))
    });
}

/// Outlying pieces: `name.cold` belongs to `name`. Where several functions have that name, it may
/// belong to any of them.
fn parts(symbols: &[Symbol]) -> Parts {
    const SUFFIX: &[u8] = b".cold";
    let whole = |symbol: &Symbol| {
        if !symbol.name.contains(&SUFFIX[0]) {
            return None;
        }
        let mut places = symbol.name.windows(SUFFIX.len());
        let at = places.position(|part| part == SUFFIX)?;
        Some((symbol.name[..at].to_vec(), symbol.at))
    };
    let (mut parts, mut of_name) = (BTreeMap::new(), BTreeMap::<_, Vec<u64>>::new());
    for (name, part) in symbols.iter().filter_map(whole) {
        parts.insert(part, Vec::new());
        of_name.entry(name).or_default().push(part);
    }
    for symbol in symbols.iter().filter(|_| !of_name.is_empty()) {
        for part in of_name.get(&*symbol.name).into_iter().flatten() {
            parts.entry(*part).or_default().push(symbol.at);
        }
    }
    parts
}

impl Contents {
    /// The function that begins at `at`.
    pub(super) fn symbol(&self, at: u64) -> Option<&Symbol> {
        let index = self
            .symbols
            .binary_search_by_key(&at, |symbol| symbol.at)
            .ok()?;
        self.symbols.get(index)
    }

    /// The function that `at` lies in.
    pub(super) fn symbol_around(&self, at: u64) -> Option<&Symbol> {
        let after = self.symbols.partition_point(|symbol| symbol.at <= at);
        let symbol = self.symbols.get(after.checked_sub(1)?)?;
        (at - symbol.at < symbol.size).then_some(symbol)
    }

    /// Where functions begin, sorted.
    fn starts(&self) -> Vec<FunctionStart> {
        let is_part =
            |symbol: &Symbol| symbol.name.is_empty() || self.parts.contains_key(&symbol.at);
        let starts = self.symbols.iter().map(|symbol| FunctionStart {
            at: symbol.at,
            is_part: is_part(symbol),
        });
        starts.collect()
    }

    /// The first function that begins after `at`.
    pub(super) fn symbol_after(&self, at: u64) -> Option<&Symbol> {
        let index = self.symbols.partition_point(|symbol| symbol.at <= at);
        self.symbols.get(index)
    }

    /// Whether this is the file that was mapped with these program headers and build id.
    pub(crate) fn is_of(&self, headers: &[[u64; 4]], build_id: Option<&[u8]>) -> bool {
        self.headers == headers && build_id.unwrap_or_default() == self.build_id
    }

    /// Changes the words of a table in memory to what the loader makes of them.
    pub(super) fn relocate(&self, table: &Table, base: u64, words: &mut [u8]) {
        let first = self.relocated.partition_point(|word| word.at < table.at);
        for word in &self.relocated[first..] {
            let place = usize::try_from(word.at - table.at).unwrap_or(usize::MAX);
            let bytes = place
                .checked_add(8)
                .and_then(|end| words.get_mut(place..end));
            let Some(bytes) = bytes else { break };
            bytes.copy_from_slice(&base.wrapping_add(word.sum).to_le_bytes());
        }
    }

    /// Whether the file has a table of patch sites.
    pub(crate) fn has_tables(&self) -> bool {
        !self.tables.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_for_another_processor_is_refused_by_its_name() {
        let own = std::env::current_exe().expect("a path");
        let mut bytes = std::fs::read(own).expect("a program");
        let mut of = |machine: u16| {
            bytes[18..20].copy_from_slice(&machine.to_le_bytes());
            parse(bytes.as_slice()).map(drop)
        };
        assert!(of(EM_X86_64).is_ok());
        let refused = of(EM_AARCH64).unwrap_err().to_string();
        assert!(
            refused.starts_with("built for aarch64, expected x86-64"),
            "{refused}"
        );
        let refused = of(243).unwrap_err().to_string();
        assert!(
            refused.starts_with("built for processor number 243"),
            "{refused}"
        );
    }
}
