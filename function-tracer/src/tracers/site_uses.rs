//! What each patch site does for the function tracers.
//!
//! A module may have hundreds of thousands of sites, all enabled at once: a list for each module takes
//! a few bytes for each site, a map several times as many.

use std::collections::BTreeMap;

use super::wants::SiteUse;
use crate::sites::{Module, ModuleId, SiteId};

/// What each enabled site does, by module and the site's index in it.
#[derive(Debug, Default)]
pub(super) struct SiteUses {
    modules: BTreeMap<ModuleId, ModuleUses>,
    enabled: usize,
}

/// What the sites of one module do, by their index. The list is made when the first of them is enabled,
/// and stays until the module is gone.
#[derive(Debug)]
struct ModuleUses {
    /// Number of the module's first site.
    first: u32,
    uses: Vec<Option<SiteUse>>,
}

impl SiteUses {
    /// Number of sites that are enabled.
    pub(super) fn enabled(&self) -> usize {
        self.enabled
    }

    /// What a site does; `None`: it is not enabled.
    pub(super) fn get(&self, module: ModuleId, place: usize) -> Option<SiteUse> {
        let module = self.modules.get(&module)?;
        module.uses.get(place).copied().flatten()
    }

    /// All enabled sites in the order of their numbers.
    pub(super) fn iter(&self) -> impl Iterator<Item = (SiteId, SiteUse)> {
        self.modules.values().flat_map(|module| {
            let uses = (module.first..).zip(&module.uses);
            uses.filter_map(|(id, now)| Some((SiteId(id), (*now)?)))
        })
    }

    /// Notes what a site of this module does from now on.
    pub(super) fn set(&mut self, module: &Module, site: SiteId, to: Option<SiteUse>) {
        let uses = self.modules.entry(module.id).or_insert_with(|| ModuleUses {
            first: module.site_ids().start,
            uses: vec![None; module.sites.len()],
        });
        if let Some(now) = module.index_of(site).and_then(|at| uses.uses.get_mut(at)) {
            self.enabled += usize::from(to.is_some());
            self.enabled -= usize::from(now.is_some());
            *now = to;
        }
    }

    /// Forgets modules that are not among these.
    pub(super) fn keep(&mut self, is_there: impl Fn(ModuleId) -> bool) {
        self.modules.retain(|id, _| is_there(*id));
        self.enabled = self.iter().count();
    }
}
