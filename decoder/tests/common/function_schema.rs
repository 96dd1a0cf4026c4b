//! Schema entries of modules, functions, their types and function tracers.

use ringmark_format::attribute::{self, tag};
use ringmark_format::function::{
    FunctionEntry, FunctionType, FunctionTypesEntry, ModuleEntry, TracerEntry, TracerKind,
};
use ringmark_format::schema::{EntryHeader, entry_kind};
use zerocopy::IntoBytes;

/// An entry of the schema stream.
pub fn entry(kind: u16, id: u32, fixed: &[u8], attributes: &[(u16, &[u8])]) -> Vec<u8> {
    let mut body = fixed.to_vec();
    for (tag, value) in attributes {
        attribute::push(&mut body, *tag, value);
    }
    let header = EntryHeader {
        bytes: (EntryHeader::BYTES + body.len()) as u32,
        kind,
        fixed_bytes: fixed.len() as u16,
        id,
        reserved: 0,
    };
    [header.as_bytes(), &body].concat()
}

/// Module 0, in which all functions lie.
pub fn module(path: &str) -> Vec<u8> {
    let fixed = ModuleEntry {
        base: 0x1000,
        bytes: 0x1000,
    };
    let path = (tag::NAME, path.as_bytes());
    entry(entry_kind::MODULE, 0, fixed.as_bytes(), &[path])
}

/// A function of module 0, by its name in the symbol table.
pub fn function(id: u32, symbol: &str) -> Vec<u8> {
    let fixed = FunctionEntry {
        address: 0x1000 + 0x100 * u64::from(id),
        bytes: 0x40,
        module: 0,
    };
    let name = (tag::NAME, symbol.as_bytes());
    entry(entry_kind::FUNCTION, id, fixed.as_bytes(), &[name])
}

/// Types of the first `count` functions, from number `first` on, for these tracers.
pub fn function_types(first: u32, count: u32, tracers: u64, flags: u32) -> Vec<u8> {
    let fixed = FunctionTypesEntry {
        tracers,
        first_function: 0,
        count,
        flags,
        reserved: 0,
    };
    entry(entry_kind::FUNCTION_TYPES, first, fixed.as_bytes(), &[])
}

/// Tracer 0, `calls`, of kind `graph`.
pub fn tracer() -> Vec<u8> {
    let fixed = TracerEntry {
        kind: TracerKind::Graph as u8,
        flags: 1,
        reserved: 0,
        reserved_word: 0,
    };
    let name = (tag::NAME, b"calls".as_slice());
    entry(entry_kind::TRACER, 0, fixed.as_bytes(), &[name])
}

/// The type of an entry, or of an exit, by the number of its function's type.
pub fn function_type(number: u32, exit: bool) -> u32 {
    FunctionType {
        number,
        exit,
        loose: false,
        has_slot: false,
    }
    .pack()
}
