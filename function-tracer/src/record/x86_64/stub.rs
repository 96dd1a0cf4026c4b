//! Which code a pad jumps to.

use super::call_stubs::{
    ringmark_enter, ringmark_enter_any, ringmark_enter_called, ringmark_enter_inside,
    ringmark_enter_sleds, ringmark_leave_called, ringmark_leave_sled, ringmark_leave_tail,
};
use super::inside_stub::ringmark_enter_any_inside;
use super::profile_stubs::ringmark_enter_profile;
use super::vectors;
use crate::patch::Target;

/// What a pad may jump to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stub {
    /// Entry and exit are recorded: the return address is replaced.
    Calls,
    /// Entry and exit are recorded: the exits are sites, too.
    CallsWithSleds,
    /// The entry is recorded with its caller.
    Callers,
    /// Its calls are counted for one tracer.
    Profile,
    /// Whatever the plan says.
    Any,
    /// As `Calls`, at a site inside a function.
    CallsInside,
    /// As `Any`, at a site inside a function.
    AnyInside,
    /// At a site in the place of a return.
    Exit,
    /// At a site in front of a return.
    BeforeReturn,
    /// At a site in front of a jump out of the function.
    TailExit,
}

impl Stub {
    /// What pads that lead to it jump to. From then on it may be jumped to.
    pub(crate) fn target(self) -> Target {
        vectors::prepare();
        let stub: unsafe extern "C" fn() = match self {
            Self::Calls => ringmark_enter,
            Self::CallsWithSleds => ringmark_enter_sleds,
            Self::Callers => ringmark_enter_called,
            Self::Profile => ringmark_enter_profile,
            Self::Any => ringmark_enter_any,
            Self::CallsInside => ringmark_enter_inside,
            Self::AnyInside => ringmark_enter_any_inside,
            Self::Exit => ringmark_leave_sled,
            Self::BeforeReturn => ringmark_leave_called,
            Self::TailExit => ringmark_leave_tail,
        };
        // SAFETY: the stubs keep to the rules and are part of this library.
        unsafe { Target::new(stub as usize as u64) }
    }
}
