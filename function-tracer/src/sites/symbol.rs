//! Functions of a file's symbol table, and their names for people.

use std::borrow::Cow;
use std::fs::File;

use object::read::elf::{ElfFile64, SectionHeader, Sym, SymbolTable};
use object::{LittleEndian, ObjectSymbol, ReadCache, SymbolKind};
use ringmark_format::demangle;

use super::names::{NameTable, SymbolName};

/// A program or shared object, of which only the parts that are needed are read.
pub(super) type Elf<'a> = ElfFile64<'a, LittleEndian, &'a ReadCache<File>>;

type ElfSymbol<'a> = object::read::elf::ElfSymbol64<'a, 'a, LittleEndian, &'a ReadCache<File>>;
type Table<'a> = SymbolTable<'a, object::elf::FileHeader64<LittleEndian>, &'a ReadCache<File>>;

/// A function in a file's symbol table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Symbol {
    /// Address in the file.
    pub(super) at: u64,
    /// Bytes; 0: unknown.
    pub(super) size: u64,
    /// As in the symbol table; empty for a function that only the unwind table knows.
    pub(super) name: SymbolName,
}

/// Whether a symbol is that of a function defined in its file.
pub(super) fn is_function<'a>(symbol: &impl ObjectSymbol<'a>) -> bool {
    symbol.kind() == SymbolKind::Text && symbol.is_definition() && symbol.address() != 0
}

/// The functions of both symbol tables of a file. Their names are read at once: a read for each would
/// take longer than all else.
pub(super) fn functions(elf: &Elf<'_>, file: &File) -> Vec<Symbol> {
    let (all, exported) = (elf.elf_symbol_table(), elf.elf_dynamic_symbol_table());
    let mut functions = Vec::with_capacity(all.len() + exported.len());
    let names = names(elf, all, file);
    add(&mut functions, object::Object::symbols(elf), &names);
    let names = self::names(elf, exported, file);
    add(&mut functions, object::Object::dynamic_symbols(elf), &names);
    functions
}

fn names(elf: &Elf<'_>, table: &Table<'_>, file: &File) -> NameTable {
    let section = elf.elf_section_table().section(table.string_section()).ok();
    let range = section.and_then(|section| section.file_range(LittleEndian));
    range.map_or_else(NameTable::default, |(offset, length)| {
        NameTable::read(file, offset, length)
    })
}

fn add<'a>(
    functions: &mut Vec<Symbol>,
    symbols: impl Iterator<Item = ElfSymbol<'a>>,
    names: &NameTable,
) {
    functions.extend(symbols.filter(is_function).map(|symbol| {
        ringmark::__private::helper::working();
        Symbol {
            at: symbol.address(),
            size: symbol.size(),
            name: names.at(symbol.elf_symbol().st_name(LittleEndian)),
        }
    }));
}

/// The name of a Rust or C++ symbol as its language writes it, without Rust's hash. Any other
/// symbol stays as it is.
#[must_use]
pub fn demangled(symbol: &[u8]) -> Cow<'_, str> {
    text(demangle::demangled(symbol))
}

/// The name of a function for people. A function without a symbol is named by its place in its
/// module's file, which is the same in every run: `module+0x11d0`.
#[must_use]
pub fn readable<'s>(symbol: &'s [u8], module: &[u8], offset: u64) -> Cow<'s, str> {
    text(demangle::readable(symbol, module, offset))
}

fn text(name: Cow<'_, [u8]>) -> Cow<'_, str> {
    match name {
        Cow::Borrowed(name) => String::from_utf8_lossy(name),
        Cow::Owned(name) => Cow::Owned(String::from_utf8_lossy(&name).into_owned()),
    }
}
