//! The event types of the stepped program, as its schema describes them.

use ringmark_format::attribute::{Attributes, tag};
use ringmark_format::schema::{EntryHeader, entry_kind};
use zerocopy::FromBytes;

/// Contexts that events come from: main, handler, handler in a handler, second thread.
pub(crate) const CONTEXTS: usize = 4;

/// How an event of a type says which one it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// It has no payload.
    Empty,
    /// Its id stands in payload word `at`; the words from there on follow from it.
    Numbered { at: usize, length: usize },
}

/// By type id.
pub(crate) type Types = Vec<Option<Kind>>;

/// The kind of a type; `None`: not described, or not the program's.
pub(crate) fn find(types: &Types, id: u32) -> Option<Kind> {
    types.get(id as usize).copied().flatten()
}

/// Word `index` behind the id of an event, the id itself included.
pub(crate) fn word(id: u64, index: usize) -> u64 {
    id ^ (index as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

fn kind_of(name: &[u8]) -> Option<Kind> {
    let numbered = |at, length| Some(Kind::Numbered { at, length });
    match name {
        b"step.empty" => Some(Kind::Empty),
        b"step.one" | b"step.late" => numbered(0, 1),
        b"step.four" => numbered(0, 4),
        b"step.large" => numbered(0, 375),
        b"step.span" => numbered(1, 2),
        _ if name.starts_with(b"step.dynamic") => numbered(0, 1),
        _ => None,
    }
}

/// Context and number of an event; `None`: this is no id.
pub(crate) fn split(id: u64) -> Option<(usize, u64)> {
    let (context, number) = (id >> 48 & 0xFF, id & 0xFFFF_FFFF_FFFF);
    let is_id = id >> 56 == 0xA5 && context < CONTEXTS as u64;
    is_id.then_some((context as usize, number))
}

/// Types of a schema stream.
pub(crate) fn parse(mut schema: &[u8]) -> Result<Types, String> {
    let mut types = Types::new();
    while !schema.is_empty() {
        let (header, _) = EntryHeader::read_from_prefix(schema).map_err(|_| "a schema entry")?;
        let bytes = header.bytes as usize;
        let (entry, rest) = schema
            .split_at_checked(bytes.max(EntryHeader::BYTES))
            .ok_or("a whole schema entry")?;
        schema = rest;
        let start = (EntryHeader::BYTES + usize::from(header.fixed_bytes)).next_multiple_of(8);
        let attributes = entry.get(start..).ok_or("a schema entry's attributes")?;
        if header.kind == entry_kind::EVENT {
            let name = Attributes::new(attributes).find(tag::NAME);
            let id = header.id as usize;
            types.resize(types.len().max(id + 1), None);
            types[id] = kind_of(name.ok_or("an event type's name")?);
        }
    }
    Ok(types)
}
