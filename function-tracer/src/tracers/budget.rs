//! What tracing may cost: a function tracer with a budget gives up its most expensive functions
//! when their calls take more of the program's CPU time.
//!
//! The calls of each function are counted without more work on their way. Writers know how many
//! records they have written, and some of the newest pages show of which types. Profiles count
//! their calls anyway, and the slow way counts other calls that leave no record. What a call costs
//! is in `call_costs`.
//!
//! A look is taken every 100 ms. Once the program has run for 20 ms of CPU time, or a second has
//! passed in which it ran at all, each tracer with a budget is judged: the costs of its functions
//! are compared with the CPU time of the program. The most expensive functions are given up first,
//! until the rest is within the budget. They stay so until the tracer is started or changed again.

use std::collections::BTreeMap;

use ringmark::Session;
use ringmark::client::{self, RingCounts};
use ringmark_format::function::{EXIT_BIT, LAST_NUMBER};
use ringmark_format::record::FUNCTION_BIT;

use super::call_costs::Costs;
use super::profile_cells::CellKey;
use super::schema::{FunctionType, Numbers};
use super::tracer::Tracer;
use crate::record::call_plan::CallPlan;
use crate::record::unwritten;

/// A look is taken this often, a judgement passed when the program has run this long; or after a
/// second, if it has run at all.
const LOOK_EVERY_NS: u64 = 100_000_000;
const JUDGED_NS_MIN: u64 = 20_000_000;
const JUDGED_AFTER_NS: u64 = 1_000_000_000;
const RUN_NS_MIN: u64 = 500_000;
/// Pages of a ring that are looked into.
const PAGES_MAX: u32 = 8;

/// What was observed since the last judgement.
#[derive(Debug, Default)]
struct Watch {
    looked_ns: u64,
    begun_ns: u64,
    run_ns: u64,
    /// CPU time of all other threads, at the last look.
    cpu_ns: u64,
    rings: Vec<RingCounts>,
    /// Calls without a record by type, at the last look.
    unwritten: Vec<u32>,
    /// Calls by type since the last judgement.
    calls: BTreeMap<u32, f64>,
    /// What profiles had counted at the last judgement.
    begun: BTreeMap<CellKey, u64>,
}

impl Watch {
    fn new(numbers: &Numbers) -> Self {
        let now = client::monotonic_ns();
        Self {
            begun: numbers.profile_cells.begun().collect(),
            looked_ns: now,
            begun_ns: now,
            cpu_ns: others_cpu_ns(),
            rings: ring_counts(),
            unwritten: (0..numbers.types()).map(unwritten::get).collect(),
            ..Self::default()
        }
    }

    /// Adds what happened since the last look.
    fn look(&mut self, types: u32) {
        let cpu = others_cpu_ns();
        self.run_ns += cpu.saturating_sub(self.cpu_ns);
        self.cpu_ns = cpu;
        let rings = ring_counts();
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

    /// Adds the new records of a ring, in the proportions of types in the sampled pages.
    fn add_records(&mut self, ring: u32, before: RingCounts, now: RingCounts) {
        let written = now.records.saturating_sub(before.records);
        if written == 0 {
            return;
        }
        let (mut seen, mut entries) = (0_u64, BTreeMap::<u32, u64>::new());
        let switches = before.page_switches..now.page_switches;
        if let Some(session) = Session::current() {
            session.sample_types(ring, switches, PAGES_MAX, &mut |type_id| {
                seen += 1;
                if type_id & FUNCTION_BIT != 0 && type_id & EXIT_BIT == 0 {
                    *entries.entry(type_id & LAST_NUMBER).or_default() += 1;
                }
            });
        }
        for (number, count) in entries {
            self.add(number, count as f64 * written as f64 / seen as f64);
        }
    }

    fn add(&mut self, number: u32, calls: f64) {
        *self.calls.entry(number).or_default() += calls;
    }

    /// Whether the program has run long enough for a judgement.
    fn is_ripe(&self, now_ns: u64) -> bool {
        let waited = now_ns.saturating_sub(self.begun_ns) >= JUDGED_AFTER_NS;
        self.run_ns >= JUDGED_NS_MIN || waited && self.run_ns >= RUN_NS_MIN
    }
}

/// How much was written into each ring of the session.
fn ring_counts() -> Vec<RingCounts> {
    Session::current().map_or_else(Vec::new, |session| session.ring_counts())
}

/// CPU time in ns of all threads but this one, which is the library's.
fn others_cpu_ns() -> u64 {
    let used = client::CpuTime::now();
    used.process_ns.saturating_sub(used.thread_ns)
}

/// A function that a tracer must give up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct OverBudget {
    /// Number of the function.
    pub(super) function: u32,
    /// Index of the tracer.
    pub(super) tracer: usize,
    /// What its calls cost, in millionths of the program's CPU time.
    pub(super) ppm: u64,
}

/// What tracing costs, where a tracer has a budget.
#[derive(Debug, Default)]
pub(super) struct Budgets {
    watch: Option<Watch>,
    costs: Costs,
}

impl Budgets {
    /// Observes what tracing costs. Returns the functions to give up when enough was observed; then
    /// [`Budgets::begin`] must follow.
    pub(super) fn judge(
        &mut self,
        tracers: &mut [Tracer],
        numbers: &mut Numbers,
    ) -> Option<Vec<OverBudget>> {
        let is_wanted = |t: &Tracer| t.on && t.options.budget_ppm.is_some();
        if !tracers.iter().any(is_wanted) {
            self.watch = None;
            return None;
        }
        let now_ns = client::monotonic_ns();
        match &mut self.watch {
            None => {
                if unwritten::prepare() {
                    self.begin(numbers);
                }
                None
            }
            Some(watch) if now_ns.saturating_sub(watch.looked_ns) >= LOOK_EVERY_NS => {
                watch.looked_ns = now_ns;
                watch.look(numbers.types());
                let ripe = self.watch.take_if(|watch| watch.is_ripe(now_ns))?;
                Some(self.over_budget(&ripe, tracers, numbers))
            }
            Some(_) => None,
        }
    }

    /// Begins to observe for the next judgement.
    pub(super) fn begin(&mut self, numbers: &Numbers) {
        self.watch = Some(Watch::new(numbers));
    }

    /// Forgets what was observed since the last judgement.
    pub(super) fn forget(&mut self) {
        self.watch = None;
    }

    /// The functions that tracers must give up.
    fn over_budget(
        &mut self,
        watch: &Watch,
        tracers: &mut [Tracer],
        numbers: &mut Numbers,
    ) -> Vec<OverBudget> {
        let mut all = Vec::new();
        for (place, tracer) in tracers.iter_mut().enumerate() {
            let Some(budget) = tracer.options.budget_ppm.filter(|_| tracer.on) else {
                continue;
            };
            let costs = costs_of(tracer.number, watch, numbers, &mut self.costs);
            let costs = costs.into_iter().collect();
            let (hottest, left) = over_budget(costs, watch.run_ns as f64, budget);
            tracer.cost_ppm = Some(left);
            all.extend(hottest.into_iter().map(|(function, ppm)| OverBudget {
                function,
                tracer: place,
                ppm,
            }));
        }
        all
    }
}

/// What the calls of each function that a tracer wants have cost, in ns. By function: its calls
/// have other types while a tracer pauses.
fn costs_of(
    tracer: u32,
    watch: &Watch,
    numbers: &mut Numbers,
    each: &mut Costs,
) -> BTreeMap<u32, f64> {
    let mut costs = BTreeMap::<u32, f64>::new();
    for (number, calls) in &watch.calls {
        let wanted = numbers.wanted(*number);
        let is_recorded = |w: &FunctionType| {
            w.tracers & 1 << tracer != 0 && w.plan.of_selected() != CallPlan::PROFILE
        };
        if let Some(wanted) = wanted.filter(is_recorded) {
            let ns = each.of(wanted.plan, &mut numbers.profile_cells);
            *costs.entry(wanted.function).or_default() += calls * ns;
        }
    }
    // Functions whose calls are only counted.
    let begun: Vec<_> = numbers.profile_cells.begun().collect();
    for (key, now) in begun.into_iter().filter(|(key, _)| key.tracer == tracer) {
        let calls = now.saturating_sub(watch.begun.get(&key).copied().unwrap_or(0));
        if calls > 0 && !costs.contains_key(&key.function) {
            let ns = each.of(&CallPlan::PROFILE, &mut numbers.profile_cells);
            costs.insert(key.function, calls as f64 * ns);
        }
    }
    costs
}

/// Which functions must go, the most expensive first, with their shares in ppm, and the share that
/// is left, when they cost `costs` out of `run_ns`.
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
        // Without these calls the program takes that much less time.
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
