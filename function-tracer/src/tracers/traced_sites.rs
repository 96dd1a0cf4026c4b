//! The sites that the tracers share: what each of them does now, and how that follows what the
//! tracers want.

use std::collections::{BTreeMap, BTreeSet};

use ringmark_format::record::FUNCTION_BIT;

use super::schema::Numbers;
use super::switch_order::{self, Refusals, UseChange};
use super::tracer::Tracer;
use super::wants::{self, SiteUse};
use crate::engine::Engine;
use crate::patch::Refusal;
use crate::record::site_tables;
use crate::sites::{ModuleId, SiteId};

/// What a change of tracers did to the program's sites.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Functions that the tracer wants.
    pub matched: usize,
    /// Sites whose state was changed.
    pub patched: usize,
    /// Sites that are called now, by whichever tracer.
    pub open: usize,
    /// Functions that could not be switched, and why.
    pub refused: Vec<(String, Refusal)>,
    /// The schema had no room: records of some functions will be shown raw.
    pub schema_full: bool,
}

/// What the sites of this process do for the tracers.
#[derive(Debug, Default)]
pub(super) struct TracedSites {
    pub(super) numbers: Numbers,
    /// Sites that are open.
    uses: BTreeMap<SiteId, SiteUse>,
    /// Modules that the tracers were asked about.
    seen: BTreeSet<ModuleId>,
}

impl TracedSites {
    /// How many sites are called now.
    pub(super) fn open(&self) -> usize {
        self.uses.len()
    }

    /// Whether the tracers were asked about the modules that are loaded now, and no others.
    pub(super) fn are_up_to_date(&self, engine: &Engine) -> bool {
        let all_seen = engine.modules().all(|m| self.seen.contains(&m.id));
        all_seen && engine.modules().count() == self.seen.len()
    }

    /// One site of each function that is being traced, by the function's number.
    pub(super) fn of_functions(&self) -> BTreeMap<u32, SiteId> {
        let uses = self.uses.iter();
        uses.filter_map(|(site, now)| Some((self.numbers.wanted(now.number)?.function, *site)))
            .collect()
    }

    /// Makes every site do what the tracers want of it; counts the functions of one of them, by its
    /// place. The tables by site must be there.
    pub(super) fn apply(
        &mut self,
        engine: &mut Engine,
        tracers: &mut [Tracer],
        counted: Option<usize>,
    ) -> Outcome {
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
        let mut outcome = Outcome {
            matched: counted.map_or(0, Tracer::matched),
            schema_full: !self.describe(),
            ..Outcome::default()
        };
        self.switch(engine, changes, &mut outcome);
        outcome.open = self.uses.len();
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

    /// Puts what is new into the schema, before a record needs it.
    fn describe(&mut self) -> bool {
        let entries = self.numbers.take_entries();
        entries.is_empty() || ringmark::client::append_schema(&entries)
    }

    fn switch(&mut self, engine: &mut Engine, changes: Vec<UseChange>, outcome: &mut Outcome) {
        for change in &changes {
            if let Some(to) = change.to {
                site_tables::set_type(change.site.0, FUNCTION_BIT | to.number);
            }
        }
        let mut refused = Refusals::new();
        for mut part in switch_order::parts(engine, &changes) {
            switch_order::refuse_without_exit(engine, &mut part, &mut refused);
            let target = |change: &UseChange| Some(change.to?.stub.target());
            let targets = part.iter().map(|change| (change.site, target(change)));
            let report = engine.switch(&targets.collect::<Vec<_>>());
            outcome.patched += report.done;
            refused.extend(report.refused);
        }
        for UseChange { site, to } in changes {
            match (refused.get(&site), to) {
                (Some(why), _) => outcome.refused.push((name_of(engine, site), why.clone())),
                (None, Some(to)) => drop(self.uses.insert(site, to)),
                (None, None) => drop(self.uses.remove(&site)),
            }
        }
    }
}

/// The name of a site's function.
pub(super) fn name_of(engine: &Engine, id: SiteId) -> String {
    let found = engine.site(id);
    let function = found.and_then(|(module, site)| Some((module, module.function(site)?)));
    function.map_or_else(
        || format!("site {}", id.0),
        |(module, f)| module.name_of(&f.symbol, f.address).into_owned(),
    )
}
