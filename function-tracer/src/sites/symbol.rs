//! Functions of a file's symbol table.

use std::fs::File;

use object::read::elf::ElfFile64;
use object::{LittleEndian, ObjectSymbol, ReadCache, SymbolKind};

/// A program or shared object, read as far as it is asked.
pub(super) type Elf<'a> = ElfFile64<'a, LittleEndian, &'a ReadCache<File>>;

/// A function by address in the file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Symbol {
    pub(super) at: u64,
    pub(super) size: u64,
    pub(super) name: Vec<u8>,
}

pub(super) fn is_function<'a>(symbol: &impl ObjectSymbol<'a>) -> bool {
    symbol.kind() == SymbolKind::Text && symbol.is_definition() && symbol.address() != 0
}

pub(super) fn named<'a>(symbol: &impl ObjectSymbol<'a>) -> Symbol {
    Symbol {
        at: symbol.address(),
        size: symbol.size(),
        name: symbol.name_bytes().unwrap_or_default().to_vec(),
    }
}
