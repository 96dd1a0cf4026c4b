//! The order in which patch sites are switched: the exits of a function are enabled before its
//! entry and disabled after it, so no recorded call misses its end.

use std::collections::BTreeMap;

use super::wants::SiteUse;
use crate::engine::Engine;
use crate::patch::Refusal;
use crate::sites::{ModuleId, Site, SiteId, SiteKind};

/// A patch site and what it is to do from now on; `None`: the site is to be disabled.
#[derive(Debug, Clone, Copy)]
pub(super) struct UseChange {
    pub(super) site: SiteId,
    pub(super) to: Option<SiteUse>,
}

/// Refused sites with their reasons.
pub(super) type Refusals = BTreeMap<SiteId, Refusal>;

fn site(engine: &Engine, id: SiteId) -> Option<(ModuleId, &Site)> {
    engine.site(id).map(|(module, site)| (module.id, site))
}

/// `changes` in three parts, in order: exits to enable, entries, exits to disable.
pub(super) fn parts(engine: &Engine, changes: Vec<UseChange>) -> [Vec<UseChange>; 3] {
    let kind = |change: &UseChange| {
        site(engine, change.site).map_or(SiteKind::Entry, |(_, site)| site.kind)
    };
    if changes.iter().all(|change| kind(change) == SiteKind::Entry) {
        return [Vec::new(), changes, Vec::new()];
    }
    let mut parts = [const { Vec::new() }; 3];
    for change in changes {
        let part = match (kind(&change), change.to) {
            (SiteKind::Entry, _) => 1,
            (_, Some(_)) => 0,
            (_, None) => 2,
        };
        parts[part].push(change);
    }
    parts
}

/// Takes functions with a refused exit out of `part`, because the ends of their calls would be
/// missed.
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
