//! Where functions begin, and their names.

use std::collections::{BTreeMap, BTreeSet};

use object::elf::{STT_FUNC, STT_GNU_IFUNC};
use object::{Object, ObjectSymbol, SymbolFlags};

use crate::frames::Frames;
use crate::image::{ADDRESS_MAX, Elf, Image};

/// A place where a function may begin.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Start {
    /// The end after its last byte.
    pub(crate) end: u64,
    /// All names of its symbols, the plainest first; none: only the unwind table knows it.
    pub(crate) names: Vec<Vec<u8>>,
    /// Whether it is an IFUNC's resolver.
    pub(crate) is_resolver: bool,
}

/// All places where functions may begin, and everything else that has a name.
#[derive(Debug, Default)]
pub(crate) struct Starts {
    pub(crate) functions: BTreeMap<u64, Start>,
    /// Addresses in code that a symbol of any kind has.
    pub(crate) labels: BTreeSet<u64>,
}

impl Starts {
    /// Those of the file's symbol tables, of its separate debug file, and of the unwind table.
    pub(crate) fn of(
        elf: &Elf<'_>,
        debug: Option<&Elf<'_>>,
        image: &Image<'_>,
        frames: &Frames<'_>,
    ) -> Self {
        let mut starts = Self::default();
        for file in [Some(elf), debug].into_iter().flatten() {
            starts.take(file, image);
        }
        let is_stubs = |at: u64| image.code_around(at).is_some_and(|piece| piece.is_stubs);
        starts.functions.retain(|at, _| !is_stubs(*at));
        for frame in frames.all.iter().filter(|frame| !is_stubs(frame.start)) {
            let start = starts.functions.entry(frame.start).or_default();
            start.end = start.end.max(frame.end);
        }
        for start in starts.functions.values_mut() {
            start.names.sort_by(|a, b| plainest(a).cmp(&plainest(b)));
            start.names.dedup();
        }
        starts.end_at_next(image);
        starts
    }

    fn take(&mut self, elf: &Elf<'_>, image: &Image<'_>) {
        for symbol in elf.symbols().chain(elf.dynamic_symbols()) {
            let SymbolFlags::Elf { st_info, .. } = symbol.flags() else {
                continue;
            };
            let at = symbol.address();
            if symbol.is_undefined() || !image.is_code(at) {
                continue;
            }
            self.labels.insert(at);
            let kind = st_info & 15;
            if kind != STT_FUNC && kind != STT_GNU_IFUNC {
                continue;
            }
            let start = self.functions.entry(at).or_default();
            let end = at.saturating_add(symbol.size()).min(ADDRESS_MAX);
            start.end = start.end.max(end);
            start.is_resolver |= kind == STT_GNU_IFUNC;
            start.names.extend(name(symbol.name_bytes().ok()));
        }
    }

    /// Functions of unknown size end where the next one begins.
    fn end_at_next(&mut self, image: &Image<'_>) {
        let mut next = None;
        for (at, start) in self.functions.iter_mut().rev() {
            if start.end <= *at {
                let section = image.code_around(*at).map_or(*at, |piece| piece.end());
                start.end = next.map_or(section, |next: u64| next.min(section));
            }
            next = Some(*at);
        }
    }

    /// The first function or label after `at`; the largest number where there is none.
    pub(crate) fn after(&self, at: u64) -> u64 {
        let from = (std::ops::Bound::Excluded(at), std::ops::Bound::Unbounded);
        let function = self.functions.range(from).next().map(|(at, _)| *at);
        let label = self.labels.range(from).next().copied();
        let all = [function, label].into_iter().flatten();
        all.min().unwrap_or(u64::MAX)
    }
}

/// A symbol's name without its version, which debug files write behind it.
fn name(bytes: Option<&[u8]>) -> Option<Vec<u8>> {
    let name = bytes?.split(|byte| *byte == b'@').next()?;
    (!name.is_empty()).then(|| name.to_vec())
}

/// What names are sorted by: of `__libc_malloc` and `malloc` people mean the second.
fn plainest(name: &[u8]) -> (usize, usize, &[u8]) {
    let underscores = name.iter().take_while(|byte| **byte == b'_').count();
    // Mangled names begin with one or two.
    let is_mangled = name.starts_with(b"_Z") || name.starts_with(b"_R");
    let underscores = if is_mangled { 0 } else { underscores };
    (underscores, name.len(), name)
}
