//! Names in symbol tables. A module may have hundreds of thousands, so they are pieces of one text,
//! not texts of their own.

use std::fmt;
use std::fs::File;
use std::ops::Deref;
use std::sync::Arc;

use super::asking_names::read;

/// A function's name in a symbol table, mangled; empty for a function without a symbol.
#[derive(Clone, Default)]
pub struct SymbolName {
    /// The text that it is a piece of; `None`: it is empty.
    text: Option<Arc<Vec<u8>>>,
    start: u32,
    length: u32,
}

impl SymbolName {
    /// A piece of a text. One that lies beyond 4 GiB, which 32 bits do not reach, is empty: its function
    /// then has no name, and is shown by its address.
    fn piece(text: &Arc<Vec<u8>>, start: usize, length: usize) -> Self {
        let (Ok(start), Ok(length)) = (start.try_into(), length.try_into()) else {
            return Self::default();
        };
        let text = Some(Arc::clone(text));
        Self {
            text,
            start,
            length,
        }
    }

    /// The same names as pieces of a text that holds nothing else.
    pub(super) fn packed<'n>(names: impl Iterator<Item = &'n Self> + Clone) -> Vec<Self> {
        let bytes = names.clone().map(|name| name.len()).sum();
        let (mut text, mut ends) = (Vec::with_capacity(bytes), Vec::new());
        ends.reserve_exact(names.size_hint().0);
        for name in names {
            text.extend_from_slice(name);
            ends.push(text.len());
        }
        let text = Arc::new(text);
        let mut start = 0;
        let piece = |end| {
            let from = std::mem::replace(&mut start, end);
            Self::piece(&text, from, end - from)
        };
        ends.into_iter().map(piece).collect()
    }
}

impl Deref for SymbolName {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        let start = self.start as usize;
        let text = self.text.as_ref();
        let found = text.and_then(|text| text.get(start..start + self.length as usize));
        found.unwrap_or_default()
    }
}

impl From<&[u8]> for SymbolName {
    fn from(name: &[u8]) -> Self {
        Self::piece(&Arc::new(name.to_vec()), 0, name.len())
    }
}

impl PartialEq for SymbolName {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for SymbolName {}

impl fmt::Debug for SymbolName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", String::from_utf8_lossy(self))
    }
}

/// The names of a symbol table: texts one after the other, each with a zero byte at its end.
#[derive(Debug, Default)]
pub(super) struct NameTable(Arc<Vec<u8>>);

impl NameTable {
    /// Reads the table at this place of a file; an empty one where it is not there.
    pub(super) fn read(file: &File, offset: u64, length: u64) -> Self {
        let end = offset.checked_add(length);
        let bytes = file.metadata().map_or(0, |data| data.len());
        // Checked before anything is allocated, because the length comes from the file.
        let is_there = end.is_some_and(|end| end <= bytes);
        let text = match is_there {
            true => read(file, offset, length),
            false => Vec::new(),
        };
        Self(Arc::new(text))
    }

    /// The name that begins at this place.
    pub(super) fn at(&self, start: u32) -> SymbolName {
        let start = start as usize;
        let rest = self.0.get(start..).unwrap_or_default();
        match rest.iter().position(|byte| *byte == 0) {
            Some(length) if length > 0 => SymbolName::piece(&self.0, start, length),
            _ => SymbolName::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_pieces() {
        let table = NameTable(Arc::new(b"\0main\0parse_line\0cut".to_vec()));
        let names = [1, 6, 12, 0, 17, 99].map(|start| table.at(start));
        let packed = SymbolName::packed(names.iter());
        assert_eq!(packed, names);
        let texts: Vec<_> = packed.iter().map(|name| &**name).collect();
        assert_eq!(texts, [&b"main"[..], b"parse_line", b"line", b"", b"", b""]);
        assert_eq!(SymbolName::from(&b"main"[..]), names[0]);
        assert_eq!(size_of::<SymbolName>(), 16);
    }

    #[test]
    fn a_table_that_is_not_there_has_no_names() {
        let file = File::open("/proc/self/exe").unwrap();
        for (offset, length) in [(u64::MAX, 2), (0, u64::MAX), (0, 1 << 60)] {
            assert_eq!(
                NameTable::read(&file, offset, length).at(0),
                SymbolName::default()
            );
        }
    }
}
