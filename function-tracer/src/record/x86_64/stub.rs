//! Which code a trampoline jumps to.

use super::call_stubs::{
    ringmark_enter, ringmark_enter_any, ringmark_enter_called, ringmark_enter_inside,
    ringmark_enter_sleds, ringmark_leave_called, ringmark_leave_sled, ringmark_leave_tail,
};
use super::inside_stub::ringmark_enter_any_inside;
use super::profile_stubs::ringmark_enter_profile;
use super::vectors;
use crate::patch::Target;

/// A stub, which a trampoline jumps to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stub {
    /// Entry and exit are recorded: the return address is replaced.
    Calls,
    /// Entry and exit are recorded: the exits are sites, too.
    CallsWithSleds,
    /// The entry is recorded with its caller.
    Callers,
    /// Calls are counted for one profile tracer.
    Profile,
    /// All that the plan says, by the slow way.
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
    /// The target of trampolines that jump to this stub. From this call on they may.
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
        // SAFETY: record invariant 9.
        unsafe { Target::new(stub as usize as u64) }
    }
}
