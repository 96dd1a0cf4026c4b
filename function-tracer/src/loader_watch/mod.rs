//! Sees to it that a module's patch sites are enabled before its code runs.
//!
//! When the loader has mapped modules, it calls an empty function, where debuggers stop
//! (`sites::rendezvous`). Constructors and relocations come after that. The return of that function is
//! a patch site; enabled, it leads to [`stub`], and that asks the helper thread for a turn and waits
//! for it ([`turns`]). The helper thread looks at the new modules as it does ten times a second
//! anyway. The loader's thread holds none of our locks, and waits for a limited time.

mod stub;
pub(crate) mod turns;

use crate::fork_locks;
use crate::patch::batch::{self, BatchEnd};
use crate::patch::code_objects::CodeObjects;
use crate::patch::patched::PatchedModule;
use crate::patch::prepare::{Goal, prepare};
use crate::patch::{Refusal, Threads};
use crate::sites::loader;
use crate::sites::rendezvous::{self, NoRendezvous};

/// Why modules are found by looking from time to time only.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum Unwatched {
    /// There is no place to be told at.
    #[error(transparent)]
    NoPlace(#[from] NoRendezvous),
    /// The place could not be changed.
    #[error("the loader's function for debuggers: {0}")]
    Refused(Refusal),
}

/// The patch site in the loader.
#[derive(Debug, Default)]
pub(crate) struct LoaderWatch {
    /// `None`: it was not looked for.
    place: Option<Result<PatchedModule, Unwatched>>,
    is_on: bool,
    /// Why it could not be switched when that was last tried.
    refused: Option<Unwatched>,
}

/// Attempts: another begins when the loader's list changed during one.
const TRIES_MAX: usize = 100;

/// Forgets an unmapping whose end is not seen in a forked child.
pub(crate) fn forget_unmapping() {
    stub::forget_unmapping();
}

impl LoaderWatch {
    /// Enables or disables the site.
    pub(crate) fn switch(&mut self, on: bool, threads: Threads, objects: &CodeObjects) {
        if self.place.is_none() && !on {
            return;
        }
        if on && matches!(self.place, Some(Err(_))) {
            // What was in the way may be gone: a debugger, or a list that changed just then.
            self.place = None;
        }
        let find = || {
            let found = rendezvous::find()?;
            stub::set_state_at(found.state_at);
            Ok(PatchedModule::new(found.loader))
        };
        if let Ok(place) = self.place.get_or_insert_with(find) {
            if on && !self.is_on {
                stub::forget_unmapping();
            }
            self.is_on = on;
            self.refused = switch(place, on, threads, objects).map(Unwatched::Refused);
        }
    }

    /// Why the loader does not tell; `None`: it does, or was not asked to.
    pub(crate) fn unwatched(&self) -> Option<&Unwatched> {
        match &self.place {
            Some(Err(why)) => Some(why),
            _ => self.refused.as_ref(),
        }
    }
}

/// Switches the one site of `place`, and returns why it was not switched.
fn switch(
    place: &mut PatchedModule,
    on: bool,
    threads: Threads,
    objects: &CodeObjects,
) -> Option<Refusal> {
    let target = on.then(|| stub::target().address());
    let goal = Goal { index: 0, target };
    for _ in 0..TRIES_MAX {
        let no_fork = fork_locks::change();
        let prepared = prepare(place, &[goal], threads, objects);
        drop(no_fork);
        let refused = match batch::run(place, &prepared.changes, loader::counts()) {
            BatchEnd::Done(refused) => refused,
            BatchEnd::Stale => continue,
        };
        let mut refused = prepared.refused.into_iter().chain(refused);
        return refused.next().map(|one| one.refusal);
    }
    Some(Refusal::Restless)
}
