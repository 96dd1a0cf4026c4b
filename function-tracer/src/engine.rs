//! The engine: which modules there are, and what their sites are to call. A process has one: two
//! would undo each other's work.

use std::collections::BTreeMap;

use crate::fork_locks::{self, Operated};
use crate::patch::batch::{self, BatchEnd, SITES_MAX};
use crate::patch::patched::Patched;
use crate::patch::prepare::{Goal, Prepared, prepare};
use crate::patch::{Refusal, Target, Threads, threads};
use crate::sites::loader::{self, Counts, Loaded};
use crate::sites::{Module, ModuleId, Site, SiteId, maps, scan};

/// What [`Engine::switch`] did.
#[derive(Debug, Default)]
pub struct Report {
    /// Number of sites that call what they shall.
    pub done: usize,
    /// Sites that are not, and why.
    pub refused: Vec<(SiteId, Refusal)>,
}

/// What [`Engine::rescan`] found.
#[derive(Debug, Default)]
pub struct Changes {
    /// Modules with sites, or with something to say, that are new.
    pub added: Vec<ModuleId>,
    /// Modules that are not loaded any more.
    pub removed: Vec<Module>,
}

/// All sites of this process.
#[derive(Debug)]
pub struct Engine {
    modules: Vec<Patched>,
    counts: Option<Counts>,
    threads: Threads,
    next_module: u32,
    next_site: u32,
    /// Rescans that a module's table may still be found unrelocated in.
    patience: u32,
}

static ENGINE: Operated<Engine> = Operated::new();

/// Runs `work` with this process's engine, which the first call makes: with `threads` as it says,
/// see [`Engine::new`]. Waits for other callers. `work` must not call this again.
///
/// A forked child has its parent's engine as it was between two changes.
pub fn with_engine<R>(threads: Threads, work: impl FnOnce(&mut Engine) -> R) -> R {
    ENGINE.with(|| Engine::new(threads), work)
}

/// Rescans after which a table that points nowhere is believed to be so.
const PATIENCE: u32 = 16;
/// Attempts of one switch: the next begins when the loader changed its list during one.
const TRIES_MAX: usize = 100;

impl Engine {
    /// An engine that knows no sites yet: [`Engine::rescan`] finds them.
    #[must_use]
    pub fn new(threads: Threads) -> Self {
        Self {
            modules: Vec::new(),
            counts: None,
            threads,
            next_module: 0,
            next_site: 0,
            patience: PATIENCE,
        }
    }

    /// Ends [`Threads::NotYet`]. Must be called before the program starts.
    pub fn threads_run(&mut self) {
        self.threads = Threads::Running;
    }

    /// Modules with sites or refusals, in the order in which they were found.
    pub fn modules(&self) -> impl Iterator<Item = &Module> {
        self.modules.iter().map(|patched| &patched.module)
    }

    /// The site with this number and its module.
    #[must_use]
    pub fn site(&self, id: SiteId) -> Option<(&Module, &Site)> {
        let module = &self.modules[self.module_of(id)?].module;
        Some((module, module.site(id)?))
    }

    /// Whether the site with this number calls its target now.
    #[must_use]
    pub fn is_open(&self, id: SiteId) -> bool {
        let module = self.module_of(id);
        module.is_some_and(|at| self.modules[at].is_open(id))
    }

    fn module_of(&self, id: SiteId) -> Option<usize> {
        self.modules()
            .position(|module| module.site_ids().contains(&id.0))
    }

    /// Looks for modules that came and went. One call of the loader where none did.
    pub fn rescan(&mut self) -> Changes {
        let mut changes = Changes::default();
        for _ in 0..TRIES_MAX {
            if self.counts == Some(loader::counts()) || self.rescan_once(&mut changes) {
                break;
            }
        }
        changes
    }

    /// False when the loader changed its list during the scan.
    fn rescan_once(&mut self, changes: &mut Changes) -> bool {
        let (loaded, counts) = loader::list();
        let lines = maps::read().unwrap_or_default();
        let Some(known) = self.known(&loaded, counts, &lines) else {
            return false;
        };
        let mut drafts = Vec::new();
        for (position, loaded) in loaded.into_iter().enumerate() {
            if !known.contains(&Some(position)) {
                drafts.extend(scan::draft(loaded, &lines, position == 0));
            }
        }
        drafts.retain(scan::Draft::is_of_interest);
        let found = loader::hold(|held| (held.counts == counts).then(|| self.add(held, drafts)));
        let Some((added, is_ready)) = found.flatten() else {
            return false;
        };
        let _no_fork = fork_locks::change();
        // Numbers of new modules are higher than those of all known ones.
        let mut known = known.into_iter().chain(added.iter().map(|_| Some(0)));
        let is_gone = |_: &mut Patched| known.next().flatten().is_none();
        let removed: Vec<_> = self.modules.extract_if(.., is_gone).collect();
        for mut removed in removed {
            // Where something is at its place, a site may call its pads after all.
            if self
                .modules()
                .any(|other| other.base == removed.module.base)
            {
                removed.leave_pads();
            }
            changes.removed.push(removed.into_module());
        }
        changes.added.extend(added);
        self.patience = if is_ready {
            PATIENCE
        } else {
            self.patience - 1
        };
        // What was not ready gets another look at the next rescan.
        self.counts = is_ready.then_some(counts);
        true
    }

    /// For each module its position among `loaded`; none where it was unloaded, or loaded again at
    /// the same place, which its bytes show. `None` when the loader changed its list.
    fn known(
        &self,
        loaded: &[Loaded],
        counts: Counts,
        lines: &[maps::Line],
    ) -> Option<Vec<Option<usize>>> {
        let position = |held: &loader::Held<'_>, patched: &Patched| {
            let position = loaded
                .iter()
                .position(|loaded| is_same(&patched.module, loaded, lines));
            position.filter(|_| patched.is_as_left(held))
        };
        let positions = |held: &loader::Held<'_>| {
            self.modules
                .iter()
                .map(|patched| position(held, patched))
                .collect()
        };
        loader::hold(|held| (held.counts == counts).then(|| positions(held))).flatten()
    }

    /// Adds modules. The flag is false when a table was not relocated yet.
    fn add(&mut self, held: &loader::Held<'_>, drafts: Vec<scan::Draft>) -> (Vec<ModuleId>, bool) {
        let (mut added, mut is_ready) = (Vec::new(), true);
        for draft in drafts {
            let (module, is_module_ready) =
                draft.module(held, ModuleId(self.next_module), self.next_site);
            if !is_module_ready && self.patience > 0 {
                is_ready = false;
                continue;
            }
            self.next_module += 1;
            self.next_site = module.site_ids().end.max(self.next_site);
            added.push(module.id);
            self.modules.push(Patched::new(module));
        }
        (added, is_ready)
    }

    /// Makes each site of `targets` call its target, or nothing. Of several targets of one site the
    /// last counts. When this returns no thread enters a target that was taken away, except one
    /// that was on its way already.
    pub fn switch(&mut self, targets: &[(SiteId, Option<Target>)]) -> Report {
        if self.threads == Threads::NotYet && !threads::is_alone() {
            self.threads_run();
        }
        let mut report = Report::default();
        let mut open: BTreeMap<SiteId, Option<Target>> = targets.iter().copied().collect();
        for _ in 0..TRIES_MAX {
            self.rescan();
            if self.switch_once(&mut open, &mut report) {
                break;
            }
        }
        let restless = open.into_keys().map(|id| (id, Refusal::Restless));
        report.refused.extend(restless);
        report
    }

    /// Takes out of `open` what was done or refused. False when the loader changed its list.
    fn switch_once(
        &mut self,
        open: &mut BTreeMap<SiteId, Option<Target>>,
        report: &mut Report,
    ) -> bool {
        let counts = self.counts.unwrap_or_default();
        while let Some((&first, _)) = open.first_key_value() {
            let Some(index) = self.module_of(first) else {
                open.remove(&first);
                report.refused.push((first, Refusal::Gone));
                continue;
            };
            ringmark::__private::working();
            let patched = &mut self.modules[index];
            let ids = patched.module.site_ids();
            let batch = open.range(first..SiteId(ids.end)).take(SITES_MAX);
            let goal = |(id, target): (&SiteId, &Option<Target>)| Goal {
                index: (id.0 - ids.start) as usize,
                target: target.map(|target| target.address()),
            };
            let goals: Vec<_> = batch.map(goal).collect();
            let no_fork = fork_locks::change();
            let Prepared {
                changes,
                done,
                refused,
            } = prepare(patched, &goals, self.threads);
            drop(no_fork);
            let BatchEnd::Done(more) = batch::run(patched, &changes, counts) else {
                return false;
            };
            report.done += done + changes.len() - more.len();
            report.refused.extend(refused);
            report.refused.extend(more);
            for goal in goals {
                open.remove(&SiteId(ids.start + u32::try_from(goal.index).unwrap_or(0)));
            }
        }
        true
    }
}

fn is_same(module: &Module, loaded: &Loaded, lines: &[maps::Line]) -> bool {
    let text = loaded.segments.iter().find(|segment| segment.is_executable);
    let line = text.and_then(|text| maps::find(lines, text.start));
    let path = line.map_or(loaded.name.as_path(), |line| line.path.as_path());
    module.base == loaded.base && module.path == path && module.segments == loaded.segments
}
