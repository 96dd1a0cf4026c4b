//! The function tracers of a process, by name and number.

use std::cmp::Reverse;

use ringmark_format::function::{TRACERS_MAX, TracerKind};

use super::budget::{Budgets, OverBudget};
use super::error::TracerError;
use super::profile_cells::CellOfFunction;
use super::traced_sites::{ChangeOutcome, TracedSites, name_of};
use super::tracer::{Tracer, TracerOptions};
use super::triggers::{PAUSING_MAX, may_pause};
use crate::engine::with_engine;
use crate::patch::Threads;
use crate::record::callbacks::{self, Callback};
use crate::record::trigger_actions::{pause, take_snapshot};
use crate::record::{least_time, site_tables};

/// The function tracers of this process and the patch sites that they share.
#[derive(Debug)]
pub struct Tracers {
    threads: Threads,
    tracers: Vec<Tracer>,
    next_number: u32,
    sites: TracedSites,
    budgets: Budgets,
}

impl Tracers {
    /// A registry without tracers.
    #[must_use]
    pub fn new(threads: Threads) -> Self {
        Self {
            threads,
            tracers: Vec::new(),
            next_number: 0,
            sites: TracedSites::default(),
            budgets: Budgets::default(),
        }
    }

    /// The tracers in the order of their numbers.
    #[must_use]
    pub fn all(&self) -> &[Tracer] {
        &self.tracers
    }

    /// Registers a tracer, which is off, and returns its number. The first one is the default.
    ///
    /// # Errors
    /// The name is taken, or there are too many tracers.
    pub fn register(&mut self, name: &str, options: TracerOptions) -> Result<u32, TracerError> {
        if self.tracers.iter().any(|t| t.name == name) {
            return Err(TracerError::Duplicate {
                name: name.to_owned(),
            });
        }
        if self.next_number == TRACERS_MAX {
            return Err(TracerError::TooMany);
        }
        let number = self.next_number;
        if options.kind == TracerKind::Profile && !self.sites.numbers.profile_cells.add(number) {
            return Err(TracerError::TooManyProfiles);
        }
        self.next_number += 1;
        let is_default = self.tracers.is_empty();
        let text = options.selection.text();
        self.sites
            .numbers
            .tracer(number, options.kind, is_default, name, &text);
        let tracer = Tracer::new(name, number, options, is_default);
        self.tracers.push(tracer);
        Ok(number)
    }

    /// Sets the function that the callback tracer with this name calls, also while it is on;
    /// `None`: it calls none. Registers the tracer if there is none.
    ///
    /// # Errors
    /// The tracer with this name is of another kind, or there are too many tracers.
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
            None => self.register(name, TracerOptions::new(TracerKind::Callback))?,
        };
        callbacks::set(number, callback);
        Ok(())
    }

    /// Names of the tracers with a trigger that requested a snapshot since the last call.
    pub fn take_snapshots(&mut self) -> Vec<&str> {
        let wanted = self.tracers.iter().filter(|t| take_snapshot(t.number));
        wanted.map(|tracer| tracer.name.as_str()).collect()
    }

    /// Removes a tracer, and disables the patch sites that only it wanted.
    ///
    /// # Errors
    /// No tracer has this name.
    pub fn remove(&mut self, name: &str) -> Result<ChangeOutcome, TracerError> {
        let place = self.place(Some(name))?;
        let removed = self.tracers.remove(place);
        let outcome = self.apply(None);
        self.sites.numbers.profile_cells.remove(removed.number);
        outcome
    }

    /// Starts the tracer with this name, without a name the default one.
    ///
    /// # Errors
    /// There is no tracer with this name, or no default one.
    pub fn start(&mut self, name: Option<&str>) -> Result<ChangeOutcome, TracerError> {
        self.change(name, |tracer| {
            tracer.begin_anew();
            !tracer.switch_on()
        })
    }

    /// Changes a tracer's options and starts it, in one step.
    ///
    /// # Errors
    /// As [`Tracers::start`].
    pub fn start_with(
        &mut self,
        name: Option<&str>,
        change: impl FnOnce(&mut TracerOptions),
    ) -> Result<ChangeOutcome, TracerError> {
        self.change(name, |tracer| {
            let triggers = tracer.change(change);
            triggers | !tracer.switch_on()
        })
    }

    /// The tracer with this name, without a name the default one.
    ///
    /// # Errors
    /// As [`Tracers::start`].
    pub fn find(&self, name: Option<&str>) -> Result<&Tracer, TracerError> {
        self.place(name).map(|place| &self.tracers[place])
    }

    /// What was gathered about a profile tracer's functions from the one with this number on, by
    /// their numbers in rising order.
    pub(crate) fn profile_of(
        &self,
        tracer: &Tracer,
        from: u32,
    ) -> impl Iterator<Item = CellOfFunction<'_>> {
        self.sites.numbers.profile_cells.of(tracer.number, from)
    }

    /// A profile tracer that is off begins to count at 0.
    pub(crate) fn count_anew(&mut self, name: Option<&str>) {
        let Ok(tracer) = self.place(name).map(|place| &self.tracers[place]) else {
            return;
        };
        if !tracer.is_on() {
            self.sites.numbers.profile_cells.begin_anew(tracer.number);
        }
    }

    /// What profile tracers have counted is gone, in a forked child.
    pub(crate) fn counts_were_emptied(&mut self) {
        self.sites.numbers.profile_cells.were_emptied();
    }

    /// Sets until when a tracer stays on, in ms of the monotonic clock; `None`: until it is
    /// stopped.
    pub(crate) fn hold(&mut self, name: Option<&str>, until_ms: Option<u64>) {
        if let Ok(place) = self.place(name) {
            self.tracers[place].held_until_ms = until_ms;
        }
    }

    /// The name of a tracer that is on after its time.
    pub(crate) fn first_expired(&self, now_ms: u64) -> Option<String> {
        let mut held = self.tracers.iter().filter(|tracer| tracer.on);
        let expired = held.find(|t| t.held_until_ms.is_some_and(|until| until < now_ms));
        expired.map(|tracer| tracer.name.clone())
    }

    /// Stops the tracer with this name, without a name the default one. One that is off stays off.
    ///
    /// # Errors
    /// As [`Tracers::start`].
    pub fn stop(&mut self, name: Option<&str>) -> Result<ChangeOutcome, TracerError> {
        self.change(name, |tracer| {
            tracer.on = false;
            false
        })
    }

    /// Changes a tracer's options, whether it is on or off.
    ///
    /// # Errors
    /// As [`Tracers::start`].
    pub fn set(
        &mut self,
        name: Option<&str>,
        change: impl FnOnce(&mut TracerOptions),
    ) -> Result<ChangeOutcome, TracerError> {
        self.change(name, |tracer| tracer.change(change))
    }

    /// Stops every tracer.
    ///
    /// # Errors
    /// As [`Tracers::start`].
    pub fn stop_all(&mut self) -> Result<ChangeOutcome, TracerError> {
        self.tracers.iter_mut().for_each(|tracer| tracer.on = false);
        let outcome = self.apply(None);
        self.tracers.iter().for_each(Tracer::forget_old_request);
        outcome
    }

    /// Makes the sites of newly loaded modules follow the tracers, and forgets unloaded modules.
    /// Costs one call of the loader where there are neither.
    pub fn follow_modules(&mut self) {
        if self.tracers.iter().all(|tracer| !tracer.on) && self.sites.enabled() == 0 {
            return;
        }
        let is_up_to_date = with_engine(self.threads, |engine| {
            engine.rescan();
            self.sites.are_up_to_date(engine)
        });
        if !is_up_to_date {
            // Without memory new modules are not traced; no request waits for the reason.
            let _ = self.apply(None);
        }
    }

    /// Has the sites follow the tracers, when some can be enabled now that could not before.
    pub(crate) fn follow_sites(&mut self) {
        if self.tracers.iter().any(|tracer| tracer.on) {
            // Without memory they are not traced; no request waits for the reason.
            let _ = self.apply(None);
        }
    }

    /// Number of patch sites that are enabled now, for any tracer.
    pub(crate) fn enabled_sites(&self) -> usize {
        self.sites.enabled()
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

    /// Changes a tracer. `change` returns whether the tracer waits anew for a trigger to start it.
    fn change(
        &mut self,
        name: Option<&str>,
        change: impl FnOnce(&mut Tracer) -> bool,
    ) -> Result<ChangeOutcome, TracerError> {
        let place = self.place(name)?;
        let tracer = &mut self.tracers[place];
        let before = (tracer.options.clone(), tracer.on);
        let anew = change(tracer);
        let (number, waits) = (tracer.number, tracer.waits());
        if let Err(error) = self.check(place) {
            let tracer = &mut self.tracers[place];
            (tracer.options, tracer.on) = before;
            tracer.begin_anew();
            return Err(error);
        }
        if self.tracers[place].selects_calls() {
            let did_so = before.1 && !before.0.calls.is_empty();
            let levels = self.tracers[place].options.calls.levels();
            levels.come_into_force(!did_so);
        }
        if anew && waits {
            pause(number, true);
        }
        let may_have_started = before.1 && may_pause(&before.0.triggers);
        let outcome = self.apply(Some(place));
        // Not before all its triggers are in place; and again, if those that they replace may have
        // started it since.
        if anew && (!waits || may_have_started) {
            pause(number, waits);
        }
        self.tracers[place].forget_old_request();
        outcome
    }

    /// Whether the tracers that are on can do what their options say, the one at this place in particular.
    fn check(&self, place: usize) -> Result<(), TracerError> {
        let options = &self.tracers[place].options;
        let is_timed = options.min_ns.is_some();
        options
            .calls
            .check(options.kind, is_timed, &options.triggers)?;
        let on = || self.tracers.iter().filter(|tracer| tracer.on);
        if on().filter(|tracer| tracer.may_pause()).count() > PAUSING_MAX {
            return Err(TracerError::TooManyPausing);
        }
        let selecting = on().find(|tracer| tracer.selects_calls());
        let other = selecting.and_then(|one| on().find(|tracer| tracer.number != one.number));
        match selecting.zip(other) {
            Some((selecting, other)) => {
                let changed = self.tracers[place].number;
                let beside = if other.number == changed {
                    selecting
                } else {
                    other
                };
                Err(TracerError::SelectsAlone {
                    selecting: selecting.name.clone(),
                    beside: beside.name.clone(),
                })
            }
            None => Ok(()),
        }
    }

    /// Makes every site do what the tracers want of it. `counted` is the place of the tracer whose
    /// functions are counted.
    fn apply(&mut self, counted: Option<usize>) -> Result<ChangeOutcome, TracerError> {
        if !site_tables::prepare() {
            return Err(TracerError::NoMemory);
        }
        let is_any_on = self.tracers.iter().any(|tracer| tracer.on);
        let timing = self.tracers.iter().filter(|tracer| tracer.on);
        least_time::set(timing.filter_map(Tracer::least_ticks).min());
        Ok(with_engine(self.threads, |engine| {
            engine.watch_loader(is_any_on);
            self.sites.apply(engine, &mut self.tracers, counted)
        }))
    }

    /// Estimates what tracing costs, and gives up the most expensive functions of tracers above
    /// their budgets. The thread that answers requests calls this often.
    pub fn keep_budgets(&mut self) {
        let numbers = &mut self.sites.numbers;
        let Some(over) = self.budgets.judge(&mut self.tracers, numbers) else {
            return;
        };
        if !over.is_empty() {
            self.give_up(over);
        }
        self.budgets.begin(&self.sites.numbers);
    }

    /// Gives up functions, the most expensive first. A function that is gone, or was given up
    /// before, is left out.
    fn give_up(&mut self, mut over: Vec<OverBudget>) {
        let sites = self.sites.of_functions();
        over.sort_by_key(|one| (Reverse(one.ppm), one.function, one.tracer));
        for one in over {
            if let Some(site) = sites.get(&one.function) {
                let tracer = &mut self.tracers[one.tracer];
                let name = with_engine(self.threads, |engine| {
                    let (module, site) = engine.site(*site)?;
                    tracer.leave_out(module, site.function);
                    Some(name_of(engine, site.id))
                });
                if let Some(function) = name {
                    tracer.give_up(function, one.ppm);
                }
            }
        }
        // No request waits for the outcome; refused sites stay as they are.
        let _ = self.apply(None);
    }

    /// Forgets what was observed since the last judgement.
    pub(crate) fn begin_watch_anew(&mut self) {
        self.budgets.forget();
    }
}
