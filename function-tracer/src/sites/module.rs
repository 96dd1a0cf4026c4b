//! What is found in a process: modules, their functions and sites, and why others have none. Facts,
//! which nothing changes.

use std::borrow::Cow;
use std::ops::Range;
use std::path::PathBuf;

use super::demangle::readable;
use super::loader::Segment;
use crate::arch::{Form, UnfitCode};

/// A site's number, pushed by its pad. Numbers count up in one process and are never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SiteId(pub u32);

/// A module's number. Numbers count up in one process and are never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ModuleId(pub u32);

/// What a site stands in front of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The body of a function.
    Entry,
    /// A return. The site jumps: its target returns for the function.
    Exit,
    /// A return. The site calls.
    BeforeReturn,
    /// A jump that ends the function with a call of another.
    TailExit,
}

/// A place where a function's code can be made to call.
#[derive(Debug)]
pub struct Site {
    /// Its number.
    pub id: SiteId,
    /// Its first byte.
    pub address: u64,
    /// What it stands in front of.
    pub kind: Kind,
    /// Index of its function in [`Module::functions`].
    pub function: u32,
    /// As it was found.
    pub(crate) form: Form,
}

impl Site {
    /// Where its call returns to: what the target finds at `[rsp + 8]`.
    #[must_use]
    pub fn return_address(&self) -> u64 {
        self.address + self.form.call_end()
    }
}

/// A function that has a site.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// Its first byte.
    pub address: u64,
    /// Bytes, 0 where only its beginning is known.
    pub size: u64,
    /// As in the symbol table, mangled; empty where the file has no symbol of it.
    pub symbol: Vec<u8>,
    /// All its exits are sites: no return address has to be replaced to see them.
    pub has_exits: bool,
    /// It may end in a jump to a function that asks who called it, such as `dlopen`: its return
    /// address is never replaced. The ends of its calls are seen only by exits that are sites.
    pub hands_on: bool,
}

impl Function {
    /// Whether the ends of its calls cannot be seen: there are no sites, and its return address must
    /// stay.
    #[must_use]
    pub fn has_no_end(&self) -> bool {
        self.hands_on && !self.has_exits
    }
}

/// A table's entry that is no site, or a table that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// Where it would be.
    pub address: u64,
    /// The function's symbol where there is one.
    pub symbol: Vec<u8>,
    /// The reason.
    pub reason: Reason,
}

/// Why a function or a module cannot be traced.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// The code is not that of a site.
    #[error(transparent)]
    Code(#[from] UnfitCode),
    /// The entry points outside the module's code.
    #[error("the entry points outside the code of its module")]
    Outside,
    /// Neither a symbol nor an unwind entry begins at or near the site.
    #[error("no symbol or unwind entry says that a function begins here")]
    NoFunction,
    /// The unwind table does not say where the function's return address is.
    #[error("no unwind entry says where its return address is")]
    NoFrame,
    /// The module's file is not the one that was loaded, or cannot be read.
    #[error("{0}")]
    File(String),
}

/// A program or shared object with sites.
#[derive(Debug)]
pub struct Module {
    /// Its number.
    pub id: ModuleId,
    /// Its file.
    pub path: PathBuf,
    /// Added to the addresses in its file to get those in memory.
    pub base: u64,
    /// Its build id, empty where it has none.
    pub build_id: Vec<u8>,
    /// Functions with sites, by address.
    pub functions: Vec<Function>,
    /// Sites by address; their ids follow each other in the same order.
    pub sites: Vec<Site>,
    /// What is not traceable, and why.
    pub refused: Vec<Refused>,
    pub(crate) segments: Vec<Segment>,
}

impl Module {
    /// The site with this number, if it is one of this module.
    #[must_use]
    pub fn site(&self, id: SiteId) -> Option<&Site> {
        self.sites.get(self.index_of(id)?)
    }

    /// The place among the sites that the site with this number has, if it is one of this module.
    pub(crate) fn index_of(&self, id: SiteId) -> Option<usize> {
        let first = self.sites.first()?.id.0;
        let index = id.0.checked_sub(first)? as usize;
        (index < self.sites.len()).then_some(index)
    }

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

    /// The name for people of a function of this module: by its symbol, else by its place.
    #[must_use]
    pub fn name_of<'s>(&self, symbol: &'s [u8], address: u64) -> Cow<'s, str> {
        let file = self.path.file_name().unwrap_or_default();
        readable(
            symbol,
            file.as_encoded_bytes(),
            address.wrapping_sub(self.base),
        )
    }

    /// Its addresses, from the first byte to the end of the last segment.
    #[must_use]
    pub fn range(&self) -> Range<u64> {
        let start = self.segments.iter().map(|segment| segment.start).min();
        let end = self.segments.iter().map(|segment| segment.end).max();
        start.unwrap_or(0)..end.unwrap_or(0)
    }
}
