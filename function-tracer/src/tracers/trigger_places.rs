//! Where the triggers of a tracer are, and what they do there.

use std::collections::BTreeMap;

use super::selection::selects;
use super::triggers::{Action, Moment, Trigger};
use crate::record::trigger_actions::Actions;
use crate::sites::{Module, SiteKind};

/// What triggers do at the two moments of a call.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct AtMoments {
    pub(super) entry: Actions,
    pub(super) exit: Actions,
}

/// The sites of a module that triggers are at.
#[derive(Debug, Default)]
pub(super) struct TriggerPlaces {
    /// By the site's index in the module.
    pub(super) actions: BTreeMap<usize, AtMoments>,
    /// Number of functions that each trigger is at.
    pub(super) counts: Vec<usize>,
}

/// Finds the sites of a module that `triggers` of a tracer are at.
pub(super) fn places(triggers: &[Trigger], tracer: u32, module: &Module) -> TriggerPlaces {
    let mut places = TriggerPlaces {
        actions: BTreeMap::new(),
        counts: vec![0; triggers.len()],
    };
    if triggers.is_empty() {
        return places;
    }
    // Exits included, which are enabled while the entry is.
    for (place, site) in module.sites.iter().enumerate() {
        let wanted = triggers.iter().zip(&mut places.counts);
        for (trigger, count) in wanted.filter(|(t, _)| selects(&t.functions, module, site)) {
            *count += usize::from(site.kind == SiteKind::Entry);
            let at: &mut AtMoments = places.actions.entry(place).or_default();
            let actions = match trigger.moment {
                Moment::Entry => &mut at.entry,
                Moment::Exit => &mut at.exit,
            };
            *actions = actions.and(actions_of(trigger, tracer));
        }
    }
    places
}

/// The trigger's action, for its tracer's number.
fn actions_of(trigger: &Trigger, tracer: u32) -> Actions {
    let bit = |action| u64::from(trigger.action == action) << tracer;
    Actions {
        start: bit(Action::Start),
        stop: bit(Action::Stop),
        snapshot: bit(Action::Snapshot),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tracers::selection::Syntax;

    #[test]
    fn an_action_is_the_bit_of_its_tracer() {
        let trigger = Trigger::parse("f:exit=snapshot", Syntax::Glob).unwrap();
        assert_eq!(actions_of(&trigger, 3).snapshot, 8);
        assert_eq!(actions_of(&trigger, 3).start, 0);
    }
}
