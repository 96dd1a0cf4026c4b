//! One tracer: its name, what it wants, and which sites that means.

use std::collections::BTreeMap;

use ringmark_format::function::TracerKind;

use crate::record::plan::{Callback, Plan};
use crate::selection::{Candidate, Selection};
use crate::sites::{Kind, Module, ModuleId, Site};

/// What a tracer wants to know.
#[derive(Debug, Clone)]
pub struct Options {
    /// What it makes of the calls.
    pub kind: TracerKind,
    /// Which functions.
    pub selection: Selection,
    /// Integer arguments that are recorded, at most six.
    pub arguments: u8,
    /// The return value is recorded.
    pub result: bool,
    /// Only calls that take at least so many ns are recorded.
    pub min_ns: Option<u64>,
    /// Of a callback tracer: what is called.
    pub callback: Option<Callback>,
}

impl Options {
    /// Nothing selected yet, nothing but what the kind needs.
    #[must_use]
    pub fn new(kind: TracerKind) -> Self {
        Self {
            kind,
            selection: Selection::default(),
            arguments: 0,
            result: false,
            min_ns: None,
            callback: None,
        }
    }
}

/// A registered tracer.
#[derive(Debug)]
pub struct Tracer {
    pub(super) name: String,
    pub(super) number: u32,
    pub(super) options: Options,
    pub(super) on: bool,
    pub(super) is_default: bool,
    /// Until when it stays on, ms of the monotonic clock; `None`: until it is switched off.
    pub(super) held_until_ms: Option<u64>,
    /// Of each module which of its sites are wanted, as far as that was asked.
    pub(super) matches: BTreeMap<ModuleId, Matches>,
}

/// Which sites of a module a selection wants, by their places in it.
#[derive(Debug, Default)]
pub(super) struct Matches {
    sites: Vec<bool>,
    count: usize,
}

impl Tracer {
    /// Its name, unique in the process.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its number, a bit in what records say; never used again.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.number
    }

    /// What it wants.
    #[must_use]
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Whether it is on.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.on
    }

    /// Whether commands that name no tracer mean this one.
    #[must_use]
    pub fn is_default(&self) -> bool {
        self.is_default
    }

    /// Whether it ends by itself unless it is renewed.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.held_until_ms.is_some()
    }

    /// How many functions it wants, on or off.
    #[must_use]
    pub fn matched(&self) -> usize {
        self.matches.values().map(|matches| matches.count).sum()
    }

    pub(super) fn wants(&self, module: ModuleId, place: usize) -> bool {
        let matches = self.matches.get(&module).filter(|_| self.on);
        matches.is_some_and(|m| m.sites.get(place) == Some(&true))
    }

    /// Asks the selection about the sites of a module, once.
    pub(super) fn look_at(&mut self, module: &Module) {
        if self.matches.contains_key(&module.id) {
            return;
        }
        let wants = |site: &Site| self.options.selection.wants(&candidate(module, site));
        let sites: Vec<_> = module.sites.iter().map(wants).collect();
        let entries = module.sites.iter().map(|site| site.kind == Kind::Entry);
        let count = sites.iter().zip(entries).filter(|(w, e)| **w && *e).count();
        self.matches.insert(module.id, Matches { sites, count });
    }
}

/// What a selection looks at.
pub(crate) fn candidate<'m>(module: &'m Module, site: &Site) -> Candidate<'m> {
    use std::os::unix::ffi::OsStrExt;
    let function = module.function(site);
    let file = module.path.file_name().unwrap_or_default();
    Candidate {
        symbol: function.map_or(&[], |f| f.symbol.as_slice()),
        module: file.as_bytes(),
        bytes: function.map_or(0, |f| f.size),
    }
}

/// What is done with a call for it.
pub(super) fn plan(options: &Options) -> Plan {
    Plan {
        record: options.kind != TracerKind::Callback,
        exit: matches!(options.kind, TracerKind::Graph | TracerKind::Profile)
            || options.result
            || options.min_ns.is_some(),
        sleds: false,
        caller: options.kind == TracerKind::Function || options.arguments > 0,
        arguments: options.arguments.min(6),
        result: options.result,
        min_ticks: options.min_ns.and_then(ringmark::client::ticks_of_ns),
        callback: options.callback,
    }
}
