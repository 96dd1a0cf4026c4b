//! What all function tracers together want of each function of a module, and which stub does it.

use ringmark::{Clock, Session};

use super::schema::Numbers;
use super::tracer::Tracer;
use crate::record::Stub;
use crate::record::call_plan::CallPlan;
use crate::record::trigger_actions::{Actions, set_types};
use crate::sites::{Function, Module, ModuleId, Site, SiteKind};

/// What an enabled patch site does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SiteUse {
    /// Number of the function type of its calls.
    pub(super) number: u32,
    pub(super) stub: Stub,
}

/// What all tracers together want of a function.
#[derive(Debug, Default, Clone, Copy)]
struct Wants {
    /// Bits are tracers' numbers.
    tracers: u64,
    plan: Option<CallPlan>,
}

impl Wants {
    fn add(&mut self, plan: CallPlan) {
        self.plan = Some(self.plan.map_or(plan, |before| before.and(plan)));
    }
}

/// What each site of a module is to do for the tracers; `None`: nothing.
pub(super) fn uses(
    tracers: &[Tracer],
    module: &Module,
    numbers: &mut Numbers,
) -> Vec<Option<SiteUse>> {
    if tracers.iter().any(|tracer| tracer.on) {
        numbers.reserve(module);
    }
    let each = module.sites.iter().enumerate();
    let uses: Vec<_> = each
        .map(|(place, site)| {
            ringmark::__private::helper::working();
            let wants = wants(tracers, module.id, place);
            let plan = at(module, site, wants.plan?);
            let stub = match site.form.return_place() {
                Some(_) => stub_inside(&plan.of_selected()),
                None => stub_for(&plan.of_selected(), site.kind)?,
            };
            let stub = match plan.is_selected_by_stub() {
                true => stub.selecting(),
                false if plan.levels.is_some() => stub.deciding(),
                false => stub,
            };
            let number = number(module, numbers, place, wants)?;
            Some(SiteUse { number, stub })
        })
        .collect();
    if tracers.iter().any(|tracer| tracer.on && tracer.may_pause()) {
        describe_pauses(tracers, module, numbers, &uses);
    }
    uses
}

/// The shortest stub that does what `plan` says at a site of this kind; `None`: nothing is to be
/// done.
pub(super) fn stub_for(plan: &CallPlan, kind: SiteKind) -> Option<Stub> {
    let exit = |stub| plan.sleds.then_some(stub);
    match (kind, *plan) {
        (SiteKind::Exit, _) => exit(Stub::Exit),
        (SiteKind::BeforeReturn, _) => exit(Stub::BeforeReturn),
        (SiteKind::TailExit, _) => exit(Stub::TailExit),
        (SiteKind::Entry, CallPlan::CALLS) => Some(Stub::Calls),
        (SiteKind::Entry, CallPlan::CALLS_WITH_SLEDS) => Some(Stub::CallsWithSleds),
        (SiteKind::Entry, CallPlan::CALLERS) => Some(Stub::Callers),
        // These stubs read the TSC themselves.
        (SiteKind::Entry, CallPlan::PROFILE) if is_tsc() => Some(Stub::Profile),
        (SiteKind::Entry, plan) if plan.is_only_timed() && is_tsc() => Some(match plan.leading {
            true => Stub::Leading,
            false => Stub::Timed,
        }),
        (SiteKind::Entry, _) => Some(Stub::Any),
    }
}

/// Whether the session's clock is the processor's time stamp counter.
fn is_tsc() -> bool {
    Session::current().is_some_and(|session| session.clock() == Clock::Tsc)
}

/// The shortest stub that does what `plan` says at a site inside a function.
fn stub_inside(plan: &CallPlan) -> Stub {
    match *plan {
        CallPlan::CALLS => Stub::CallsInside,
        _ => Stub::AnyInside,
    }
}

/// The number of the function type for what is wanted at a site.
fn number(module: &Module, numbers: &mut Numbers, place: usize, wants: Wants) -> Option<u32> {
    let site = module.sites.get(place)?;
    let plan = at(module, site, wants.plan?);
    numbers.function_type(module, site, wants.tracers, plan)
}

/// The part of a plan that is possible at this site.
fn at(module: &Module, site: &Site, plan: CallPlan) -> CallPlan {
    let sleds = plan.wants_end() && module.function(site).is_some_and(|f| f.has_exits);
    let plan = match module.function(site).is_some_and(Function::has_no_end) {
        true => plan.without_end(),
        false => CallPlan { sleds, ..plan },
    };
    match site.form.return_place() {
        Some(_) => plan.inside(),
        None => plan,
    }
}

/// Gives function types to calls for each set of tracers that may pause. It handles one set after
/// the other, because successive types take little room in the schema.
fn describe_pauses(
    tracers: &[Tracer],
    module: &Module,
    numbers: &mut Numbers,
    uses: &[Option<SiteUse>],
) {
    let places = 0..module.sites.len();
    let wants: Vec<_> = places.map(|n| wants(tracers, module.id, n)).collect();
    let may_pause = |wants: &Wants| wants.plan.map_or(0, |plan| plan.may_pause);
    let all = wants.iter().fold(0, |all, wants| all | may_pause(wants));
    let mut types: Vec<Vec<Option<u32>>> = uses
        .iter()
        .map(|used| vec![used.map(|used| used.number)])
        .collect();
    let mut pause = 0;
    while pause != all {
        pause = next_subset(pause, all);
        for (place, wants) in wants.iter().enumerate() {
            // The order of a function's own sets is the same.
            if may_pause(wants) & pause == pause {
                let rest = without(tracers, module.id, place, pause);
                types[place].push(number(module, numbers, place, rest));
            }
        }
    }
    for ((types, used), wants) in types.into_iter().zip(uses).zip(wants) {
        if let Some(used) = used.filter(|_| may_pause(&wants) != 0) {
            set_types(used.number, types);
        }
    }
}

/// The next larger number whose bits are all in `all`.
const fn next_subset(subset: u64, all: u64) -> u64 {
    (subset | !all).wrapping_add(1) & all
}

/// What the tracers want of one function together.
fn wants(tracers: &[Tracer], module: ModuleId, place: usize) -> Wants {
    let mut all = wanted(tracers, module, place, 0);
    let triggers = tracers.iter().filter_map(|t| t.triggers_at(module, place));
    for at in triggers {
        all.add(CallPlan {
            on_entry: at.entry,
            on_exit: at.exit,
            ..CallPlan::NOTHING
        });
    }
    all
}

/// What the tracers want of one function while those of `pause` pause. The triggers of the entry
/// have run before.
fn without(tracers: &[Tracer], module: ModuleId, place: usize, pause: u64) -> Wants {
    let mut rest = wanted(tracers, module, place, pause);
    let triggers = tracers.iter().filter_map(|t| t.triggers_at(module, place));
    for at in triggers.filter(|at| at.exit != Actions::NONE) {
        rest.add(CallPlan {
            on_exit: at.exit,
            ..CallPlan::NOTHING
        });
    }
    if let Some(plan) = &mut rest.plan {
        plan.may_pause = 0;
    }
    rest
}

/// What the tracers but those of `pause` want of one function, without triggers.
fn wanted(tracers: &[Tracer], module: ModuleId, place: usize, pause: u64) -> Wants {
    let mut all = Wants::default();
    let others = tracers.iter().filter(|t| pause >> t.number & 1 == 0);
    for tracer in others.filter(|t| t.wants(module, place)) {
        all.tracers |= 1 << tracer.number;
        all.add(tracer.plan(module, place));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_set_of_tracers_in_order() {
        let (mut set, mut sets) = (0, Vec::new());
        while set != 0b1_0011 {
            set = next_subset(set, 0b1_0011);
            sets.push(set);
        }
        assert_eq!(sets, [1, 2, 3, 16, 17, 18, 19]);
    }
}
