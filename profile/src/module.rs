//! A file whose code a process has mapped: its table for unwinding, and its functions.

use std::fs::Metadata;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use framehop::{ExplicitModuleSectionInfo, Module as UnwindModule};
use object::elf::{FileHeader64, PF_X};
use object::read::elf::ElfFile;
use object::{
    Endianness, Object, ObjectSection, ObjectSegment, ObjectSymbol, ReadCache, SegmentFlags,
    SymbolKind,
};

use crate::elf::{self, Elf};

/// Bytes of a section.
pub(crate) type Bytes = Arc<[u8]>;

/// A file whose code is mapped.
#[derive(Debug)]
pub(crate) struct Module {
    /// Where its code is mapped.
    pub(crate) range: Range<u64>,
    /// What is added to an address of the file where it is mapped.
    pub(crate) bias: u64,
    /// Its file as the process calls it.
    pub(crate) path: String,
    /// Where it can be opened.
    file: PathBuf,
    /// Its functions, once one was asked for.
    functions: Option<Functions>,
    /// Where functions begin by its table for unwinding: names of those without a symbol.
    starts: Vec<u64>,
    /// It has places that a function tracer can patch.
    pub(crate) has_sites: bool,
}

/// Functions by address.
#[derive(Debug, Default)]
struct Functions {
    /// Address, size and symbol.
    symbols: Vec<(u64, u64, Box<[u8]>)>,
}

/// One mapping of code, as `maps` says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mapping {
    pub(crate) range: Range<u64>,
    pub(crate) offset: u64,
    pub(crate) inode: u64,
    pub(crate) path: String,
}

impl Mapping {
    /// Reads a line of `maps`; `None`: it is no code of a file.
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let mut words = line.splitn(6, ' ');
        let (from, to) = words.next()?.split_once('-')?;
        let hex = |word: &str| u64::from_str_radix(word, 16).ok();
        let range = hex(from)?..hex(to)?;
        let is_code = words.next()?.contains('x');
        let offset = hex(words.next()?)?;
        let inode = words.nth(1)?.parse().ok()?;
        let path = words.next()?.trim_start().to_owned();
        (is_code && (path.starts_with('/') || path == "[vdso]")).then_some(Self {
            range,
            offset,
            inode,
            path,
        })
    }

    /// Whether this is the file that was mapped, and not another one that has its name by now.
    pub(crate) fn is_of(&self, metadata: &Metadata) -> bool {
        std::os::unix::fs::MetadataExt::ino(metadata) == self.inode
    }
}

/// A module, and what an unwinder learns of it.
pub(crate) struct Loaded {
    pub(crate) module: Module,
    pub(crate) unwind: UnwindModule<Bytes>,
}

impl Module {
    /// Reads the tables of a mapped file; `None`: it is no ELF file of 64 bits, or has no such code.
    pub(crate) fn load(mapping: &Mapping, file: PathBuf) -> Option<Loaded> {
        let opened = elf::open(&file).ok()?;
        let is_the_mapped_one = opened
            .metadata()
            .is_ok_and(|metadata| mapping.is_of(&metadata));
        if !is_the_mapped_one {
            return None;
        }
        let cache = ReadCache::new(opened);
        let elf = Elf::parse(&cache).ok()?;
        let bias = bias(&elf, mapping)?;
        Self::of_elf(&elf, mapping, bias, file)
    }

    /// The same of a file in memory: what the kernel maps into every process.
    pub(crate) fn of_kernel(mapping: &Mapping, bytes: &[u8]) -> Option<Loaded> {
        let elf = ElfFile::<FileHeader64<Endianness>, &[u8]>::parse(bytes).ok()?;
        Self::of_elf(&elf, mapping, mapping.range.start, PathBuf::new()).map(|mut loaded| {
            loaded.module.functions = Some(Functions::of(&elf));
            loaded
        })
    }

    fn of_elf<'data, R: object::ReadRef<'data>>(
        elf: &ElfFile<'data, FileHeader64<Endianness>, R>,
        mapping: &Mapping,
        bias: u64,
        file: PathBuf,
    ) -> Option<Loaded> {
        let section = |name: &str| {
            let section = elf.section_by_name(name)?;
            let range = section.address()..section.address().checked_add(section.size())?;
            Some((range, section))
        };
        let bytes = |name: &str| {
            let (range, section) = section(name)?;
            let data = section.data().ok()?;
            (!data.is_empty()).then(|| (range, Bytes::from(data)))
        };
        let mut info = ExplicitModuleSectionInfo::<Bytes>::default();
        let (text, eh_frame, index) =
            (section(".text"), bytes(".eh_frame"), bytes(".eh_frame_hdr"));
        info.text_svma = text.map(|(range, _)| range);
        info.got_svma = section(".got").map(|(range, _)| range);
        let starts = index
            .as_ref()
            .map_or_else(Vec::new, |(range, data)| starts(range.start, data));
        (info.eh_frame_svma, info.eh_frame) = eh_frame.unzip();
        (info.eh_frame_hdr_svma, info.eh_frame_hdr) = index.unzip();
        let unwind = UnwindModule::new(mapping.path.clone(), mapping.range.clone(), bias, info);
        let has_sites = ["__patchable_function_entries", "xray_instr_map"]
            .iter()
            .any(|name| elf.section_by_name(name).is_some());
        let module = Self {
            range: mapping.range.clone(),
            bias,
            path: mapping.path.clone(),
            file,
            functions: None,
            starts,
            has_sites,
        };
        Some(Loaded { module, unwind })
    }

    /// The function at an address of the process: where it begins in the file, and its symbol, if it has one.
    pub(crate) fn function_at(&mut self, address: u64) -> (u64, Option<&[u8]>) {
        let in_file = address.wrapping_sub(self.bias);
        let file = &self.file;
        let functions = self
            .functions
            .get_or_insert_with(|| Functions::read(file).unwrap_or_default());
        match functions.at(in_file) {
            Some((start, symbol)) => (start, Some(symbol)),
            None => {
                let place = self.starts.partition_point(|start| *start <= in_file);
                let start = place.checked_sub(1).map_or(in_file, |at| self.starts[at]);
                (start, None)
            }
        }
    }

    /// The name of its file without directories.
    pub(crate) fn file_name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }
}

impl Functions {
    /// Functions of a file, or of the file with its symbols that a distribution keeps apart.
    fn read(path: &Path) -> Option<Self> {
        let cache = ReadCache::new(elf::open(path).ok()?);
        let elf = Elf::parse(&cache).ok()?;
        if elf.symbol_table().is_none()
            && let Some(found) = elf::open_debug_file(path, &elf)
        {
            let cache = ReadCache::new(found);
            if let Ok(debug) = Elf::parse(&cache) {
                return Some(Self::of(&debug));
            }
        }
        Some(Self::of(&elf))
    }

    fn of<'data, R: object::ReadRef<'data>>(
        elf: &ElfFile<'data, FileHeader64<Endianness>, R>,
    ) -> Self {
        let mut symbols: Vec<_> = elf
            .symbols()
            .chain(elf.dynamic_symbols())
            .filter(|symbol| symbol.is_definition() && symbol.kind() == SymbolKind::Text)
            .filter_map(|symbol| {
                let name = symbol.name_bytes().ok()?;
                // A symbol table may say the version of a name: `read@@GLIBC_2.2.5`.
                let name = name.split(|byte| *byte == b'@').next()?;
                let is_named = !name.is_empty();
                is_named.then(|| (symbol.address(), symbol.size(), Box::from(name)))
            })
            .collect();
        // Of several names of a place the one that has a size, and of those the one that people know: `read`, not
        // `__GI___libc_read`.
        let underscores = |name: &[u8]| name.iter().take_while(|byte| **byte == b'_').count();
        symbols.sort_by_cached_key(|(address, size, name): &(u64, u64, Box<[u8]>)| {
            let key = (underscores(name), name.len(), name.clone());
            (*address, std::cmp::Reverse(*size), key)
        });
        symbols.dedup_by_key(|symbol| symbol.0);
        Self { symbols }
    }

    fn at(&self, address: u64) -> Option<(u64, &[u8])> {
        let place = self.symbols.partition_point(|symbol| symbol.0 <= address);
        let (start, size, name) = &self.symbols[place.checked_sub(1)?];
        let next = self.symbols.get(place).map_or(u64::MAX, |next| next.0);
        // Hand-written code often has no size: it reaches to the next symbol.
        let end = match size {
            0 => next,
            size => start.saturating_add(*size),
        };
        (address < end).then_some((*start, name))
    }
}

/// What the addresses of a file differ by from those of its mapping. A page of the file may hold the end of one segment
/// and the beginning of the next: it is mapped once for each, and code is in the one that may be executed.
fn bias(elf: &Elf<'_>, mapping: &Mapping) -> Option<u64> {
    let pages = |address: u64| address & !(rustix::param::page_size() as u64 - 1);
    let is_code = |flags| matches!(flags, SegmentFlags::Elf { p_flags } if p_flags & PF_X != 0);
    let segments = elf.segments().filter(|segment| is_code(segment.flags()));
    let mut segments = segments;
    segments.find_map(|segment| {
        let (offset, size) = segment.file_range();
        let is_mapped_there =
            pages(offset) <= mapping.offset && mapping.offset < offset.saturating_add(size);
        let address = segment
            .address()
            .wrapping_add(mapping.offset)
            .wrapping_sub(offset);
        is_mapped_there.then(|| mapping.range.start.wrapping_sub(address))
    })
}

/// Where functions begin, by the sorted table in `.eh_frame_hdr`. Only the form that linkers write is read.
fn starts(section: u64, data: &[u8]) -> Vec<u64> {
    // Version 1; the pointer to .eh_frame, whatever it is, in 4 bytes; a count of 4 bytes; pairs of 4 bytes each,
    // relative to this section.
    let [1, pointer, 0x03, 0x3b, ..] = data else {
        return Vec::new();
    };
    if pointer & 0x0f != 0x0b && pointer & 0x0f != 0x03 {
        return Vec::new();
    }
    let pairs = data.get(12..).unwrap_or_default();
    let start = |pair: &[u8]| {
        let offset = <[u8; 4]>::try_from(pair.get(..4)?).ok()?;
        Some(section.wrapping_add_signed(i32::from_le_bytes(offset).into()))
    };
    pairs.chunks_exact(8).filter_map(start).collect()
}

#[cfg(test)]
mod tests {
    use super::Mapping;

    #[test]
    fn code_of_files_is_found_in_maps() {
        let line = "7f00-7f10 r-xp 00001000 fe:01 4711                       /usr/lib/a file.so";
        let found = Mapping::parse(line).unwrap();
        assert_eq!(found.range, 0x7f00..0x7f10);
        assert_eq!((found.offset, found.inode), (0x1000, 4711));
        assert_eq!(found.path, "/usr/lib/a file.so");
        for line in [
            "7f00-7f10 r--p 00001000 fe:01 4711 /usr/lib/a.so",
            "7f00-7f10 r-xp 00000000 00:00 0 ",
            "7f00-7f10 r-xp 00000000 00:00 0 [vsyscall]",
            "",
        ] {
            assert_eq!(Mapping::parse(line), None, "{line:?}");
        }
    }
}
