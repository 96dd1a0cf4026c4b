//! Tracers: each has a name, a number, a selection of functions and what it wants to know of them.
//!
//! selections → what is wanted of each site → its type → its stub. A site that nobody wants does
//! nothing; one that several want is recorded once, under a type that says who they are.

mod budget;
mod error;
mod profile_cells;
mod schema;
pub mod selection;
mod stubs;
mod switch_order;
mod tracer;
mod triggers;
mod wants;

use std::collections::{BTreeMap, BTreeSet};

use ringmark_format::function::TRACERS_MAX;
pub use ringmark_format::function::TracerKind;
use ringmark_format::record::FUNCTION_BIT;

use crate::engine::{Engine, with_engine};
use crate::patch::{Refusal, Target, Threads};
use crate::record::Stub;
use crate::record::callbacks::{self, Callback};
use crate::record::profile_sum::Sum;
use crate::record::site_tables;
use crate::record::trigger_actions::{pause, take_snapshot};
use crate::sites::{ModuleId, SiteId};
pub use budget::GivenUp;
pub use error::TracerError;
pub(crate) use profile_cells::Names;
use schema::Numbers;
pub use selection::{Candidate, PatternError, Selection, Syntax};
use switch_order::Refusals;
pub(crate) use tracer::candidate;
pub use tracer::{Options, Tracer};
pub use triggers::{Action, Moment, Trigger, TriggerError};

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

/// What a site does now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Use {
    number: u32,
    stub: Stub,
}

/// Tracers with triggers that start or stop them: calls of a function have one type for each set of
/// those that pause.
const PAUSING_MAX: usize = 4;

/// The tracers of this process and the sites that they share.
#[derive(Debug)]
pub struct Tracers {
    threads: Threads,
    tracers: Vec<Tracer>,
    next_number: u32,
    numbers: Numbers,
    uses: BTreeMap<SiteId, Use>,
    /// Modules that the tracers were asked about.
    seen: BTreeSet<ModuleId>,
    /// What tracing costs, where somebody has a budget.
    watch: Option<budget::Watch>,
    costs: budget::Costs,
}

impl Tracers {
    /// No tracer yet.
    #[must_use]
    pub fn new(threads: Threads) -> Self {
        Self {
            threads,
            tracers: Vec::new(),
            next_number: 0,
            numbers: Numbers::default(),
            uses: BTreeMap::new(),
            seen: BTreeSet::new(),
            watch: None,
            costs: budget::Costs::default(),
        }
    }

    /// The tracers in the order of their numbers.
    #[must_use]
    pub fn all(&self) -> &[Tracer] {
        &self.tracers
    }

    /// Registers a tracer, which is off. The first one is the default.
    ///
    /// # Errors
    /// The name is taken, or there are too many.
    pub fn register(&mut self, name: &str, options: Options) -> Result<u32, TracerError> {
        if self.tracers.iter().any(|t| t.name == name) {
            return Err(TracerError::Duplicate {
                name: name.to_owned(),
            });
        }
        if self.next_number == TRACERS_MAX {
            return Err(TracerError::TooMany);
        }
        let number = self.next_number;
        if options.kind == TracerKind::Profile && !self.numbers.profile_cells.add(number) {
            return Err(TracerError::TooManyProfiles);
        }
        self.next_number += 1;
        let is_default = self.tracers.is_empty();
        let text = options.selection.text();
        self.numbers
            .tracer(number, options.kind, is_default, name, &text);
        self.tracers.push(Tracer {
            name: name.to_owned(),
            number,
            options,
            on: false,
            is_default,
            held_until_ms: None,
            matches: BTreeMap::new(),
            given_up: Vec::new(),
            cost_ppm: None,
        });
        Ok(number)
    }

    /// Says what the callback tracer of this name calls from now on, also while it is on; the tracer
    /// is registered if there is none. Nothing: then it calls nothing, on or off.
    ///
    /// # Errors
    /// One of this name is of another kind, or there are too many.
    pub fn set_callback(
        &mut self,
        name: &str,
        callback: Option<Callback>,
    ) -> Result<(), TracerError> {
        let found = self.tracers.iter().find(|tracer| tracer.name == name);
        let number = match found {
            Some(tracer) if tracer.options.kind == TracerKind::Callback => tracer.number,
            Some(tracer) => {
                return Err(TracerError::OtherKind {
                    name: name.to_owned(),
                    kind: tracer.options.kind.name(),
                });
            }
            None => self.register(name, Options::new(TracerKind::Callback))?,
        };
        callbacks::set(number, callback);
        Ok(())
    }

    /// Names of the tracers whose triggers wanted a snapshot since this was asked last.
    pub fn take_snapshots(&mut self) -> Vec<&str> {
        let wanted = self.tracers.iter().filter(|t| take_snapshot(t.number));
        wanted.map(|tracer| tracer.name.as_str()).collect()
    }

    /// Takes a tracer away, and switches off what only it wanted.
    ///
    /// # Errors
    /// There is none of this name.
    pub fn remove(&mut self, name: &str) -> Result<Outcome, TracerError> {
        let place = self.place(Some(name))?;
        let removed = self.tracers.remove(place);
        let outcome = self.apply(None);
        self.numbers.profile_cells.remove(removed.number);
        outcome
    }

    /// Switches a tracer on; without a name the default one.
    ///
    /// # Errors
    /// There is none, or none of this name.
    pub fn start(&mut self, name: Option<&str>) -> Result<Outcome, TracerError> {
        self.change(name, |tracer| {
            tracer.begin_anew();
            !std::mem::replace(&mut tracer.on, true)
        })
    }

    /// Changes what a tracer wants and switches it on, at once.
    ///
    /// # Errors
    /// As [`Tracers::start`].
    pub fn start_with(
        &mut self,
        name: Option<&str>,
        change: impl FnOnce(&mut Options),
    ) -> Result<Outcome, TracerError> {
        self.change(name, |tracer| {
            let triggers = tracer.change(change);
            triggers | !std::mem::replace(&mut tracer.on, true)
        })
    }

    /// The tracer of this name; without a name the default one.
    ///
    /// # Errors
    /// As [`Tracers::start`].
    pub fn find(&self, name: Option<&str>) -> Result<&Tracer, TracerError> {
        self.place(name).map(|place| &self.tracers[place])
    }

    /// What the functions of a profile tracer have gathered, in an order that stays.
    pub(crate) fn profile_of(&self, tracer: &Tracer) -> impl Iterator<Item = (&Names, Sum)> {
        self.numbers.profile_cells.of(tracer.number)
    }

    /// Says until when a tracer stays on, in ms of the monotonic clock.
    pub(crate) fn hold(&mut self, name: Option<&str>, until_ms: Option<u64>) {
        if let Ok(place) = self.place(name) {
            self.tracers[place].held_until_ms = until_ms;
        }
    }

    /// A tracer that is on beyond its time.
    pub(crate) fn first_expired(&self, now_ms: u64) -> Option<String> {
        let mut held = self.tracers.iter().filter(|tracer| tracer.on);
        let expired = held.find(|t| t.held_until_ms.is_some_and(|until| until < now_ms));
        expired.map(|tracer| tracer.name.clone())
    }

    /// Switches a tracer off; without a name the default one. Stopping one that is off is fine.
    ///
    /// # Errors
    /// As [`Tracers::start`].
    pub fn stop(&mut self, name: Option<&str>) -> Result<Outcome, TracerError> {
        self.change(name, |tracer| {
            tracer.on = false;
            false
        })
    }

    /// Changes what a tracer wants, on or off.
    ///
    /// # Errors
    /// As [`Tracers::start`].
    pub fn set(
        &mut self,
        name: Option<&str>,
        change: impl FnOnce(&mut Options),
    ) -> Result<Outcome, TracerError> {
        self.change(name, |tracer| tracer.change(change))
    }

    /// Switches every tracer off.
    ///
    /// # Errors
    /// As [`Tracers::start`].
    pub fn stop_all(&mut self) -> Result<Outcome, TracerError> {
        self.tracers.iter_mut().for_each(|tracer| tracer.on = false);
        self.apply(None)
    }

    /// Brings the sites of modules that were loaded meanwhile in line with the tracers, and forgets
    /// those that were unloaded. One call of the loader where there are none.
    pub fn follow_modules(&mut self) {
        if self.tracers.iter().all(|tracer| !tracer.on) && self.uses.is_empty() {
            return;
        }
        let is_new = with_engine(self.threads, |engine| {
            engine.rescan();
            let new = engine.modules().any(|m| !self.seen.contains(&m.id));
            new || engine.modules().count() != self.seen.len()
        });
        if is_new {
            // Without memory the new ones are not traced; nobody waits for an answer.
            let _ = self.apply(None);
        }
    }

    /// Sites that are called now.
    pub(crate) fn open_sites(&self) -> usize {
        self.uses.len()
    }

    fn place(&self, name: Option<&str>) -> Result<usize, TracerError> {
        let Some(name) = name else {
            let default = self.tracers.iter().position(|t| t.is_default);
            return default.ok_or(TracerError::NoTracer);
        };
        if self.tracers.is_empty() {
            return Err(TracerError::NoTracer);
        }
        let found = self.tracers.iter().position(|t| t.name == name);
        found.ok_or_else(|| TracerError::Unknown {
            name: name.to_owned(),
            known: self.names(),
        })
    }

    fn names(&self) -> String {
        let names: Vec<_> = self.tracers.iter().map(|t| t.name.as_str()).collect();
        names.join(", ")
    }

    /// `change` says whether the tracer waits anew for a trigger to start it.
    fn change(
        &mut self,
        name: Option<&str>,
        change: impl FnOnce(&mut Tracer) -> bool,
    ) -> Result<Outcome, TracerError> {
        let place = self.place(name)?;
        let tracer = &mut self.tracers[place];
        let before = (tracer.options.clone(), tracer.on);
        let anew = change(tracer);
        let (number, waits) = (tracer.number, tracer.waits());
        let pausing = self.tracers.iter().filter(|t| t.on && t.may_pause());
        if pausing.count() > PAUSING_MAX {
            let tracer = &mut self.tracers[place];
            (tracer.options, tracer.on) = before;
            tracer.begin_anew();
            return Err(TracerError::TooManyPausing);
        }
        if anew && waits {
            pause(number, true);
        }
        let outcome = self.apply(Some(place));
        if anew && !waits {
            // Only now: all its triggers are there.
            pause(number, false);
        }
        outcome
    }

    /// Makes every site do what the tracers want of it; counts the functions of one of them.
    fn apply(&mut self, counted: Option<usize>) -> Result<Outcome, TracerError> {
        if !site_tables::prepare() {
            return Err(TracerError::NoMemory);
        }
        with_engine(self.threads, |engine| self.apply_to(engine, counted))
    }

    fn apply_to(
        &mut self,
        engine: &mut Engine,
        counted: Option<usize>,
    ) -> Result<Outcome, TracerError> {
        engine.rescan();
        self.forget_unloaded(engine);
        let mut wished = Vec::new();
        for module in engine.modules() {
            self.tracers.iter_mut().for_each(|t| t.look_at(module));
            let uses = wants::uses(&self.tracers, module, &mut self.numbers);
            for (site, now) in module.sites.iter().zip(uses) {
                if let Some(place) = site.form.return_place() {
                    site_tables::set_return_place(site.id.0, place.word());
                }
                if now != self.uses.get(&site.id).copied() {
                    wished.push((site.id, now));
                }
            }
        }
        let counted = counted.and_then(|place| self.tracers.get(place));
        let mut outcome = Outcome {
            matched: counted.map_or(0, Tracer::matched),
            schema_full: !self.describe(),
            ..Outcome::default()
        };
        self.switch(engine, wished, &mut outcome);
        outcome.open = self.uses.len();
        Ok(outcome)
    }

    fn forget_unloaded(&mut self, engine: &Engine) {
        let modules = engine.modules();
        self.seen = modules.map(|module| module.id).collect();
        for tracer in &mut self.tracers {
            tracer.matches.retain(|id, _| self.seen.contains(id));
        }
        self.uses.retain(|site, _| engine.site(*site).is_some());
    }

    /// Puts what is new into the schema, before a record needs it.
    fn describe(&mut self) -> bool {
        let entries = self.numbers.take_entries();
        entries.is_empty() || ringmark::client::append_schema(&entries)
    }

    fn switch(
        &mut self,
        engine: &mut Engine,
        wished: Vec<(SiteId, Option<Use>)>,
        outcome: &mut Outcome,
    ) {
        for (site, now) in &wished {
            if let Some(now) = now {
                site_tables::set_type(site.0, FUNCTION_BIT | now.number);
            }
        }
        let target = |now: Use| {
            // SAFETY: the stubs keep to the rules and are part of this library.
            unsafe { Target::new(now.stub.address()) }
        };
        let mut refused = Refusals::new();
        for mut part in switch_order::parts(engine, &wished) {
            switch_order::refuse_without_exit(engine, &mut part, &mut refused);
            let wishes = part.iter().map(|(site, now)| (*site, now.map(target)));
            let report = engine.switch(&wishes.collect::<Vec<_>>());
            outcome.patched += report.done;
            refused.extend(report.refused);
        }
        for (site, now) in wished {
            match (refused.get(&site), now) {
                (Some(why), _) => outcome.refused.push((name_of(engine, site), why.clone())),
                (None, Some(now)) => drop(self.uses.insert(site, now)),
                (None, None) => drop(self.uses.remove(&site)),
            }
        }
    }
}

fn name_of(engine: &Engine, id: SiteId) -> String {
    let found = engine.site(id);
    let function = found.and_then(|(module, site)| Some((module, module.function(site)?)));
    function.map_or_else(
        || format!("site {}", id.0),
        |(module, f)| module.name_of(&f.symbol, f.address).into_owned(),
    )
}
