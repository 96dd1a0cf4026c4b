//! Which calls of its functions a tracer selects: by the calls around them, and by those inside them.

use ringmark_format::function::TracerKind;

use super::error::TracerError;
use super::selection::Selection;
use super::triggers::{Trigger, acts_at_exit};
use crate::record::call_plan::CallPlan;
use crate::record::has_shadow_stack;
use crate::record::levels::Levels;

/// Which calls a tracer selects. Only the tracer's own calls count, from when the selection came into force.
#[derive(Debug, Clone, Default)]
pub struct CallSelection {
    /// How many calls deep they are at most, the outermost one included; `None`: any number.
    pub max_depth: Option<u32>,
    /// Functions whose calls are selected with all that they call; empty: of all.
    pub inside: Selection,
    /// Functions whose calls are selected with those that led to them; empty: all calls.
    pub callers: Selection,
}

impl CallSelection {
    /// Whether all calls are selected.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.max_depth.is_none() && self.inside.is_empty() && self.callers.is_empty()
    }

    /// The levels of selected calls, but of functions whose insides are selected.
    pub(super) fn levels(&self) -> Levels {
        Levels {
            least: u32::from(!self.inside.is_empty()),
            end: self.max_depth.unwrap_or(u32::MAX),
        }
    }

    /// What is done with calls of one function, where `plan` is what is done with those that are selected.
    pub(super) fn plan(&self, plan: CallPlan, of: Part) -> CallPlan {
        if self.is_empty() {
            return plan;
        }
        let levels = self.levels();
        let least = if of.inside { 0 } else { levels.least };
        let leading = !self.callers.is_empty();
        CallPlan {
            levels: Some(Levels { least, ..levels }),
            opens: !plan.exit && !leading,
            leading,
            is_led_to: of.callers,
            exit: plan.exit || leading,
            // What a call led to is known at its end.
            min_ticks: plan.min_ticks.or(leading.then_some(0)),
            ..plan
        }
    }

    /// Whether a tracer of this kind can select these calls. `is_timed`: and those of them that take long; `triggers`: it
    /// has these, too.
    ///
    /// # Errors
    /// Why not.
    pub(super) fn check(
        &self,
        kind: TracerKind,
        is_timed: bool,
        triggers: &[Trigger],
    ) -> Result<(), TracerError> {
        let waits_for_end = is_timed || !self.callers.is_empty();
        if waits_for_end && matches!(kind, TracerKind::Profile | TracerKind::Callback) {
            return Err(TracerError::ActsAtEntry { kind: kind.name() });
        }
        if !self.inside.is_empty() && acts_at_exit(triggers) {
            return Err(TracerError::ExitOutside);
        }
        if !self.is_empty() && has_shadow_stack() {
            return Err(TracerError::NoLevels);
        }
        Ok(())
    }
}

/// A patch site whose function is named in the parts of a [`CallSelection`].
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Part {
    /// Whether it is the function's entry, and none of its exits.
    pub(super) is_entry: bool,
    pub(super) inside: bool,
    pub(super) callers: bool,
}
