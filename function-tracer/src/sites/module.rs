//! What is found in a process: modules, their functions and patch sites, and why other table
//! entries are no sites. Nothing changes these facts.

use std::borrow::Cow;
use std::ops::Range;
use std::path::PathBuf;

use super::file_error::FileError;
use super::loader::Segment;
use super::names::SymbolName;
use super::symbol::readable;
use crate::arch::{Form, MovedCode, UnfitCode};

/// A patch site's number, which its trampoline pushes. Numbers count up from 0 in a process and are
/// never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SiteId(pub u32);

/// A module's number. Numbers count up from 0 in a process and are never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ModuleId(pub u32);

/// What a patch site stands in front of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SiteKind {
    /// The body of a function.
    Entry,
    /// A return, whose place the site takes: it jumps, and its target returns for the function.
    Exit,
    /// A return, before which the site calls.
    BeforeReturn,
    /// A jump that ends the function with a call of another function.
    TailExit,
}

/// A patch site: a place in a function's code that can be made to call. Disabled it does nothing,
/// enabled it calls its target.
#[derive(Debug)]
pub struct Site {
    /// The site's number.
    pub id: SiteId,
    /// Address of the site's first byte.
    pub address: u64,
    /// What the site stands in front of.
    pub kind: SiteKind,
    /// Index of the site's function in [`Module::functions`].
    pub function: u32,
    /// The form that the site was found in.
    pub(crate) form: Form,
}

impl Site {
    /// The address that the site's call returns to, which its target finds at `[rsp + 8]`. Where the site's
    /// instruction was moved, the target finds an address in the trampoline.
    #[must_use]
    pub fn return_address(&self) -> u64 {
        self.address.wrapping_add(self.form.call_end())
    }
}

/// A function with a patch site.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// Address of the function's first byte.
    pub address: u64,
    /// Bytes; 0: only the beginning is known.
    pub size: u32,
    /// The name in the symbol table, mangled; empty for a function without a symbol.
    pub symbol: SymbolName,
    /// Whether all exits are sites, so that no return address has to be replaced to see them.
    pub has_exits: bool,
    /// Whether the function may end in a jump to one that asks who called it, such as `dlopen`. Its
    /// return address is never replaced; only exits that are sites show the ends of its calls.
    pub hands_on: bool,
}

impl Function {
    /// Whether the ends of the function's calls cannot be seen: its exits are no sites, and its
    /// return address must stay.
    #[must_use]
    pub fn has_no_end(&self) -> bool {
        self.hands_on && !self.has_exits
    }
}

/// A table entry that is no patch site, or a table that cannot be read.
#[derive(Debug, Clone)]
pub struct Refused {
    /// Address that the site would have.
    pub address: u64,
    /// The function's symbol; empty where there is none.
    pub symbol: Vec<u8>,
    /// The reason.
    pub reason: Reason,
}

/// Why a function or a module cannot be traced.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Reason {
    /// The code is not that of a patch site.
    #[error(transparent)]
    Code(#[from] UnfitCode),
    /// The entry leads outside the module's code.
    #[error("the entry points outside the code of its module")]
    Outside,
    /// Memory holds other code than the file.
    #[error(
        "its code is not that of its file: another tool has changed it, a debugger or a uprobe"
    )]
    OtherCode,
    /// The tracer calls it while it traces.
    #[error("the tracer itself calls it for each call that it traces")]
    OwnCall,
    /// The code can be written to.
    #[error("its code can be written to: what stands there may change")]
    Writable,
    /// Neither a symbol nor an unwind entry begins at or near the site.
    #[error("no symbol or unwind entry says that a function begins here")]
    NoFunction,
    /// The unwind table does not say where the function's return address is.
    #[error("no unwind entry says where its return address is")]
    NoFrame,
    /// The table is not in memory.
    #[error("a table of sites that is not in memory")]
    TableNotInMemory,
    /// The module's file is not the one that was loaded, or cannot be read.
    #[error("{}: {source}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: FileError,
    },
}

/// A program or shared object with patch sites.
#[derive(Debug)]
pub struct Module {
    /// The module's number.
    pub id: ModuleId,
    /// The module's file.
    pub path: PathBuf,
    /// The sum of this and an address in the file is the address in memory.
    pub base: u64,
    /// The module's build id; empty where it has none.
    pub build_id: Vec<u8>,
    /// Functions with sites, sorted by address.
    pub functions: Vec<Function>,
    /// Sites sorted by address; their numbers follow each other in the same order.
    pub sites: Vec<Site>,
    /// Table entries that are no sites.
    pub refused: Vec<Refused>,
    /// By the site's index: the instructions that are moved to make room for it; empty where the module's
    /// compiler left sites. The sites of one file that are of both kinds are in two modules.
    pub(crate) moved: Vec<MovedCode>,
    /// Whether this is the program, in which a pattern without a module means moved sites, too.
    pub(crate) is_program: bool,
    /// Whether a compiler left patch sites, in this file or another one of the process.
    pub(crate) is_beside_sites: bool,
    pub(crate) segments: Vec<Segment>,
}

impl Module {
    /// The site with this number, if it belongs to this module.
    #[must_use]
    pub fn site(&self, id: SiteId) -> Option<&Site> {
        self.sites.get(self.index_of(id)?)
    }

    /// The site at this address.
    pub(crate) fn site_at(&self, address: u64) -> Option<&Site> {
        let found = self
            .sites
            .binary_search_by_key(&address, |site| site.address);
        self.sites.get(found.ok()?)
    }

    /// Index among [`Module::sites`] of the site with this number, if it belongs to this module.
    pub(crate) fn index_of(&self, id: SiteId) -> Option<usize> {
        let first = self.sites.first()?.id.0;
        let index = id.0.checked_sub(first)? as usize;
        (index < self.sites.len()).then_some(index)
    }

    /// Numbers of the module's sites; an empty range where it has none.
    pub(crate) fn site_ids(&self) -> Range<u32> {
        let first = self.sites.first().map_or(0, |site| site.id.0);
        let count = u32::try_from(self.sites.len()).unwrap_or(u32::MAX);
        first..first.saturating_add(count)
    }

    /// The function that a site belongs to.
    #[must_use]
    pub fn function(&self, site: &Site) -> Option<&Function> {
        self.functions.get(site.function as usize)
    }

    /// The name for people of a function of this module, from its symbol or else its address.
    #[must_use]
    pub fn name_of<'s>(&self, symbol: &'s [u8], address: u64) -> Cow<'s, str> {
        let file = self.path.file_name().unwrap_or_default();
        readable(
            symbol,
            file.as_encoded_bytes(),
            address.wrapping_sub(self.base),
        )
    }

    /// The module's addresses, from the first byte to the end of the last segment.
    #[must_use]
    pub fn range(&self) -> Range<u64> {
        let start = self.segments.iter().map(|segment| segment.start).min();
        let end = self.segments.iter().map(|segment| segment.end).max();
        start.unwrap_or(0)..end.unwrap_or(0)
    }
}
