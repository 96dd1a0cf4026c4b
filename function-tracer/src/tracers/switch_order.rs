//! In which order sites are switched: the exits of a function are open before the first call of it
//! can begin, and stay so until none begins any more.

use std::collections::BTreeMap;

use super::wants::SiteUse;
use crate::engine::Engine;
use crate::patch::Refusal;
use crate::sites::{Kind, ModuleId, Site, SiteId};

/// A site, and what it shall do from now on.
#[derive(Debug, Clone, Copy)]
pub(super) struct UseChange {
    pub(super) site: SiteId,
    pub(super) to: Option<SiteUse>,
}

/// What was refused, and why.
pub(super) type Refusals = BTreeMap<SiteId, Refusal>;

fn site(engine: &Engine, id: SiteId) -> Option<(ModuleId, &Site)> {
    engine.site(id).map(|(module, site)| (module.id, site))
}

/// What is to be done first, then, and last.
pub(super) fn parts(engine: &Engine, changes: &[UseChange]) -> [Vec<UseChange>; 3] {
    let mut parts = [const { Vec::new() }; 3];
    for change in changes {
        let kind = site(engine, change.site).map_or(Kind::Entry, |(_, site)| site.kind);
        let part = match (kind, change.to) {
            (Kind::Entry, _) => 1,
            (_, Some(_)) => 0,
            (_, None) => 2,
        };
        parts[part].push(*change);
    }
    parts
}

/// Takes out of `part` the functions one of whose exits was refused: their ends would be missed.
pub(super) fn refuse_without_exit(
    engine: &Engine,
    part: &mut Vec<UseChange>,
    refused: &mut Refusals,
) {
    let function = |id: &SiteId| site(engine, *id).map(|(module, site)| (module, site.function));
    let blocked: BTreeMap<_, _> = refused
        .iter()
        .filter_map(|(id, why)| Some((function(id)?, why.clone())))
        .collect();
    part.retain(|change| {
        let why = function(&change.site).and_then(|function| blocked.get(&function));
        match why.filter(|_| change.to.is_some()) {
            Some(why) => refused.insert(change.site, why.clone()).is_some(),
            None => true,
        }
    });
}
