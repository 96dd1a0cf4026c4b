//! Which stub does what a plan says.

use ringmark::{Clock, Session};

use crate::record::Stub;
use crate::record::call_plan::CallPlan;
use crate::sites::Kind;

/// The shortest way that does what the plan says at such a site; `None`: nothing is to be done.
pub(super) fn stub(plan: &CallPlan, kind: Kind) -> Option<Stub> {
    let exit = |stub| plan.sleds.then_some(stub);
    match (kind, *plan) {
        (Kind::Exit, _) => exit(Stub::Exit),
        (Kind::BeforeReturn, _) => exit(Stub::BeforeReturn),
        (Kind::TailExit, _) => exit(Stub::TailExit),
        (Kind::Entry, CallPlan::CALLS) => Some(Stub::Calls),
        (Kind::Entry, CallPlan::CALLS_WITH_SLEDS) => Some(Stub::CallsWithSleds),
        (Kind::Entry, CallPlan::CALLERS) => Some(Stub::Callers),
        // It reads the counter itself.
        (Kind::Entry, CallPlan::PROFILE) if is_tsc() => Some(Stub::Profile),
        (Kind::Entry, _) => Some(Stub::Any),
    }
}

/// Whether the session's clock is the processor's time stamp counter.
fn is_tsc() -> bool {
    Session::current().is_some_and(|session| session.clock() == Clock::Tsc)
}

/// The shortest way that does what the plan says at a site inside a function.
pub(super) fn inside_stub(plan: &CallPlan) -> Stub {
    match *plan {
        CallPlan::CALLS => Stub::CallsInside,
        _ => Stub::AnyInside,
    }
}
