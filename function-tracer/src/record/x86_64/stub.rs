//! Which code a trampoline jumps to.

use super::call_stubs::{
    ringmark_enter, ringmark_enter_any, ringmark_enter_called, ringmark_enter_inside,
    ringmark_enter_sleds, ringmark_leave_called, ringmark_leave_sled, ringmark_leave_tail,
};
use super::inside_stub::ringmark_enter_any_inside;
use super::profile_stubs::ringmark_enter_profile;
use super::select_stubs::{
    ringmark_select_any, ringmark_select_any_inside, ringmark_select_calls, ringmark_select_inside,
    ringmark_select_leading, ringmark_select_profile, ringmark_select_sleds, ringmark_select_timed,
};
use super::timed_stubs::{ringmark_enter_leading, ringmark_enter_timed};
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
    /// The end is recorded, if the call took long enough.
    Timed,
    /// The end is recorded, if the call led to a function whose callers are wanted.
    Leading,
    /// All that the plan says, by the slow way.
    Any,
    /// As `Calls`, at a site inside a function.
    CallsInside,
    /// As `Any`, at a site inside a function.
    AnyInside,
    /// As `Calls`, if the call's level is selected.
    SelectedCalls,
    /// As `CallsWithSleds`, if the call's level is selected.
    SelectedCallsWithSleds,
    /// As `Profile`, if the call's level is selected.
    SelectedProfile,
    /// As `Timed`, if the call's level is selected.
    SelectedTimed,
    /// As `Leading`, if the call's level is selected.
    SelectedLeading,
    /// As `Any`, if the call's level is selected.
    SelectedAny,
    /// As `CallsInside`, if the call's level is selected.
    SelectedCallsInside,
    /// As `AnyInside`, if the call's level is selected.
    SelectedAnyInside,
    /// At a site in the place of a return.
    Exit,
    /// At a site in front of a return.
    BeforeReturn,
    /// At a site in front of a jump out of the function.
    TailExit,
}

impl Stub {
    /// The stub that looks at a call's level first.
    pub(crate) fn selecting(self) -> Self {
        match self {
            Self::Calls => Self::SelectedCalls,
            Self::CallsWithSleds => Self::SelectedCallsWithSleds,
            Self::Profile => Self::SelectedProfile,
            Self::Timed => Self::SelectedTimed,
            Self::Leading => Self::SelectedLeading,
            Self::Any => Self::SelectedAny,
            Self::CallsInside => Self::SelectedCallsInside,
            Self::AnyInside => Self::SelectedAnyInside,
            other => other,
        }
    }

    /// The stub that leaves it to the slow way whether a call is selected.
    pub(crate) fn deciding(self) -> Self {
        match self {
            Self::CallsInside => Self::AnyInside,
            Self::Calls | Self::CallsWithSleds | Self::Profile | Self::Timed | Self::Leading => {
                Self::Any
            }
            other => other,
        }
    }

    /// The target of trampolines that jump to this stub. From this call on they may.
    pub(crate) fn target(self) -> Target {
        vectors::prepare();
        let stub: unsafe extern "C" fn() = match self {
            Self::Calls => ringmark_enter,
            Self::CallsWithSleds => ringmark_enter_sleds,
            Self::Callers => ringmark_enter_called,
            Self::Profile => ringmark_enter_profile,
            Self::Timed => ringmark_enter_timed,
            Self::Leading => ringmark_enter_leading,
            Self::Any => ringmark_enter_any,
            Self::CallsInside => ringmark_enter_inside,
            Self::AnyInside => ringmark_enter_any_inside,
            Self::SelectedCalls => ringmark_select_calls,
            Self::SelectedCallsWithSleds => ringmark_select_sleds,
            Self::SelectedProfile => ringmark_select_profile,
            Self::SelectedTimed => ringmark_select_timed,
            Self::SelectedLeading => ringmark_select_leading,
            Self::SelectedAny => ringmark_select_any,
            Self::SelectedCallsInside => ringmark_select_inside,
            Self::SelectedAnyInside => ringmark_select_any_inside,
            Self::Exit => ringmark_leave_sled,
            Self::BeforeReturn => ringmark_leave_called,
            Self::TailExit => ringmark_leave_tail,
        };
        // SAFETY: record invariant 9.
        unsafe { Target::new(stub as usize as u64) }
    }
}
