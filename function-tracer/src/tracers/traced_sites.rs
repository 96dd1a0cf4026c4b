//! The patch sites that all function tracers share: what each site does now, and how it follows
//! what the tracers want.

use std::collections::{BTreeMap, BTreeSet};

use ringmark_format::record::FUNCTION_BIT;

use super::schema::Numbers;
use super::switch_order::{self, Refusals, UseChange};
use super::tracer::Tracer;
use super::wants::{self, SiteUse};
use crate::engine::{Engine, SiteTarget};
use crate::patch::Refusal;
use crate::record::site_tables;
use crate::sites::{ModuleId, SiteId};

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
    /// What each enabled site does.
    uses: BTreeMap<SiteId, SiteUse>,
    /// Modules whose sites follow the tracers.
    seen: BTreeSet<ModuleId>,
}

impl TracedSites {
    /// Number of sites that are enabled now.
    pub(super) fn enabled(&self) -> usize {
        self.uses.len()
    }

    /// Whether the sites of all loaded modules, and of no others, follow the tracers.
    pub(super) fn are_up_to_date(&self, engine: &Engine) -> bool {
        let all_seen = engine.modules().all(|m| self.seen.contains(&m.id));
        all_seen && engine.modules().count() == self.seen.len()
    }

    /// One enabled site of each traced function, by the function's number.
    pub(super) fn of_functions(&self) -> BTreeMap<u32, SiteId> {
        let uses = self.uses.iter();
        uses.filter_map(|(site, now)| Some((self.numbers.wanted(now.number)?.function, *site)))
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
            for (site, to) in module.sites.iter().zip(uses) {
                if let Some(place) = site.form.return_place() {
                    site_tables::set_return_place(site.id.0, place.word());
                }
                if to != self.uses.get(&site.id).copied() {
                    changes.push(UseChange { site: site.id, to });
                }
            }
        }
        let counted = counted.and_then(|place| tracers.get(place));
        let mut outcome = ChangeOutcome {
            matched: counted.map_or(0, Tracer::matched),
            schema_full: !self.describe(),
            ..ChangeOutcome::default()
        };
        self.switch(engine, changes, &mut outcome);
        outcome.enabled = self.uses.len();
        outcome
    }

    fn forget_unloaded(&mut self, engine: &Engine, tracers: &mut [Tracer]) {
        let modules = engine.modules();
        self.seen = modules.map(|module| module.id).collect();
        for tracer in tracers {
            tracer.matches.retain(|id, _| self.seen.contains(id));
        }
        self.uses.retain(|site, _| engine.site(*site).is_some());
    }

    /// Appends new entries to the schema, before a record needs them. `false`: there is no room.
    fn describe(&mut self) -> bool {
        let entries = self.numbers.take_entries();
        entries.is_empty() || ringmark::client::append_schema(&entries)
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
        for mut part in switch_order::parts(engine, &changes) {
            switch_order::refuse_without_exit(engine, &mut part, &mut refused);
            let targets = part.iter().map(|change| SiteTarget {
                site: change.site,
                target: change.to.map(|to| to.stub.target()),
            });
            let report = engine.switch(&targets.collect::<Vec<_>>());
            outcome.patched += report.done;
            refused.extend(
                report
                    .refused
                    .into_iter()
                    .map(|one| (one.site, one.refusal)),
            );
        }
        for UseChange { site, to } in changes {
            match (refused.get(&site), to) {
                (Some(why), _) => outcome.refused.push(RefusedFunction {
                    function: name_of(engine, site),
                    refusal: why.clone(),
                }),
                (None, Some(to)) => drop(self.uses.insert(site, to)),
                (None, None) => drop(self.uses.remove(&site)),
            }
        }
    }
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
