//! Patch sites in the place of instructions that are moved, for functions whose compiler left none. The tool
//! finds them in the module's file; here each is compared with memory. The instructions themselves are read
//! from memory, so nothing that a request says becomes code.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;

use super::loader::{Held, Loaded, Segment};
use super::module::{Function, Module, ModuleId, Reason, Site, SiteId, SiteKind};
use super::names::SymbolName;
use super::scan::memory_build_id;
use crate::arch::{self, Form, MovedCode, UnfitCode};

/// Bytes of code that are looked at: four and the longest instruction.
const CODE_BYTES: usize = 19;
/// Bytes of a long jump.
const JUMP_BYTES: usize = 5;

/// The function by which the loader tells of modules, which has a patch site of the loader watch.
const LOADERS_SIGN: &[u8] = b"_dl_debug_state";

/// A function of a module's file, and where its site is to be. Addresses are those in the file.
#[derive(Debug, Clone)]
pub(crate) struct MovedEntry {
    pub(crate) function: u64,
    pub(crate) size: u32,
    pub(crate) site: u64,
    pub(crate) jump: EntryJump,
    /// Whether its return address must stay.
    pub(crate) keeps_return_address: bool,
    /// What the file has at the site.
    pub(crate) code: Vec<u8>,
    pub(crate) name: Vec<u8>,
}

/// How a jump is put at a site.
#[derive(Debug, Clone)]
pub(crate) enum EntryJump {
    /// Over one instruction.
    OneStore,
    /// Over one instruction, to a longer jump in padding: where that is, and what the file has there.
    Hop(u64, Vec<u8>),
    /// Over several instructions, or instructions and padding.
    Several,
}

/// Such functions of one module.
#[derive(Debug)]
pub(crate) struct MovedTable {
    /// The sum of this and an address in the file is the address in memory.
    pub(crate) base: u64,
    pub(crate) build_id: Vec<u8>,
    pub(crate) entries: Vec<MovedEntry>,
}

/// A function that stays untraced.
#[derive(Debug)]
pub(crate) struct RefusedEntry {
    pub(crate) name: Vec<u8>,
    pub(crate) reason: Reason,
}

/// Where a module lies, and what is in it already.
pub(crate) struct MovedPlace<'a> {
    pub(crate) held: &'a Held<'a>,
    pub(crate) loaded: &'a Loaded,
    pub(crate) path: PathBuf,
    pub(crate) is_program: bool,
    /// Modules that share its file.
    pub(crate) others: Vec<&'a Module>,
    /// Whether a compiler left patch sites anywhere in the process.
    pub(crate) has_sites: bool,
    /// Functions that must not be traced, by address in memory.
    pub(crate) forbidden: &'a [u64],
}

impl MovedPlace<'_> {
    /// Whether the table is about the file that was loaded here.
    pub(crate) fn is_of(&self, table: &MovedTable) -> bool {
        let (segments, notes) = (&self.loaded.segments, &self.loaded.notes);
        let build_id = memory_build_id(self.held, segments, notes);
        build_id.unwrap_or_default() == table.build_id
    }

    /// A module with those sites of a table that can be used, numbered from `next` on, and the others. Sites
    /// that are there already are passed over.
    pub(crate) fn module(
        self,
        mut table: MovedTable,
        id: ModuleId,
        next: u32,
    ) -> (Module, Vec<RefusedEntry>) {
        table.entries.sort_by_key(|entry| entry.function);
        table.entries.dedup_by_key(|entry| entry.function);
        let mut module = Module {
            id,
            path: self.path.clone(),
            base: table.base,
            build_id: table.build_id,
            functions: Vec::new(),
            sites: Vec::new(),
            refused: Vec::new(),
            moved: Vec::new(),
            is_program: self.is_program,
            is_beside_sites: self.has_sites,
            segments: self.loaded.segments.clone(),
        };
        let (mut refused, mut names) = (Vec::new(), Vec::new());
        let mut taken = Taken::default();
        for site in self.others.iter().flat_map(|other| &other.sites) {
            taken.add(bytes_of(site.address, &site.form));
        }
        for entry in table.entries {
            match self.site(&entry, &module, &taken) {
                Ok(None) => {}
                Ok(Some((form, code))) => {
                    let index = u32::try_from(module.sites.len()).unwrap_or(u32::MAX);
                    let address = module.base.wrapping_add(entry.site);
                    taken.add(bytes_of(address, &form));
                    module.sites.push(Site {
                        id: SiteId(next.saturating_add(index)),
                        address,
                        kind: SiteKind::Entry,
                        function: index,
                        form,
                    });
                    module.moved.push(code);
                    module.functions.push(Function {
                        address: module.base.wrapping_add(entry.function),
                        size: entry.size,
                        symbol: SymbolName::default(),
                        has_exits: false,
                        hands_on: entry.keeps_return_address,
                    });
                    names.push(SymbolName::from(entry.name.as_slice()));
                }
                Err(reason) => refused.push(RefusedEntry {
                    name: entry.name,
                    reason,
                }),
            }
        }
        let packed = SymbolName::packed(names.iter());
        let functions = module.functions.iter_mut();
        functions
            .zip(packed)
            .for_each(|(function, name)| function.symbol = name);
        (module, refused)
    }

    /// The form of a site and the instructions there; `None`: it is there already.
    fn site(
        &self,
        entry: &MovedEntry,
        new: &Module,
        taken: &Taken,
    ) -> Result<Option<(Form, MovedCode)>, Reason> {
        let at = new.base.wrapping_add(entry.site);
        let is_known = |module: &&&Module| {
            module.site_at(at).is_some() || module.functions.iter().any(|f| f.address == at)
        };
        if self.others.iter().find(is_known).is_some() {
            return Ok(None);
        }
        let function = new.base.wrapping_add(entry.function);
        if self.forbidden.contains(&function) || entry.name == LOADERS_SIGN {
            return Err(Reason::OwnCall);
        }
        let segment = self.code(at)?;
        let length = (segment.end - at).min(CODE_BYTES as u64) as usize;
        let code = self.read(at, length)?;
        if !code.starts_with(&entry.code) {
            return Err(Reason::OtherCode);
        }
        let (form, moved) = match &entry.jump {
            EntryJump::OneStore => self.over_one(&code, at)?,
            EntryJump::Hop(hop, padding) => {
                let hop = new.base.wrapping_add(*hop);
                self.with_hop(&code, at, (hop, padding))?
            }
            EntryJump::Several => {
                let moved = MovedCode::several(&code)?;
                (arch::read_several(&code, moved.length())?, moved)
            }
        };
        match bytes_of(at, &form).any(|bytes| taken.overlaps(&bytes)) {
            true => Err(Reason::OtherCode),
            false => Ok(Some((form, moved))),
        }
    }

    fn over_one(&self, code: &[u8], at: u64) -> Result<(Form, MovedCode), Reason> {
        let moved = MovedCode::one(code)?;
        let form = arch::read_moved(code, at, None)?;
        // What follows an instruction that never goes on is replaced, too.
        if moved.length() < JUMP_BYTES && !moved.never_goes_on() {
            return Err(UnfitCode::Unmovable(code.to_vec()).into());
        }
        Ok((form, moved))
    }

    fn with_hop(
        &self,
        code: &[u8],
        at: u64,
        (hop, padding): (u64, &[u8]),
    ) -> Result<(Form, MovedCode), Reason> {
        let moved = MovedCode::one(code)?;
        let form = arch::read_moved(code, at, Some(hop))?;
        let _ = self.code(hop)?;
        match self.read(hop, JUMP_BYTES)? == padding {
            true => Ok((form, moved)),
            false => Err(Reason::OtherCode),
        }
    }

    /// The segment of code that holds an address.
    fn code(&self, at: u64) -> Result<&Segment, Reason> {
        let mut segments = self.loaded.segments.iter();
        let code = segments.find(|segment| segment.is_executable && segment.holds(at, 1));
        match code {
            Some(segment) if segment.is_writable => Err(Reason::Writable),
            segment => segment.ok_or(Reason::Outside),
        }
    }

    fn read(&self, at: u64, length: usize) -> Result<Vec<u8>, Reason> {
        let found = self.held.read(&self.loaded.segments, at, length);
        found.ok_or(Reason::Outside)
    }
}

/// The bytes that sites change, by their first: no two sites may change the same.
#[derive(Debug, Default)]
struct Taken(BTreeMap<u64, u64>);

impl Taken {
    fn add(&mut self, bytes: impl Iterator<Item = Range<u64>>) {
        self.0.extend(bytes.map(|bytes| (bytes.start, bytes.end)));
    }

    fn overlaps(&self, bytes: &Range<u64>) -> bool {
        let before = self.0.range(..bytes.end).next_back();
        before.is_some_and(|(_, end)| *end > bytes.start)
    }
}

/// The bytes that a site changes: its own, and those of a jump in padding.
fn bytes_of(at: u64, form: &Form) -> impl Iterator<Item = Range<u64>> {
    let own = at..at.saturating_add(form.length() as u64);
    let hop = form
        .hop()
        .map(|offset| at.wrapping_add_signed(offset.into()));
    let hop = hop.map(|hop| hop..hop.saturating_add(JUMP_BYTES as u64));
    std::iter::once(own).chain(hop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_byte_is_taken_twice() {
        let mut taken = Taken::default();
        taken.add([10..15, 20..22].into_iter());
        for free in [5..10, 15..20, 22..30] {
            assert!(!taken.overlaps(&free), "{free:?}");
        }
        for overlapping in [5..11, 14..15, 12..13, 10..15, 15..21, 21..22, 0..100] {
            assert!(taken.overlaps(&overlapping), "{overlapping:?}");
        }
    }
}
