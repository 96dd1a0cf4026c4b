//! Which stub does what a plan says.

use crate::record::Stub;
use crate::record::plan::Plan;
use crate::sites::Kind;

/// The shortest way that does what the plan says at such a site; `None`: nothing is to be done.
pub(super) fn stub(plan: &Plan, kind: Kind) -> Option<Stub> {
    let exit = |stub| plan.sleds.then_some(stub);
    match (kind, *plan) {
        (Kind::Exit, _) => exit(Stub::Exit),
        (Kind::BeforeReturn, _) => exit(Stub::BeforeReturn),
        (Kind::TailExit, _) => exit(Stub::TailExit),
        (Kind::Entry, Plan::CALLS) => Some(Stub::Calls),
        (Kind::Entry, Plan::CALLS_WITH_SLEDS) => Some(Stub::CallsWithSleds),
        (Kind::Entry, Plan::CALLERS) => Some(Stub::Callers),
        // It reads the counter itself.
        (Kind::Entry, Plan::PROFILE) if ringmark::client::is_counter() => Some(Stub::Profile),
        (Kind::Entry, _) => Some(Stub::Any),
    }
}

/// The same at a site inside a function.
pub(super) fn inside_stub(plan: &Plan) -> Stub {
    match *plan {
        Plan::CALLS => Stub::CallsInside,
        _ => Stub::AnyInside,
    }
}
