//! Functions of a file's symbol table, and their names for people.

use std::borrow::Cow;
use std::fs::File;

use object::read::elf::ElfFile64;
use object::{LittleEndian, ObjectSymbol, ReadCache, SymbolKind};
use ringmark_format::demangle;

/// A program or shared object, of which only the parts that are needed are read.
pub(super) type Elf<'a> = ElfFile64<'a, LittleEndian, &'a ReadCache<File>>;

/// A function in a file's symbol table.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Symbol {
    /// Address in the file.
    pub(super) at: u64,
    /// Bytes; 0: unknown.
    pub(super) size: u64,
    /// As in the symbol table; empty for a function that only the unwind table knows.
    pub(super) name: Vec<u8>,
}

/// Whether a symbol is that of a function defined in its file.
pub(super) fn is_function<'a>(symbol: &impl ObjectSymbol<'a>) -> bool {
    symbol.kind() == SymbolKind::Text && symbol.is_definition() && symbol.address() != 0
}

/// The function of an entry of the symbol table.
pub(super) fn named<'a>(symbol: &impl ObjectSymbol<'a>) -> Symbol {
    Symbol {
        at: symbol.address(),
        size: symbol.size(),
        name: symbol.name_bytes().unwrap_or_default().to_vec(),
    }
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
