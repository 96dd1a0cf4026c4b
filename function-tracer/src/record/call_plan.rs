//! What is done with the calls of each function type. Set before a patch site of the type is
//! enabled, and read by the slow way.

use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{Acquire, Release};

use super::by_type::{ByType, Cells};
use super::levels::Levels;
use super::trigger_actions::Actions;

/// What is done with the calls of a function type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CallPlan {
    /// Whether records are written.
    pub(crate) record: bool,
    /// Whether the return is recorded.
    pub(crate) exit: bool,
    /// Whether sites at all exits show the return; else the return address is replaced.
    pub(crate) sleds: bool,
    /// Whether calls are counted in the thread's profile table.
    pub(crate) profile: bool,
    /// Whether the record of the entry holds the caller and the CPU.
    pub(crate) with_caller: bool,
    /// Number of integer arguments recorded after the caller, 0 to 6.
    pub(crate) arguments: u8,
    /// Whether the return value is recorded.
    pub(crate) result: bool,
    /// Ticks that a call must take to be recorded; such a call has one record, at its end.
    pub(crate) min_ticks: Option<u64>,
    /// Levels of the calls that are wanted; `None`: all.
    pub(crate) levels: Option<Levels>,
    /// Whether calls are opened although their ends are not recorded, because they are levels.
    pub(crate) opens: bool,
    /// Whether only calls are recorded that led to one of a function whose callers are wanted.
    pub(crate) leading: bool,
    /// Whether the function is one whose callers are wanted.
    pub(crate) is_led_to: bool,
    /// Callback tracers whose functions are called at each entry; bits are tracers' numbers.
    pub(crate) callbacks: u64,
    /// Tracers that may pause, see `trigger_actions`; bits are tracers' numbers.
    pub(crate) may_pause: u64,
    /// What triggers do at an entry.
    pub(crate) on_entry: Actions,
    /// What triggers do at the end of a call.
    pub(crate) on_exit: Actions,
}

impl CallPlan {
    /// Nothing but entry and exit, which one stub records alone.
    pub(crate) const CALLS: Self = Self {
        record: true,
        exit: true,
        sleds: false,
        profile: false,
        with_caller: false,
        arguments: 0,
        result: false,
        min_ticks: None,
        levels: None,
        opens: false,
        leading: false,
        is_led_to: false,
        callbacks: 0,
        may_pause: 0,
        on_entry: Actions::NONE,
        on_exit: Actions::NONE,
    };

    /// No record; triggers may be added.
    pub(crate) const NOTHING: Self = Self {
        record: false,
        exit: false,
        ..Self::CALLS
    };

    /// Entry and exit, where all exits are sites.
    pub(crate) const CALLS_WITH_SLEDS: Self = Self {
        sleds: true,
        ..Self::CALLS
    };

    /// Entry with its caller, no exit, which another stub records alone.
    pub(crate) const CALLERS: Self = Self {
        exit: false,
        with_caller: true,
        ..Self::CALLS
    };

    /// Calls are counted, and nothing else.
    pub(crate) const PROFILE: Self = Self {
        record: false,
        profile: true,
        ..Self::CALLS
    };

    /// The part of the plan that is possible at a site inside a function, where registers no longer
    /// hold the arguments.
    pub(crate) fn inside(self) -> Self {
        Self {
            arguments: 0,
            ..self
        }
    }

    /// The part of the plan that is possible in a function whose return address must stay and whose
    /// exits are no sites.
    pub(crate) fn without_end(self) -> Self {
        Self {
            exit: false,
            opens: false,
            result: false,
            on_exit: Actions::NONE,
            ..self
        }
    }

    /// Whether the end of a call is to be seen.
    pub(crate) fn wants_end(&self) -> bool {
        self.exit || self.opens || self.on_exit != Actions::NONE
    }

    /// Whether all that is done with a call is a record at its end, if it took long or led to a function whose callers
    /// are wanted.
    pub(crate) fn is_only_timed(&self) -> bool {
        let only = Self {
            with_caller: self.with_caller,
            arguments: self.arguments,
            result: self.result,
            min_ticks: self.min_ticks,
            leading: self.leading,
            opens: self.opens,
            ..Self::CALLS
        };
        self.min_ticks.is_some() && *self == only
    }

    /// What is done with a call whose level is selected.
    pub(crate) fn of_selected(self) -> Self {
        Self {
            levels: None,
            ..self
        }
    }

    /// Whether a call of this level is wanted. The level is asked for where it matters.
    pub(super) fn selects(&self, level: impl FnOnce() -> u32) -> bool {
        self.levels.is_none_or(|levels| levels.have(level()))
    }

    /// Whether a stub can tell that a call is not wanted by its level alone.
    pub(crate) fn is_selected_by_stub(&self) -> bool {
        self.levels.is_some_and(Levels::are_common) && self.on_entry == Actions::NONE
    }

    /// Whether the end of a call is one record without payload, and nothing else.
    pub(crate) fn has_plain_end(&self) -> bool {
        let is_plain = !self.result && self.min_ticks.is_none() && self.on_exit == Actions::NONE;
        is_plain && self.record && self.exit && !self.profile
    }

    /// Whether each call has a record at its entry.
    pub(crate) fn writes_entries(&self) -> bool {
        self.record && self.min_ticks.is_none()
    }

    /// What both plans want. Calls below a duration are left out only if both leave them out.
    pub(crate) fn and(self, other: Self) -> Self {
        let recording = |plan: Self| plan.record.then_some(plan.min_ticks);
        let min_ticks = match (recording(self), recording(other)) {
            (Some(a), Some(b)) => a.zip(b).map(|(a, b)| a.min(b)),
            (a, b) => a.or(b).flatten(),
        };
        Self {
            record: self.record || other.record,
            exit: self.exit || other.exit,
            sleds: self.sleds || other.sleds,
            profile: self.profile || other.profile,
            with_caller: self.with_caller || other.with_caller,
            arguments: self.arguments.max(other.arguments),
            result: self.result || other.result,
            min_ticks,
            // A tracer with levels is the only one that is on.
            levels: self.levels.or(other.levels),
            opens: self.opens || other.opens,
            leading: self.leading || other.leading,
            is_led_to: self.is_led_to || other.is_led_to,
            callbacks: self.callbacks | other.callbacks,
            may_pause: self.may_pause | other.may_pause,
            on_entry: self.on_entry.and(other.on_entry),
            on_exit: self.on_exit.and(other.on_exit),
        }
    }
}

/// Each plan, by its index.
static PLANS: ByType<CallPlan> = ByType::new();
/// By the number of a function type: the index of its plan plus 1, or 0. Hundreds of thousands of types
/// have few plans.
static PLANS_OF_TYPES: Cells<AtomicU32> = Cells::new();

/// The plan of the function type with this number. A site is enabled after its type's plan was set;
/// without a plan, entry and exit are recorded.
pub(crate) fn of(number: u32) -> CallPlan {
    let plan = PLANS_OF_TYPES
        .get(number)
        .map_or(0, |cell| cell.load(Acquire));
    let plan = plan.checked_sub(1).and_then(|plan| PLANS.get(plan));
    plan.copied().unwrap_or(CallPlan::CALLS)
}

/// Adds the plan with this index, once. Called by the control path only, by one thread at a time.
pub(crate) fn add(index: u32, plan: &'static CallPlan) {
    PLANS.set(index, plan);
}

/// Sets which plan a type has, by the index of one that was added. Called as [`add`] is.
pub(crate) fn set(number: u32, index: u32) {
    if let Some(cell) = PLANS_OF_TYPES.make(number) {
        cell.store(index + 1, Release);
    }
}

#[cfg(test)]
mod tests {
    use ringmark_format::function::LAST_NUMBER;

    use super::*;

    #[test]
    fn two_tracers_get_what_both_want() {
        let long = CallPlan {
            min_ticks: Some(100),
            ..CallPlan::CALLS
        };
        let longer = CallPlan {
            min_ticks: Some(200),
            ..CallPlan::CALLS
        };
        assert_eq!(long.and(longer), long);
        assert_eq!(long.and(CallPlan::CALLS), CallPlan::CALLS);
        let both = CallPlan::CALLS.and(CallPlan::CALLERS);
        assert!(both.exit && both.with_caller && both.record);
        let callback = CallPlan {
            callbacks: 2,
            ..CallPlan::NOTHING
        };
        assert_eq!(long.and(callback).min_ticks, Some(100));
        let other = CallPlan {
            callbacks: 8,
            ..callback
        };
        assert_eq!(callback.and(other).callbacks, 10, "both are called");
    }

    #[test]
    fn types_have_their_own_plans() {
        static CALLERS: CallPlan = CallPlan::CALLERS;
        assert_eq!(of(5), CallPlan::CALLS);
        add(3, &CALLERS);
        set(5, 3);
        set(LAST_NUMBER, 3);
        assert_eq!(of(5), CallPlan::CALLERS);
        assert_eq!(of(LAST_NUMBER), CallPlan::CALLERS);
        assert_eq!(of(6), CallPlan::CALLS);
    }
}
