//! What was done to a module: the state of its patch sites, and their trampolines. What was found
//! in it is a [`Module`], which nothing changes.

use std::mem;

use super::trampolines::{MovedTrampolines, Trampolines};
use crate::arch::{Bytes, Form, SiteState};
use crate::sites::loader::Held;
use crate::sites::{Module, Site, SiteId};

/// What a patch site is now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PatchedSite {
    pub(crate) state: SiteState,
    /// Whether it was first enabled while no thread could be between two of its bytes.
    pub(crate) is_one_nop: bool,
    /// Distance of the site's call in bytes; 0 before it was first enabled.
    pub(crate) distance: i32,
}

impl PatchedSite {
    const FOUND: Self = Self {
        state: SiteState::Disabled,
        is_one_nop: false,
        distance: 0,
    };

    /// The same site, enabled or disabled.
    pub(super) fn switched(self, on: bool) -> Self {
        let state = match on {
            true => SiteState::Enabled,
            false => SiteState::Disabled,
        };
        Self { state, ..self }
    }

    /// The form of this site: that which it was found in, or the one that it settled in when it was
    /// first enabled.
    pub(crate) fn form(self, site: &Site) -> Form {
        let found = match self.is_one_nop {
            true => site.form.without_boundaries(),
            false => site.form,
        };
        match self.distance {
            0 => found,
            distance => found.settled(distance),
        }
    }

    /// The bytes that this library left at the site.
    fn bytes(self, site: &Site) -> Bytes {
        self.form(site).bytes(self.state, self.distance)
    }
}

/// A module and what was done to its patch sites.
#[derive(Debug)]
pub(crate) struct PatchedModule {
    pub(crate) module: Module,
    /// The module's trampolines, from the first enabled site on.
    pub(super) trampolines: Option<Trampolines>,
    /// By the site's index in the module.
    pub(super) states: Vec<PatchedSite>,
}

impl PatchedModule {
    /// The module with all its sites disabled.
    pub(crate) fn new(module: Module) -> Self {
        let states = vec![PatchedSite::FOUND; module.sites.len()];
        Self {
            module,
            trampolines: None,
            states,
        }
    }

    /// Whether the site with this number is enabled.
    pub(crate) fn is_enabled(&self, id: SiteId) -> bool {
        let state = self.module.index_of(id).and_then(|at| self.states.get(at));
        state.is_some_and(|now| now.state == SiteState::Enabled)
    }

    /// Notes what was done to the site with this index.
    pub(super) fn set(&mut self, index: usize, now: PatchedSite) {
        if let Some(state) = self.states.get_mut(index) {
            *state = now;
        }
    }

    /// Whether memory still holds what was written there. A module that was unloaded and loaded
    /// again at the same place differs in every site, because all are as its file has them. A
    /// debugger's breakpoint changes one site only.
    pub(crate) fn is_as_left(&self, held: &Held<'_>) -> bool {
        let is_there = |(site, now): (&Site, &PatchedSite)| {
            held.is(&self.module.segments, site.address, &now.bytes(site))
        };
        let sites = || self.module.sites.iter().zip(&self.states);
        let mut enabled = sites()
            .filter(|(_, now)| now.state == SiteState::Enabled)
            .peekable();
        if enabled.peek().is_some() {
            return enabled.any(is_there);
        }
        let mut written = sites().filter(|(_, now)| now.distance != 0);
        written.all(is_there)
    }

    /// Whether jumps over several instructions may lead into the trampolines: they stay.
    pub(crate) fn has_put_once(&self) -> bool {
        let mut sites = self.module.sites.iter();
        self.trampolines.is_some() && sites.any(|site| site.form.is_put_once())
    }

    /// The module's trampolines, if it has some.
    pub(crate) fn trampolines(&self) -> Option<MovedTrampolines> {
        let first = self.trampolines.as_ref()?;
        Some(MovedTrampolines {
            at: first.start(),
            count: self.module.sites.len(),
        })
    }

    /// Whether `module`, at the same place, has other bytes where a site is enabled here: then nothing
    /// calls the trampolines any more.
    pub(crate) fn is_gone_from(&self, module: &Module) -> bool {
        let sites = self.module.sites.iter().zip(&self.states);
        let mut enabled = sites.filter(|(_, now)| now.state == SiteState::Enabled);
        enabled.all(|(site, now)| {
            let found = module.site_at(site.address);
            let as_found = |found: &Site| PatchedSite::FOUND.bytes(found);
            found.is_some_and(|found| *as_found(found) != *now.bytes(site))
        })
    }

    /// Leaves the trampolines mapped for ever, for sites that may still call them.
    pub(crate) fn leave_trampolines(&mut self) {
        mem::forget(self.trampolines.take());
    }

    /// The facts of a module that is no longer loaded. Its trampolines are unmapped.
    pub(crate) fn into_module(self) -> Module {
        self.module
    }
}
