//! A module of the target, read from the target's memory: no file is opened, so containers and
//! replaced files make no difference.

use std::collections::HashMap;
use std::ops::Range;

use crate::maps::Line;
use crate::memory::Memory;
use crate::trampoline::MAGIC;

const PAGE: u64 = 4096;
/// The largest piece of a module that is believed.
const MUCH: u64 = 256 << 20;
const LOAD: u32 = 1;
const DYNAMIC: u32 = 2;
const INTERPRETER: u32 = 3;
const EH_FRAME: u32 = 0x6474_e550;

/// Whose code it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    /// The C library.
    Libc,
    /// The loader, allocators and other libraries whose locks `dlopen` may need.
    System,
    /// The program's own.
    Program,
}

/// A loaded segment.
#[derive(Debug, Clone)]
pub(crate) struct Segment {
    pub(crate) range: Range<u64>,
    pub(crate) is_executable: bool,
}

/// A named function.
#[derive(Debug, Clone)]
struct Symbol {
    at: u64,
    size: u64,
    name: String,
}

/// A module.
#[derive(Debug)]
pub(crate) struct Module {
    pub(crate) path: String,
    pub(crate) owner: Owner,
    pub(crate) segments: Vec<Segment>,
    pub(crate) has_interpreter: bool,
    /// `.eh_frame_hdr` and `.eh_frame` with their addresses.
    pub(crate) tables: Option<[(u64, Vec<u8>); 2]>,
    /// Exported functions by address.
    symbols: Vec<Symbol>,
}

/// All modules of a process.
pub(crate) fn all(memory: &Memory, lines: &[Line]) -> Vec<Module> {
    let is_head = |line: &&Line| line.offset == 0 && !line.path.is_empty();
    let heads = lines.iter().filter(is_head);
    let modules = heads.filter_map(|head| read(memory, lines, head));
    modules.collect()
}

fn read(memory: &Memory, lines: &[Line], head: &Line) -> Option<Module> {
    let start = head.range.start;
    let header = memory.bytes(start, 64).ok()?;
    if header.get(..6)? != b"\x7fELF\x02\x01" {
        return None;
    }
    let at = number(&header, 32, 8)?;
    let count = number(&header, 56, 2)?;
    let table = memory
        .bytes(start + at, usize::try_from(count).ok()? * 56)
        .ok()?;
    let headers: Vec<_> = table.chunks_exact(56).filter_map(Header::of).collect();
    let first = headers.iter().find(|header| header.kind == LOAD)?;
    let base = start.wrapping_sub(first.address & !(PAGE - 1));
    let loads = headers.iter().filter(|header| header.kind == LOAD);
    let segments: Vec<_> = loads.map(|header| header.segment(base)).collect();
    let of_kind = |kind| headers.iter().find(move |header| header.kind == kind);
    let tables = of_kind(EH_FRAME).and_then(|header| {
        let room = lines
            .iter()
            .find(|line| line.range.contains(&(base + header.address)))?;
        unwind_tables(memory, base + header.address, header.size, room.range.end)
    });
    let symbols = of_kind(DYNAMIC)
        .and_then(|header| symbols(memory, base, base + header.address, header.size));
    let symbols = symbols.unwrap_or_default();
    Some(Module {
        owner: owner(&head.path, &symbols, of_kind(INTERPRETER).is_some()),
        path: head.path.clone(),
        segments,
        has_interpreter: of_kind(INTERPRETER).is_some(),
        tables,
        symbols,
    })
}

struct Header {
    kind: u32,
    flags: u32,
    address: u64,
    size: u64,
}

impl Header {
    fn of(bytes: &[u8]) -> Option<Self> {
        Some(Self {
            kind: number(bytes, 0, 4)? as u32,
            flags: number(bytes, 4, 4)? as u32,
            address: number(bytes, 16, 8)?,
            size: number(bytes, 40, 8)?,
        })
    }

    fn segment(&self, base: u64) -> Segment {
        let start = base.wrapping_add(self.address);
        Segment {
            range: start..start.saturating_add(self.size),
            is_executable: self.flags & 1 != 0,
        }
    }
}

fn number(bytes: &[u8], at: usize, length: usize) -> Option<u64> {
    let mut word = [0; 8];
    word.get_mut(..length)?
        .copy_from_slice(bytes.get(at..at.checked_add(length)?)?);
    Some(u64::from_le_bytes(word))
}

/// `.eh_frame` has no length of its own: it is taken to the end of its mapping.
fn unwind_tables(memory: &Memory, at: u64, size: u64, end: u64) -> Option<[(u64, Vec<u8>); 2]> {
    if size > MUCH {
        return None;
    }
    let header = memory.bytes(at, size as usize).ok()?;
    // Version 1, and the pointer to `.eh_frame` as four signed bytes from where they stand.
    if header.get(..2)? != [1, 0x1b] {
        return None;
    }
    let distance = number(&header, 4, 4)? as u32;
    let frames = (at + 4).wrapping_add_signed(distance.cast_signed().into());
    let length = end.checked_sub(frames).filter(|length| *length <= MUCH)?;
    Some([
        (at, header),
        (frames, memory.bytes(frames, length as usize).ok()?),
    ])
}

/// The exported functions.
fn symbols(memory: &Memory, base: u64, at: u64, size: u64) -> Option<Vec<Symbol>> {
    let dynamic = memory
        .bytes(at, usize::try_from(size.min(1 << 16)).ok()?)
        .ok()?;
    let mut tags = HashMap::new();
    for entry in dynamic.chunks_exact(16) {
        tags.entry(number(entry, 0, 8)?)
            .or_insert(number(entry, 8, 8)?);
    }
    // The loader turns offsets into addresses, but not everywhere.
    let place = |tag: u64| {
        let found = *tags.get(&tag)?;
        Some(if found < base { base + found } else { found })
    };
    let (strings, table) = (place(5)?, place(6)?);
    let count = symbol_count(memory, place(0x6fff_fef5)?)?;
    let names = memory
        .bytes(strings, (*tags.get(&10)?).min(MUCH) as usize)
        .ok()?;
    let table = memory.bytes(table, count.checked_mul(24)?).ok()?;
    let functions = table.chunks_exact(24).filter_map(|entry| {
        let (name, kind) = (number(entry, 0, 4)? as usize, entry.get(4)? & 15);
        let (section, value) = (number(entry, 6, 2)?, number(entry, 8, 8)?);
        let name = names.get(name..)?.split(|byte| *byte == 0).next()?;
        (kind == 2 && section != 0 && value != 0).then(|| Symbol {
            at: base.wrapping_add(value),
            size: number(entry, 16, 8).unwrap_or(0),
            name: String::from_utf8_lossy(name).into_owned(),
        })
    });
    let mut functions: Vec<_> = functions.collect();
    functions.sort_by_key(|symbol| symbol.at);
    Some(functions)
}

/// How many symbols a GNU hash table knows.
fn symbol_count(memory: &Memory, at: u64) -> Option<usize> {
    let header = memory.bytes(at, 16).ok()?;
    let (buckets, first) = (number(&header, 0, 4)?, number(&header, 4, 4)?);
    let table = at + 16 + number(&header, 8, 4)? * 8;
    let heads = memory
        .bytes(table, (buckets.min(MUCH / 4) * 4) as usize)
        .ok()?;
    let heads = heads.chunks_exact(4).filter_map(|word| number(word, 0, 4));
    let mut last = heads.max()?;
    if last < first {
        return usize::try_from(first).ok();
    }
    let chains = table + buckets * 4;
    while memory.bytes(chains + (last - first) * 4, 4).ok()?.first()? & 1 == 0 {
        last += 1;
    }
    usize::try_from(last + 1)
        .ok()
        .filter(|count| *count < 1 << 24)
}

fn owner(path: &str, symbols: &[Symbol], has_interpreter: bool) -> Owner {
    const SYSTEM: [&str; 13] = [
        "[vdso]",
        "ld-linux",
        "ld-2.",
        "ld.so",
        "libdl.",
        "libdl-",
        "librt.",
        "librt-",
        "libm.",
        "libm-",
        "libgcc_s",
        "libresolv",
        "libnss_",
    ];
    let name = path.rsplit('/').next().unwrap_or_default();
    let name = name.strip_prefix("memfd:").unwrap_or(name);
    let is = |prefix: &&str| name.starts_with(*prefix);
    if ["libc.so", "libc-2.", "libpthread"].iter().any(is) {
        return Owner::Libc;
    }
    let is_allocator = symbols.iter().any(|symbol| symbol.name == "malloc");
    // `libc.so` itself and other programs have an interpreter, too; an executable is the
    // program's own even if it brings an allocator, which the plan looks at.
    let is_library = !has_interpreter;
    if SYSTEM.iter().any(is) || name.starts_with("libringmark") || (is_allocator && is_library) {
        return Owner::System;
    }
    Owner::Program
}

impl Module {
    pub(crate) fn holds(&self, at: u64) -> bool {
        let mut code = self.segments.iter().filter(|segment| segment.is_executable);
        code.any(|segment| segment.range.contains(&at))
    }

    /// Whether it is there for as long as the process is.
    pub(crate) fn stays(&self) -> bool {
        let is_loader = self.path.contains("/ld-linux") || self.path.contains("/ld-2.");
        self.has_interpreter || self.owner == Owner::Libc || is_loader
    }

    /// Address of an exported function.
    pub(crate) fn function(&self, name: &str) -> Option<u64> {
        let found = self.symbols.iter().find(|symbol| symbol.name == name)?;
        Some(found.at)
    }

    /// Names of the exported functions that `at` is in.
    pub(crate) fn names(&self, at: u64) -> impl Iterator<Item = &str> {
        let end = self.symbols.partition_point(|symbol| symbol.at <= at);
        let before = self.symbols[..end].iter().rev().take(32);
        let around = before.filter(move |symbol| at - symbol.at < symbol.size);
        around.map(|symbol| symbol.name.as_str())
    }

    /// A place of `length` bytes after the end of the module's code, in the rest of its last page,
    /// that neither the target nor an earlier run has used.
    pub(crate) fn room(&self, memory: &Memory, lines: &[Line], length: usize) -> Option<u64> {
        let code = self.segments.iter().filter(|segment| segment.is_executable);
        let mut ends = code.map(|segment| segment.range.end);
        ends.find_map(|end| {
            let from = end.next_multiple_of(16);
            let page_end = end.next_multiple_of(PAGE);
            let line = lines.iter().find(|line| line.range.contains(&(end - 1)))?;
            if !line.is_executable || !line.is_private || line.range.end < page_end {
                return None;
            }
            let bytes = memory
                .bytes(from, page_end.checked_sub(from)? as usize)
                .ok()?;
            let at = unused(&bytes)?;
            (bytes.len() - at >= length).then_some(from + at as u64)
        })
    }
}

/// Offset of the first byte after what earlier runs left.
fn unused(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    while bytes.get(at..at + 8) == Some(&MAGIC[..]) {
        let length = number(bytes, at + 8, 8)?;
        at = at.checked_add(usize::try_from(length).ok()?.max(16))?;
    }
    Some(at)
}
