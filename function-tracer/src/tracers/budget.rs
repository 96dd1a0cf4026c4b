//! What tracing may cost: a tracer with a budget gives up its hottest functions when their calls
//! take more of the program's CPU time.
//!
//! The calls of each function are counted without a word more on their way: writers know how many
//! records they have written, some of the newest pages show of which types, profiles count their
//! calls anyway, and the slow way counts other calls that leave no record. What a call costs is
//! measured, into a ring that nobody reads.

use std::collections::BTreeMap;

use ringmark::client::{self, RingCounts};
use ringmark_format::function::{EXIT_BIT, LAST_NUMBER};
use ringmark_format::record::FUNCTION_BIT;

use super::profile_cells::ProfileCells;
use super::schema::Numbers;
use super::stubs::stub;
use super::{Tracer, Tracers, name_of};
use crate::engine::with_engine;
use crate::record::call_plan::{self, CallPlan};
use crate::record::trigger_actions::Actions;
use crate::record::{MEASURED_SITE, call_measured, site_tables, unwritten};
use crate::sites::{Kind, SiteId};

/// A look is taken this often, a judgement passed when the program has run this long; or after a
/// second, if it has run at all.
const LOOK_EVERY_NS: u64 = 100_000_000;
const JUDGED_NS_MIN: u64 = 20_000_000;
const JUDGED_AFTER_NS: u64 = 1_000_000_000;
const RUN_NS_MIN: u64 = 500_000;
/// Pages of a ring that are looked into.
const PAGES_MAX: u32 = 8;
/// Calls that are measured together, and how often; the median counts.
const MEASURED_CALLS: u32 = 1000;
const MEASURED_ROUNDS: usize = 9;

/// A function that was switched off because it cost too much.
#[derive(Debug, Clone, PartialEq)]
pub struct GivenUp {
    /// Its name.
    pub function: String,
    /// What it cost, in millionths of the program's CPU time.
    pub ppm: u64,
}

/// What is known since the last judgement.
#[derive(Debug, Default)]
pub(super) struct Watch {
    looked_ns: u64,
    begun_ns: u64,
    run_ns: u64,
    /// CPU time of everything but this thread, when we last looked.
    cpu_ns: u64,
    rings: Vec<RingCounts>,
    /// Calls without a record by type, when we last looked.
    unwritten: Vec<u32>,
    /// Calls by type since the last judgement.
    calls: BTreeMap<u32, f64>,
    /// What profiles had counted then, by numbers of tracer and function.
    begun: BTreeMap<(u32, u32), u64>,
}

/// What calls cost, by plan, in ns.
#[derive(Debug, Default)]
pub(super) struct Costs(Vec<(CallPlan, f64)>);

impl Costs {
    fn of(&mut self, plan: &CallPlan, cells: &mut ProfileCells) -> f64 {
        if let Some((_, ns)) = self.0.iter().find(|(known, _)| known == plan) {
            return *ns;
        }
        if plan.profile {
            cells.describe_measured(LAST_NUMBER);
        }
        let ns = measure(plan);
        self.0.push((*plan, ns));
        ns
    }
}

/// What a call with this plan costs, in ns. Callbacks are left out: they are the user's; and what
/// triggers do. The function that is called has no sites at its exits.
fn measure(plan: &CallPlan) -> f64 {
    let measured: &'static CallPlan = Box::leak(Box::new(CallPlan {
        sleds: false,
        callbacks: 0,
        may_pause: 0,
        on_entry: Actions::NONE,
        on_exit: Actions::NONE,
        ..*plan
    }));
    let Some(stub) = stub(measured, Kind::Entry) else {
        return 0.0;
    };
    call_plan::set(LAST_NUMBER, measured);
    site_tables::set_type(MEASURED_SITE, FUNCTION_BIT | LAST_NUMBER);
    let round = |_| {
        let begun = client::monotonic_ns();
        call_measured(stub, MEASURED_CALLS);
        client::monotonic_ns().saturating_sub(begun)
    };
    let rounds = client::without_trace(|| {
        call_measured(stub, MEASURED_CALLS); // The first call takes its time.
        let mut rounds = [0; MEASURED_ROUNDS].map(round);
        rounds.sort_unstable();
        rounds
    });
    let median = rounds.map_or(0, |rounds| rounds[MEASURED_ROUNDS / 2]);
    median as f64 / f64::from(MEASURED_CALLS)
}

impl Watch {
    fn new(numbers: &Numbers) -> Self {
        let now = client::monotonic_ns();
        Self {
            begun: numbers.profile_cells.begun().collect(),
            looked_ns: now,
            begun_ns: now,
            cpu_ns: others_cpu_ns(),
            rings: client::ring_counts(),
            unwritten: (0..numbers.types()).map(unwritten::get).collect(),
            ..Self::default()
        }
    }

    /// Adds what happened since the last look.
    fn look(&mut self, types: u32) {
        let cpu = others_cpu_ns();
        self.run_ns += cpu.saturating_sub(self.cpu_ns);
        self.cpu_ns = cpu;
        let rings = client::ring_counts();
        for (index, now) in rings.iter().enumerate() {
            let before = self.rings.get(index).copied().unwrap_or_default();
            self.add_records(index as u32, before, *now);
        }
        self.rings = rings;
        self.unwritten.resize(types as usize, 0);
        for number in 0..types {
            let now = unwritten::get(number);
            let before = std::mem::replace(&mut self.unwritten[number as usize], now);
            if now != before {
                self.add(number, f64::from(now.wrapping_sub(before)));
            }
        }
    }

    /// The records that a ring got, shared out as the pages that are looked into say.
    fn add_records(&mut self, ring: u32, before: RingCounts, now: RingCounts) {
        let written = now.records.saturating_sub(before.records);
        if written == 0 {
            return;
        }
        let (mut seen, mut entries) = (0_u64, BTreeMap::<u32, u64>::new());
        client::sample_types(ring, before.turned..now.turned, PAGES_MAX, &mut |type_id| {
            seen += 1;
            if type_id & FUNCTION_BIT != 0 && type_id & EXIT_BIT == 0 {
                *entries.entry(type_id & LAST_NUMBER).or_default() += 1;
            }
        });
        for (number, count) in entries {
            self.add(number, count as f64 * written as f64 / seen as f64);
        }
    }

    fn add(&mut self, number: u32, calls: f64) {
        *self.calls.entry(number).or_default() += calls;
    }

    /// Whether enough has happened for a judgement.
    fn is_ripe(&self, now_ns: u64) -> bool {
        let waited = now_ns.saturating_sub(self.begun_ns) >= JUDGED_AFTER_NS;
        self.run_ns >= JUDGED_NS_MIN || waited && self.run_ns >= RUN_NS_MIN
    }
}

/// CPU time of all threads but this one, which is ours.
fn others_cpu_ns() -> u64 {
    let (process, own) = client::cpu_ns();
    process.saturating_sub(own)
}

impl Tracers {
    /// Looks what tracing costs, and switches off the hottest functions of tracers that are over
    /// their budgets. To be called often, by the thread that answers requests.
    pub fn keep_budgets(&mut self) {
        let is_wanted = |t: &Tracer| t.on && t.options.budget_ppm.is_some();
        if !self.tracers.iter().any(is_wanted) {
            self.watch = None;
            return;
        }
        let now_ns = client::monotonic_ns();
        match &mut self.watch {
            None if unwritten::prepare() => self.watch = Some(Watch::new(&self.numbers)),
            Some(watch) if now_ns.saturating_sub(watch.looked_ns) >= LOOK_EVERY_NS => {
                watch.looked_ns = now_ns;
                watch.look(self.numbers.types());
                if watch.is_ripe(now_ns) {
                    self.judge();
                    self.watch = Some(Watch::new(&self.numbers));
                }
            }
            _ => {}
        }
    }

    /// Forgets what was seen since the last judgement.
    pub(crate) fn begin_watch_anew(&mut self) {
        self.watch = None;
    }

    fn judge(&mut self) {
        let Some(watch) = self.watch.take() else {
            return;
        };
        let mut given_up = BTreeMap::new();
        for place in 0..self.tracers.len() {
            let tracer = &self.tracers[place];
            let Some(budget) = tracer.options.budget_ppm.filter(|_| tracer.on) else {
                continue;
            };
            let costs = costs_of(tracer.number, &watch, &mut self.numbers, &mut self.costs);
            let costs = costs.into_iter().collect();
            let (hottest, left) = over_budget(costs, watch.run_ns as f64, budget);
            self.tracers[place].cost_ppm = Some(left);
            let hottest = hottest.into_iter();
            given_up.extend(hottest.map(|(function, ppm)| ((function, place), ppm)));
        }
        if !given_up.is_empty() {
            self.give_up(&given_up);
        }
    }

    /// One site of each function that is being traced, by the function's number.
    fn sites_of_functions(&self) -> BTreeMap<u32, SiteId> {
        let uses = self.uses.iter();
        uses.filter_map(|(site, now)| Some((self.numbers.wanted(now.number)?.1, *site)))
            .collect()
    }

    /// Gives up functions, by their numbers and their tracers' places. One that is not there any
    /// more, or was given up meanwhile, costs nothing.
    fn give_up(&mut self, functions: &BTreeMap<(u32, usize), u64>) {
        let sites = self.sites_of_functions();
        // The most expensive first.
        let mut functions: Vec<_> = functions.iter().collect();
        functions.sort_by_key(|(_, ppm)| std::cmp::Reverse(**ppm));
        for ((number, place), ppm) in functions {
            let Some(site) = sites.get(number) else {
                continue;
            };
            let tracer = &mut self.tracers[*place];
            let name = with_engine(self.threads, |engine| {
                let (module, site) = engine.site(*site)?;
                tracer.leave_out(module, site.function);
                Some(name_of(engine, site.id))
            });
            if let Some(function) = name {
                tell(tracer, &function, *ppm);
                let ppm = *ppm;
                tracer.given_up.push(GivenUp { function, ppm });
            }
        }
        // Nobody waits for an answer; what is refused stays as it is.
        let _ = self.apply(None);
    }
}

/// What the calls of each function that a tracer wants have cost, in ns. By function: its calls have
/// other types while a tracer pauses.
fn costs_of(
    tracer: u32,
    watch: &Watch,
    numbers: &mut Numbers,
    each: &mut Costs,
) -> BTreeMap<u32, f64> {
    let mut costs = BTreeMap::<u32, f64>::new();
    for (number, calls) in &watch.calls {
        let wanted = numbers.wanted(*number);
        let wanted = wanted.filter(|w| w.0 & 1 << tracer != 0 && *w.2 != CallPlan::PROFILE);
        if let Some((_, function, plan)) = wanted {
            *costs.entry(function).or_default() +=
                calls * each.of(plan, &mut numbers.profile_cells);
        }
    }
    // Functions that are counted and nothing else.
    let begun: Vec<_> = numbers.profile_cells.begun().collect();
    for (key @ (_, function), now) in begun.into_iter().filter(|(key, _)| key.0 == tracer) {
        let calls = now.saturating_sub(watch.begun.get(&key).copied().unwrap_or(0));
        if calls > 0 && !costs.contains_key(&function) {
            let ns = each.of(&CallPlan::PROFILE, &mut numbers.profile_cells);
            costs.insert(function, calls as f64 * ns);
        }
    }
    costs
}

/// Leaves an event in the session.
fn tell(tracer: &Tracer, function: &str, cost_ppm: u64) {
    ringmark::event!(
        level: Warn,
        "function_switched_off",
        function = function,
        tracer = tracer.name.as_str(),
        cost_ppm = cost_ppm,
        budget_ppm = tracer.options.budget_ppm.unwrap_or(0)
    );
}

/// Which functions must go, the most expensive first, with their shares in ppm, and the share that
/// is left, when they cost so many of `run_ns`.
fn over_budget(
    mut costs: Vec<(u32, f64)>,
    mut run_ns: f64,
    budget_ppm: u64,
) -> (Vec<(u32, u64)>, u64) {
    costs.sort_by(|a, b| b.1.total_cmp(&a.1));
    let mut left: f64 = costs.iter().map(|(_, ns)| ns).sum();
    let whole = run_ns;
    let ppm = |ns: f64, of: f64| (ns / of.max(1.0) * 1e6) as u64;
    let mut gone = Vec::new();
    for (function, ns) in costs {
        if ppm(left, run_ns) <= budget_ppm {
            break;
        }
        // Without it the program takes that much less.
        left = (left - ns).max(0.0);
        run_ns -= ns;
        gone.push((function, ppm(ns, whole)));
    }
    (gone, ppm(left, run_ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_expensive_go_until_the_rest_is_cheap() {
        let costs = || vec![(1, 100.0), (2, 3000.0), (3, 400.0)];
        assert_eq!(over_budget(costs(), 1e6, 4000), (vec![], 3500));
        let (gone, left) = over_budget(costs(), 1e6, 3499);
        assert_eq!(gone, [(2, 3000)]);
        assert_eq!(left, 501);
        let (gone, left) = over_budget(costs(), 1e6, 200);
        assert_eq!(gone, [(2, 3000), (3, 400)]);
        assert_eq!(left, 100);
        assert_eq!(over_budget(costs(), 0.0, 1).0.len(), 3);
    }
}
