//! In which order sites are switched: the exits of a function are open before the first call of it
//! can begin, and stay so until none begins any more.

use std::collections::BTreeMap;

use super::Use;
use crate::engine::Engine;
use crate::patch::Refusal;
use crate::sites::{Kind, ModuleId, Site, SiteId};

/// A site, and what it shall do.
pub(super) type Wished = (SiteId, Option<Use>);

/// What was refused, and why.
pub(super) type Refusals = BTreeMap<SiteId, Refusal>;

fn site(engine: &Engine, id: SiteId) -> Option<(ModuleId, &Site)> {
    engine.site(id).map(|(module, site)| (module.id, site))
}

/// What is to be done first, then, and last.
pub(super) fn parts(engine: &Engine, wished: &[Wished]) -> [Vec<Wished>; 3] {
    let mut parts = [const { Vec::new() }; 3];
    for wish in wished {
        let kind = site(engine, wish.0).map_or(Kind::Entry, |(_, site)| site.kind);
        let part = match (kind, wish.1) {
            (Kind::Entry, _) => 1,
            (_, Some(_)) => 0,
            (_, None) => 2,
        };
        parts[part].push(*wish);
    }
    parts
}

/// Takes out of `part` the functions one of whose exits was refused: their ends would be missed.
pub(super) fn refuse_without_exit(engine: &Engine, part: &mut Vec<Wished>, refused: &mut Refusals) {
    let function = |id: &SiteId| site(engine, *id).map(|(module, site)| (module, site.function));
    let blocked: BTreeMap<_, _> = refused
        .iter()
        .filter_map(|(id, why)| Some((function(id)?, why.clone())))
        .collect();
    part.retain(|(id, now)| {
        let why = function(id).and_then(|function| blocked.get(&function));
        match why.filter(|_| now.is_some()) {
            Some(why) => refused.insert(*id, why.clone()).is_some(),
            None => true,
        }
    });
}
