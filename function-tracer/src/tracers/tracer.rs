//! One function tracer: its name, its options, and the patch sites that it selects.

use std::collections::BTreeMap;

use ringmark::Session;
use ringmark_format::function::TracerKind;

use super::call_selection::{CallSelection, Part};
use super::selection::{Selection, selects};
use super::trigger_places::{self, AtMoments, TriggerPlaces};
use super::triggers::{self, Trigger};
use crate::record::call_plan::CallPlan;
use crate::record::callbacks;
use crate::record::trigger_actions::{is_paused, take_snapshot, wants_snapshot};
use crate::sites::{Module, ModuleId, Site, SiteKind};

/// The options of a function tracer.
#[derive(Debug, Clone)]
pub struct TracerOptions {
    /// What the tracer does with calls.
    pub kind: TracerKind,
    /// The functions that it selects.
    pub selection: Selection,
    /// Which of their calls it selects.
    pub calls: CallSelection,
    /// Number of integer arguments that are recorded, 0 to 6.
    pub arguments: u8,
    /// Whether the return value is recorded.
    pub result: bool,
    /// Duration of recorded calls in ns at least; `None`: all calls are recorded.
    pub min_ns: Option<u64>,
    /// What starts and stops the tracer, and requests snapshots, while it is on.
    pub triggers: Vec<Trigger>,
    /// What the tracer may cost, in millionths of the program's CPU time. When its calls cost more,
    /// its most expensive functions are given up until it is started or changed again.
    pub budget_ppm: Option<u64>,
}

impl TracerOptions {
    /// The options of a kind, with no functions selected.
    #[must_use]
    pub fn new(kind: TracerKind) -> Self {
        Self {
            kind,
            selection: Selection::default(),
            calls: CallSelection::default(),
            arguments: 0,
            result: false,
            min_ns: None,
            triggers: Vec::new(),
            budget_ppm: None,
        }
    }
}

/// A function that a tracer gave up because of its budget.
#[derive(Debug, Clone, PartialEq)]
pub struct GivenUp {
    /// The function's name.
    pub function: String,
    /// What its calls cost, in millionths of the program's CPU time.
    pub ppm: u64,
}

/// A registered function tracer.
#[derive(Debug)]
pub struct Tracer {
    pub(super) name: String,
    pub(super) number: u32,
    pub(super) options: TracerOptions,
    pub(super) on: bool,
    pub(super) is_default: bool,
    /// Until when it stays on, in ms of the monotonic clock; `None`: until it is stopped.
    pub(super) held_until_ms: Option<u64>,
    /// The selected sites of each module that was looked at.
    pub(super) matches: BTreeMap<ModuleId, Matches>,
    pub(super) given_up: Vec<GivenUp>,
    pub(super) cost_ppm: Option<u64>,
}

/// The sites of a module that a tracer selects, by their index in it.
#[derive(Debug, Default)]
pub(super) struct Matches {
    sites: Vec<bool>,
    /// Those whose functions are named in the selection of calls.
    parts: BTreeMap<usize, Part>,
    count: usize,
    triggers: TriggerPlaces,
}

impl Tracer {
    /// A tracer that is off.
    pub(super) fn new(name: &str, number: u32, options: TracerOptions, is_default: bool) -> Self {
        Self {
            name: name.to_owned(),
            number,
            options,
            on: false,
            is_default,
            held_until_ms: None,
            matches: BTreeMap::new(),
            given_up: Vec::new(),
            cost_ppm: None,
        }
    }

    /// The tracer's name, unique in the process.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The tracer's number, which is a bit in function types; never used again.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.number
    }

    /// The tracer's options.
    #[must_use]
    pub fn options(&self) -> &TracerOptions {
        &self.options
    }

    /// Whether the tracer is on.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.on
    }

    /// Whether requests without a name mean this tracer.
    #[must_use]
    pub fn is_default(&self) -> bool {
        self.is_default
    }

    /// Whether the tracer is on under a lease, which ends unless it is renewed.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.held_until_ms.is_some()
    }

    /// Number of functions that the tracer selects, on or off.
    #[must_use]
    pub fn matched(&self) -> usize {
        self.matches.values().map(|matches| matches.count).sum()
    }

    /// Whether the tracer is on but pauses until one of its triggers starts it.
    #[must_use]
    pub fn is_paused(&self) -> bool {
        self.on && self.may_pause() && is_paused(self.number)
    }

    /// Number of functions that the n-th trigger is at, whether the tracer is on or off.
    #[must_use]
    pub fn triggered(&self, n: usize) -> usize {
        let of_modules = self.matches.values();
        of_modules
            .filter_map(|matches| matches.triggers.counts.get(n))
            .sum()
    }

    /// Number of functions whose insides, and whose callers, the selection of calls names.
    #[must_use]
    pub fn named(&self) -> (usize, usize) {
        let of_modules = || {
            self.matches
                .values()
                .flat_map(|matches| matches.parts.values())
        };
        let count = |is: fn(&Part) -> bool| {
            of_modules()
                .filter(|part| part.is_entry && is(part))
                .count()
        };
        (count(|part| part.inside), count(|part| part.callers))
    }

    /// Whether a trigger requested a snapshot that was not taken yet.
    #[must_use]
    pub fn wants_snapshot(&self) -> bool {
        wants_snapshot(self.number)
    }

    /// Whether the tracer has a callback.
    #[must_use]
    pub fn has_callback(&self) -> bool {
        callbacks::is_set(self.number)
    }

    /// Switches it on; returns whether it was on. A snapshot is requested from now on.
    pub(super) fn switch_on(&mut self) -> bool {
        if !self.on {
            let _ = take_snapshot(self.number);
        }
        std::mem::replace(&mut self.on, true)
    }

    /// Forgets a requested snapshot, if nothing of the tracer can request one any more.
    pub(super) fn forget_old_request(&self) {
        if !self.on || !triggers::may_request(&self.options.triggers) {
            let _ = take_snapshot(self.number);
        }
    }

    /// Changes the options. Returns whether the triggers changed.
    pub(super) fn change(&mut self, change: impl FnOnce(&mut TracerOptions)) -> bool {
        let before = self.options.triggers.clone();
        self.begin_anew();
        change(&mut self.options);
        !triggers::are_same(&before, &self.options.triggers)
    }

    /// Whether the tracer, once it is on, waits for a trigger to start it.
    pub(super) fn waits(&self) -> bool {
        triggers::waits(&self.options.triggers)
    }

    /// Whether triggers start or stop the tracer.
    pub(super) fn may_pause(&self) -> bool {
        triggers::may_pause(&self.options.triggers)
    }

    /// What the tracer's triggers do at a site.
    pub(super) fn triggers_at(&self, module: ModuleId, place: usize) -> Option<AtMoments> {
        let matches = self.matches.get(&module).filter(|_| self.on)?;
        matches.triggers.actions.get(&place).copied()
    }

    /// Functions given up for the budget since the tracer was started or changed.
    #[must_use]
    pub fn given_up(&self) -> &[GivenUp] {
        &self.given_up
    }

    /// What the tracer's calls cost lately, in millionths of the program's CPU time; `None`: the
    /// tracer has no budget or was not judged yet.
    #[must_use]
    pub fn cost_ppm(&self) -> Option<u64> {
        self.cost_ppm.filter(|_| self.on)
    }

    /// Forgets which sites are selected and which functions were given up.
    pub(super) fn begin_anew(&mut self) {
        self.matches.clear();
        self.given_up.clear();
        self.cost_ppm = None;
    }

    /// Leaves out the sites of one function.
    pub(super) fn leave_out(&mut self, module: &Module, function: u32) {
        let Some(matches) = self.matches.get_mut(&module.id) else {
            return;
        };
        for (wanted, site) in matches.sites.iter_mut().zip(&module.sites) {
            *wanted &= site.function != function;
        }
    }

    /// Notes a function that was given up, also as an event of the session.
    pub(super) fn give_up(&mut self, function: String, ppm: u64) {
        ringmark::event!(
            level: Warn,
            "function_switched_off",
            function = function.as_str(),
            tracer = self.name.as_str(),
            cost_ppm = ppm,
            budget_ppm = self.options.budget_ppm.unwrap_or(0)
        );
        self.given_up.push(GivenUp { function, ppm });
    }

    /// Whether the tracer is on and selects calls by those around them or inside them.
    pub(super) fn selects_calls(&self) -> bool {
        self.on && !self.options.calls.is_empty()
    }

    /// Ticks that a call must take to be recorded.
    pub(super) fn least_ticks(&self) -> Option<u64> {
        let session = Session::current()?;
        self.options.min_ns.map(|ns| session.ticks_of_ns(ns))
    }

    /// What it wants done with the calls of a function that it wants.
    pub(super) fn plan(&self, module: ModuleId, place: usize) -> CallPlan {
        let matches = self.matches.get(&module);
        let part = matches.and_then(|matches| matches.parts.get(&place));
        let part = part.copied().unwrap_or_default();
        self.options.calls.plan(plan_of(self), part)
    }

    pub(super) fn wants(&self, module: ModuleId, place: usize) -> bool {
        let matches = self.matches.get(&module).filter(|_| self.on);
        matches.is_some_and(|m| m.sites.get(place) == Some(&true))
    }

    /// Finds the sites of a module that the selection and the triggers mean, unless that was done.
    pub(super) fn look_at(&mut self, module: &Module) {
        if self.matches.contains_key(&module.id) {
            return;
        }
        let selection = &self.options.selection;
        let parts = self.parts(module);
        let wants = |(place, site): (usize, &Site)| {
            ringmark::__private::helper::working();
            selects(selection, module, site) || parts.contains_key(&place)
        };
        let sites: Vec<_> = match selection.is_empty() {
            true => vec![false; module.sites.len()],
            false => module.sites.iter().enumerate().map(wants).collect(),
        };
        let entries = module.sites.iter().map(|site| site.kind == SiteKind::Entry);
        let count = sites.iter().zip(entries).filter(|(w, e)| **w && *e).count();
        let triggers = trigger_places::places(&self.options.triggers, self.number, module);
        let matches = Matches {
            sites,
            parts,
            count,
            triggers,
        };
        self.matches.insert(module.id, matches);
    }

    /// The sites of a module whose functions are named in the selection of calls.
    fn parts(&self, module: &Module) -> BTreeMap<usize, Part> {
        let calls = &self.options.calls;
        if calls.inside.is_empty() && calls.callers.is_empty() {
            return BTreeMap::new();
        }
        let part = |site: &Site| Part {
            is_entry: site.kind == SiteKind::Entry,
            inside: selects(&calls.inside, module, site),
            callers: selects(&calls.callers, module, site),
        };
        let each = module.sites.iter().map(part).enumerate();
        each.filter(|(_, part)| part.inside || part.callers)
            .collect()
    }
}

/// What a tracer wants done with calls that it selects.
fn plan_of(tracer: &Tracer) -> CallPlan {
    let (options, bit) = (&tracer.options, 1 << tracer.number);
    let is_callback = options.kind == TracerKind::Callback;
    CallPlan {
        record: !matches!(options.kind, TracerKind::Callback | TracerKind::Profile),
        profile: options.kind == TracerKind::Profile,
        exit: matches!(options.kind, TracerKind::Graph | TracerKind::Profile)
            || options.result
            || options.min_ns.is_some(),
        sleds: false,
        with_caller: options.kind == TracerKind::Function || options.arguments > 0,
        arguments: options.arguments.min(6),
        result: options.result,
        min_ticks: tracer.least_ticks(),
        callbacks: if is_callback { bit } else { 0 },
        may_pause: if tracer.may_pause() { bit } else { 0 },
        ..CallPlan::NOTHING
    }
}
