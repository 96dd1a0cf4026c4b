//! What was done to a module: the state of its sites, and their pads. What was found in it is a
//! [`Module`], which nothing changes.

use std::mem;

use super::trampolines::Room;
use crate::arch::{Bytes, Form, State};
use crate::sites::loader::Held;
use crate::sites::{Module, Site, SiteId};

/// What a site is now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SiteState {
    /// The form that it was found in, or the one that it settled in when it was opened.
    pub(crate) form: Form,
    pub(crate) state: State,
    /// Distance of its call, once it was opened.
    pub(crate) distance: i32,
}

impl SiteState {
    fn found(site: &Site) -> Self {
        Self {
            form: site.form,
            state: State::Rest,
            distance: 0,
        }
    }

    /// The bytes that were left there.
    pub(crate) fn bytes(&self) -> Bytes {
        self.form.bytes(self.state, self.distance)
    }
}

/// A module, and what was done to its sites.
#[derive(Debug)]
pub(crate) struct Patched {
    pub(crate) module: Module,
    /// Its pads, once one of its sites was opened.
    pub(super) room: Option<Room>,
    /// By the site's index in the module.
    pub(super) states: Vec<SiteState>,
}

impl Patched {
    /// The module with all its sites at rest.
    pub(crate) fn new(module: Module) -> Self {
        let states = module.sites.iter().map(SiteState::found).collect();
        Self {
            module,
            room: None,
            states,
        }
    }

    /// Whether the site with this number is open.
    pub(crate) fn is_open(&self, id: SiteId) -> bool {
        let state = self.module.index_of(id).and_then(|at| self.states.get(at));
        state.is_some_and(|now| now.state == State::Open)
    }

    /// Notes what was done to the site with this index.
    pub(super) fn set(&mut self, index: usize, now: SiteState) {
        if let Some(state) = self.states.get_mut(index) {
            *state = now;
        }
    }

    /// Whether memory still holds what was written there. A module that was unloaded and loaded
    /// again at the same place is as its file made it, in every site; a debugger's breakpoint is in
    /// one.
    pub(crate) fn is_as_left(&self, held: &Held<'_>) -> bool {
        let is_there = |(site, now): (&Site, &SiteState)| {
            held.is(&self.module.segments, site.address, &now.bytes())
        };
        let sites = || self.module.sites.iter().zip(&self.states);
        let mut open = sites()
            .filter(|(_, now)| now.state == State::Open)
            .peekable();
        if open.peek().is_some() {
            return open.any(is_there);
        }
        let mut written = sites().filter(|(_, now)| now.distance != 0);
        written.all(is_there)
    }

    /// Leaves the pads mapped for ever: sites may call them after all.
    pub(crate) fn leave_pads(&mut self) {
        mem::forget(self.room.take());
    }

    /// What was found, once the module is not loaded any more. The pads are unmapped.
    pub(crate) fn into_module(self) -> Module {
        self.module
    }
}
