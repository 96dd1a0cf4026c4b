//! Measures what a call costs, with records into a ring without a reader.

use ringmark::client;
use ringmark_format::function::LAST_NUMBER;
use ringmark_format::record::FUNCTION_BIT;

use super::profile_cells::ProfileCells;
use super::wants::stub_for;
use crate::record::call_plan::{self, CallPlan};
use crate::record::open_calls::OwnWork;
use crate::record::trigger_actions::Actions;
use crate::record::{MEASURED_SITE, call_measured, site_tables};
use crate::sites::SiteKind;

/// Calls of one measurement, and the number of measurements, whose median counts.
const MEASURED_CALLS: u32 = 1000;
const MEASURED_ROUNDS: usize = 9;

/// The cost of a call in ns, by plan; each plan is measured once.
#[derive(Debug, Default)]
pub(super) struct Costs(Vec<(CallPlan, f64)>);

impl Costs {
    /// The cost of a call with this plan, in ns.
    pub(super) fn of(&mut self, plan: &CallPlan, cells: &mut ProfileCells) -> f64 {
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

/// Measures what a call with this plan costs, in ns, without callbacks, which are the user's code,
/// and without triggers. The measured function has no sites at its exits.
fn measure(plan: &CallPlan) -> f64 {
    let measured: &'static CallPlan = Box::leak(Box::new(CallPlan {
        sleds: false,
        callbacks: 0,
        may_pause: 0,
        levels: None,
        is_led_to: false,
        on_entry: Actions::NONE,
        on_exit: Actions::NONE,
        ..*plan
    }));
    let Some(stub) = stub_for(measured, SiteKind::Entry) else {
        return 0.0;
    };
    call_plan::add(LAST_NUMBER, measured);
    call_plan::set(LAST_NUMBER, LAST_NUMBER);
    site_tables::set_type(MEASURED_SITE, FUNCTION_BIT | LAST_NUMBER);
    let round = |_| {
        let begun = client::monotonic_ns();
        call_measured(stub, MEASURED_CALLS);
        client::monotonic_ns().saturating_sub(begun)
    };
    let measured = || {
        ringmark::__private::without_trace(|| {
            call_measured(stub, MEASURED_CALLS); // The first call is slower.
            let mut rounds = [0; MEASURED_ROUNDS].map(round);
            rounds.sort_unstable();
            rounds
        })
    };
    let rounds = OwnWork::suspended(measured);
    let median = rounds.map_or(0, |rounds| rounds[MEASURED_ROUNDS / 2]);
    median as f64 / f64::from(MEASURED_CALLS)
}
