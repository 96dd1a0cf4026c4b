//! The patch sites that all function tracers share: what each site does now, and how it follows
//! what the tracers want.

use std::collections::{BTreeMap, BTreeSet};

use ringmark_format::record::FUNCTION_BIT;

use super::schema::Numbers;
use super::site_uses::SiteUses;
use super::switch_order::{self, Refusals, UseChange};
use super::tracer::Tracer;
use super::wants;
use crate::engine::{Engine, SiteTarget};
use crate::patch::Refusal;
use crate::record::site_tables;
use crate::sites::{ModuleId, SiteId};

/// Sites that the engine is told to switch at once, so that the lists for it stay small.
const SWITCHED_AT_ONCE: usize = 1 << 14;

/// A function whose patch site was neither enabled nor disabled.
#[derive(Debug, Clone)]
pub struct RefusedFunction {
    /// The function's name for people.
    pub function: String,
    /// The reason.
    pub refusal: Refusal,
}

/// What a change of function tracers did to the program's patch sites.
#[derive(Debug, Default)]
pub struct ChangeOutcome {
    /// Number of functions that the tracer wants.
    pub matched: usize,
    /// Number of sites that were enabled, disabled or given another target.
    pub patched: usize,
    /// Number of sites that are enabled now, for any tracer.
    pub enabled: usize,
    /// Functions whose sites were left as they were.
    pub refused: Vec<RefusedFunction>,
    /// Whether the schema had no room: records of some functions are shown by number.
    pub schema_full: bool,
}

/// What the patch sites of this process do for the function tracers.
#[derive(Debug, Default)]
pub(super) struct TracedSites {
    pub(super) numbers: Numbers,
    uses: SiteUses,
    /// Modules whose sites follow the tracers.
    seen: BTreeSet<ModuleId>,
}

impl TracedSites {
    /// Number of sites that are enabled now.
    pub(super) fn enabled(&self) -> usize {
        self.uses.enabled()
    }

    /// Whether the sites of all loaded modules, and of no others, follow the tracers.
    pub(super) fn are_up_to_date(&self, engine: &Engine) -> bool {
        let all_seen = engine.modules().all(|m| self.seen.contains(&m.id));
        all_seen && engine.modules().count() == self.seen.len()
    }

    /// One enabled site of each traced function, by the function's number.
    pub(super) fn of_functions(&self) -> BTreeMap<u32, SiteId> {
        let uses = self.uses.iter();
        uses.filter_map(|(site, now)| Some((self.numbers.wanted(now.number)?.function, site)))
            .collect()
    }

    /// Makes every site do what the tracers want of it. `counted` is the place of the tracer whose
    /// functions are counted. The tables by site must exist.
    pub(super) fn apply(
        &mut self,
        engine: &mut Engine,
        tracers: &mut [Tracer],
        counted: Option<usize>,
    ) -> ChangeOutcome {
        engine.rescan();
        self.forget_unloaded(engine, tracers);
        let mut changes = Vec::new();
        for module in engine.modules() {
            tracers.iter_mut().for_each(|t| t.look_at(module));
            let uses = wants::uses(tracers, module, &mut self.numbers);
            let is_new = |(place, to): (usize, &_)| *to != self.uses.get(module.id, place);
            let new = uses.iter().enumerate().filter(|one| is_new(*one)).count();
            changes.reserve_exact(new);
            for (place, (site, to)) in module.sites.iter().zip(uses).enumerate() {
                if let Some(at) = site.form.return_place() {
                    site_tables::set_return_place(site.id.0, at.word());
                }
                if to != self.uses.get(module.id, place) {
                    changes.push(UseChange { site: site.id, to });
                }
            }
        }
        let counted = counted.and_then(|place| tracers.get(place));
        let mut outcome = ChangeOutcome {
            matched: counted.map_or(0, Tracer::matched),
            schema_full: !self.numbers.describe(),
            ..ChangeOutcome::default()
        };
        self.switch(engine, changes, &mut outcome);
        outcome.enabled = self.uses.enabled();
        outcome
    }

    fn forget_unloaded(&mut self, engine: &Engine, tracers: &mut [Tracer]) {
        let modules = engine.modules();
        self.seen = modules.map(|module| module.id).collect();
        for tracer in tracers {
            tracer.matches.retain(|id, _| self.seen.contains(id));
        }
        self.uses.keep(|id| self.seen.contains(&id));
        self.numbers.keep(|id| self.seen.contains(&id));
    }

    fn switch(
        &mut self,
        engine: &mut Engine,
        changes: Vec<UseChange>,
        outcome: &mut ChangeOutcome,
    ) {
        for change in &changes {
            if let Some(to) = change.to {
                site_tables::set_type(change.site.0, FUNCTION_BIT | to.number);
            }
        }
        let mut refused = Refusals::new();
        for mut part in switch_order::parts(engine, changes) {
            switch_order::refuse_without_exit(engine, &mut part, &mut refused);
            for some in part.chunks(SWITCHED_AT_ONCE) {
                outcome.patched += switch_some(engine, some, &mut refused);
            }
            let done = part
                .iter()
                .filter(|change| !refused.contains_key(&change.site));
            for UseChange { site, to } in done {
                if let Some((module, _)) = engine.site(*site) {
                    self.uses.set(module, *site, *to);
                }
            }
        }
        outcome.refused = refused
            .into_iter()
            .map(|(site, refusal)| RefusedFunction {
                function: name_of(engine, site),
                refusal,
            })
            .collect();
    }
}

/// Switches these sites, adds those that were refused, and returns the number of the others.
fn switch_some(engine: &mut Engine, changes: &[UseChange], refused: &mut Refusals) -> usize {
    let targets = changes.iter().map(|change| SiteTarget {
        site: change.site,
        target: change.to.map(|to| to.stub.target()),
    });
    let report = engine.switch(&targets.collect::<Vec<_>>());
    let refusals = report.refused.into_iter();
    refused.extend(refusals.map(|one| (one.site, one.refusal)));
    report.done
}

/// The name for people of a site's function.
pub(super) fn name_of(engine: &Engine, id: SiteId) -> String {
    let found = engine.site(id);
    let function = found.and_then(|(module, site)| Some((module, module.function(site)?)));
    function.map_or_else(
        || format!("site {}", id.0),
        |(module, f)| module.name_of(&f.symbol, f.address).into_owned(),
    )
}
