//! The engine: the modules of this process and what their patch sites call. A process has one
//! engine; two would undo each other's work.
//!
//! A switch works in attempts. Each begins with a rescan and goes through the pending sites by
//! module, in batches. A batch finds out whether the loader has mapped or unmapped a module since
//! the rescan; then it does nothing, and another attempt takes up what is pending. Sites that are
//! still pending after the last attempt are refused.
//!
//! Numbers of sites and modules count up and are never used again. So a number that the caller kept
//! means the same site as before, or none after its module was unloaded.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::fork_locks::{self, Operated};
use crate::loader_watch::{LoaderWatch, Unwatched};
use crate::patch::batch::{self, BatchEnd, SITES_MAX};
use crate::patch::code_objects::CodeObjects;
use crate::patch::patched::PatchedModule;
use crate::patch::prepare::{self, Goal, Prepared, SiteChange, is_alone, prepare};
use crate::patch::trampolines::MovedTrampolines;
use crate::patch::{Refusal, RefusedSite, Target, Threads};
use crate::record::own_calls::own_calls;
use crate::sites::loader::{self, Counts, Loaded};
use crate::sites::moved::{MovedPlace, MovedTable, RefusedEntry};
use crate::sites::{FileError, Module, ModuleId, Site, SiteId, maps, scan};

/// What a patch site is to call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SiteTarget {
    /// The site's number.
    pub site: SiteId,
    /// The target of an enabled site; `None`: the site is to be disabled.
    pub target: Option<Target>,
}

/// What [`Engine::switch`] did.
#[derive(Debug, Default)]
pub struct SwitchReport {
    /// Number of sites that call what they are to call.
    pub done: usize,
    /// Sites that were left as they were.
    pub refused: Vec<RefusedSite>,
}

/// What [`Engine::rescan`] found.
#[derive(Debug, Default)]
pub struct ModuleChanges {
    /// New modules with patch sites or refused table entries.
    pub added: Vec<ModuleId>,
    /// Modules that are no longer loaded.
    pub removed: Vec<Module>,
}

/// All patch sites of this process.
#[derive(Debug)]
pub struct Engine {
    modules: Vec<PatchedModule>,
    /// Modules in the loader's list whose files have no patch sites.
    without_sites: Vec<FileInMemory>,
    loader_watch: LoaderWatch,
    code_objects: CodeObjects,
    counts: Option<Counts>,
    threads: Threads,
    next_module: u32,
    next_site: u32,
    /// Rescans during which an unrelocated table is still looked at again.
    patience: u32,
    /// Moved sites of which more are to come, by their modules.
    to_come: Vec<MovedTable>,
}

/// What [`Engine::add_moved`] did.
#[derive(Debug, Default)]
pub(crate) struct MovedReport {
    /// Number of sites that are there now and were not before.
    pub(crate) added: usize,
    pub(crate) refused: Vec<RefusedEntry>,
    /// Trampolines of which some sites have no jump yet.
    pub(crate) to_put: Vec<MovedTrampolines>,
}

/// Targets of a switch that are neither set nor refused yet, in the order of their sites, each once.
struct Pending<'t> {
    targets: Cow<'t, [SiteTarget]>,
    next: usize,
}

impl<'t> Pending<'t> {
    /// Among several targets of one site the last counts.
    fn new(targets: &'t [SiteTarget]) -> Self {
        let is_sorted = targets.windows(2).all(|two| two[0].site < two[1].site);
        let targets = match is_sorted {
            true => Cow::Borrowed(targets),
            false => {
                let last: BTreeMap<_, _> = targets.iter().map(|one| (one.site, *one)).collect();
                Cow::Owned(last.into_values().collect())
            }
        };
        Self { targets, next: 0 }
    }

    fn rest(&self) -> &[SiteTarget] {
        &self.targets[self.next..]
    }
}

static ENGINE: Operated<Engine> = Operated::new();

/// Runs `work` with the engine of this process, which the first call makes with `threads`. Waits
/// for other callers. `work` must not call this again.
///
/// A forked child has its parent's engine as it was between two changes.
pub fn with_engine<R>(threads: Threads, work: impl FnOnce(&mut Engine) -> R) -> R {
    ENGINE.with(|| Engine::new(threads), work)
}

/// Rescans after which a table whose entries all lie outside their module is taken as it is.
const PATIENCE: u32 = 16;
/// Attempts of one switch or rescan: another begins when the loader's list changed during one.
const TRIES_MAX: usize = 100;

impl Engine {
    /// An engine without modules; [`Engine::rescan`] finds them.
    #[must_use]
    pub fn new(threads: Threads) -> Self {
        Self {
            modules: Vec::new(),
            without_sites: Vec::new(),
            loader_watch: LoaderWatch::default(),
            code_objects: CodeObjects::default(),
            counts: None,
            threads,
            next_module: 0,
            next_site: 0,
            patience: PATIENCE,
            to_come: Vec::new(),
        }
    }

    /// Ends [`Threads::NotYet`]. Must be called before the program's own code runs.
    pub fn threads_run(&mut self) {
        self.threads = Threads::Running;
    }

    /// Sets where code is made from now on, in place of memory that unwinders do not know.
    pub(crate) fn make_code_in(&mut self, objects: CodeObjects) {
        self.code_objects = objects;
    }

    /// Modules with patch sites or refused table entries, in the order in which they were found.
    pub fn modules(&self) -> impl Iterator<Item = &Module> {
        self.modules.iter().map(|patched| &patched.module)
    }

    /// The site with this number and its module.
    #[must_use]
    pub fn site(&self, id: SiteId) -> Option<(&Module, &Site)> {
        let module = &self.modules[self.module_of(id)?].module;
        Some((module, module.site(id)?))
    }

    /// Whether the site with this number is enabled: it calls its target.
    #[must_use]
    pub fn is_enabled(&self, id: SiteId) -> bool {
        let module = self.module_of(id);
        module.is_some_and(|at| self.modules[at].is_enabled(id))
    }

    fn module_of(&self, id: SiteId) -> Option<usize> {
        self.modules()
            .position(|module| module.site_ids().contains(&id.0))
    }

    /// From now on the loader's threads wait for [`loader_watch::turns`](crate::loader_watch::turns)
    /// when they have mapped a module, or no longer. Called before a rescan that modules are to follow.
    pub(crate) fn watch_loader(&mut self, on: bool) {
        self.loader_watch
            .switch(on, self.threads, &self.code_objects);
    }

    /// Why no thread waits when modules were mapped, so that they are found later.
    pub(crate) fn unwatched(&self) -> Option<&Unwatched> {
        self.loader_watch.unwatched()
    }

    /// Finds modules that were loaded or unloaded. Costs one call of the loader where none was.
    pub fn rescan(&mut self) -> ModuleChanges {
        let mut changes = ModuleChanges::default();
        for _ in 0..TRIES_MAX {
            if self.counts == Some(loader::counts()) || self.rescan_once(&mut changes) {
                break;
            }
        }
        changes
    }

    /// `false`: the loader's list changed during the scan.
    fn rescan_once(&mut self, changes: &mut ModuleChanges) -> bool {
        let (loaded, counts) = loader::list();
        let mappings = maps::read().unwrap_or_default();
        let Some(known) = self.known(&loaded, counts, &mappings) else {
            return false;
        };
        let (mut drafts, mut without_sites) = (Vec::new(), Vec::new());
        for (position, loaded) in loaded.into_iter().enumerate() {
            if known.contains(&Some(position)) {
                continue;
            }
            let file = FileInMemory::of(&loaded, &mappings);
            let draft = match self.without_sites.contains(&file) {
                true => None,
                false => scan::draft(loaded, &mappings, position == 0),
            };
            match draft.filter(scan::Draft::is_of_interest) {
                Some(draft) => drafts.push(draft),
                None => without_sites.push(file),
            }
        }
        self.without_sites = without_sites;
        let found = loader::hold(|held| (held.counts == counts).then(|| self.add(held, drafts)));
        let Some((added, is_ready)) = found.flatten() else {
            return false;
        };
        let _no_fork = fork_locks::change();
        // Numbers of new modules are higher than those of all known ones.
        let mut known = known.into_iter().chain(added.iter().map(|_| Some(0)));
        let is_gone = |_: &mut PatchedModule| known.next().flatten().is_none();
        let removed: Vec<_> = self.modules.extract_if(.., is_gone).collect();
        for mut removed in removed {
            // It may be there yet, under another number, with sites that call these trampolines.
            let base = removed.module.base;
            let mut same_place = self.modules().filter(|other| other.base == base);
            if removed.has_put_once() || !same_place.all(|other| removed.is_gone_from(other)) {
                removed.leave_trampolines();
            }
            changes.removed.push(removed.into_module());
        }
        changes.added.extend(added);
        self.patience = if is_ready {
            PATIENCE
        } else {
            self.patience - 1
        };
        // A table that was not ready is looked at again by the next rescan.
        self.counts = is_ready.then_some(counts);
        true
    }

    /// Keeps a part of a table of moved sites until its last part comes.
    pub(crate) fn expect_moved(&mut self, part: MovedTable) {
        let is_same =
            |table: &&mut MovedTable| table.base == part.base && table.build_id == part.build_id;
        match self.to_come.iter_mut().find(is_same) {
            Some(table) => table.entries.extend(part.entries),
            None => self.to_come.push(part),
        }
    }

    /// Adds sites where instructions are moved to make room, disabled, as a module of their own. The parts
    /// that were kept belong to it. `are_held`: no thread is in the program's code until this returns, so jumps are put in
    /// the place of several instructions. Else the trampolines for such jumps are made, and [`Self::were_put`] is to follow.
    ///
    /// # Errors
    /// Its module is not there, or is another one.
    pub(crate) fn add_moved(
        &mut self,
        last: MovedTable,
        are_held: bool,
    ) -> Result<MovedReport, FileError> {
        let (base, build_id) = (last.base, last.build_id.clone());
        self.expect_moved(last);
        let is_meant = |table: &mut MovedTable| table.base == base && table.build_id == build_id;
        let mut table = self.to_come.extract_if(.., is_meant).next();
        for _ in 0..TRIES_MAX {
            self.rescan();
            let Some(result) = self.add_moved_once(&mut table) else {
                continue;
            };
            return result.map(|mut report| {
                report.to_put = self.put_or_prepare(base, are_held);
                report
            });
        }
        Err(FileError::OtherFile)
    }

    /// Makes trampolines for the jumps that take the place of several instructions of the file at this address. Puts the
    /// jumps there while threads are held, or returns the trampolines that have none. A site without its jump refuses to be
    /// enabled, and says so then.
    fn put_or_prepare(&mut self, base: u64, are_held: bool) -> Vec<MovedTrampolines> {
        let mut to_put = Vec::new();
        let of_file = |patched: &&mut PatchedModule| patched.module.base == base;
        for patched in self.modules.iter_mut().filter(of_file) {
            let changes = changes_to_put(patched, &self.code_objects);
            if !are_held {
                to_put.extend(patched.trampolines().filter(|_| !changes.is_empty()));
                continue;
            }
            for some in changes.chunks(SITES_MAX) {
                ringmark::__private::helper::working();
                let _ = batch::run(patched, some, loader::counts());
            }
        }
        to_put
    }

    /// Takes note of the jumps that were put in the place of several instructions of the module at this address by another
    /// hand. Returns how many are there, and how many are not.
    pub(crate) fn were_put(&mut self, base: u64) -> (usize, usize) {
        self.rescan();
        let (mut there, mut missing) = (0, 0);
        let of_file = |patched: &&mut PatchedModule| patched.module.base == base;
        for patched in self.modules.iter_mut().filter(of_file) {
            let changes = changes_to_put(patched, &self.code_objects);
            let put = loader::hold(|held| batch::done_elsewhere(held, patched, &changes));
            there += put.unwrap_or(0);
            missing += changes.len() - put.unwrap_or(0);
        }
        (there, missing)
    }

    /// `None`: the loader's list changed.
    fn add_moved_once(
        &mut self,
        table: &mut Option<MovedTable>,
    ) -> Option<Result<MovedReport, FileError>> {
        let (loaded, counts) = loader::list();
        let mappings = maps::read().unwrap_or_default();
        let base = table.as_ref()?.base;
        let Some(position) = loaded.iter().position(|loaded| loaded.base == base) else {
            return Some(Err(FileError::OtherFile));
        };
        let (id, next) = (ModuleId(self.next_module), self.next_site);
        let forbidden = own_calls();
        let made = loader::hold(|held| {
            if held.counts != counts {
                return None;
            }
            let loaded = &loaded[position];
            let mapping = text_of(loaded, &mappings);
            let place = MovedPlace {
                held,
                loaded,
                path: mapping.map_or_else(|| loaded.name.clone(), |found| found.path.clone()),
                is_program: position == 0,
                others: self.modules().filter(|other| other.base == base).collect(),
                has_sites: self
                    .modules()
                    .any(|module| module.moved.is_empty() && !module.sites.is_empty()),
                forbidden: &forbidden,
            };
            let table = table.take()?;
            Some(match place.is_of(&table) {
                true => Ok(place.module(table, id, next)),
                false => Err(FileError::OtherFile),
            })
        });
        Some(made.flatten()?.map(|(module, refused)| {
            let added = module.sites.len();
            if added > 0 {
                let _no_fork = fork_locks::change();
                self.next_module += 1;
                self.next_site = module.site_ids().end.max(self.next_site);
                self.modules.push(PatchedModule::new(module));
            }
            MovedReport {
                added,
                refused,
                to_put: Vec::new(),
            }
        }))
    }

    /// The position of each module among `loaded`. It is none for a module that was unloaded, or
    /// loaded again at the same place, which its bytes show. `None`: the loader's list changed.
    fn known(
        &self,
        loaded: &[Loaded],
        counts: Counts,
        mappings: &[maps::Mapping],
    ) -> Option<Vec<Option<usize>>> {
        let position = |held: &loader::Held<'_>, patched: &PatchedModule| {
            let position = loaded
                .iter()
                .position(|loaded| is_same(&patched.module, loaded, mappings));
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

    /// Adds modules. The flag is false where a table was not relocated yet.
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
            self.modules.push(PatchedModule::new(module));
        }
        (added, is_ready)
    }

    /// Enables or disables each site of `targets`. Among several targets of one site the last
    /// counts. Once this returns, no thread enters a former target but one on its way there.
    pub fn switch(&mut self, targets: &[SiteTarget]) -> SwitchReport {
        if self.threads == Threads::NotYet && !is_alone() {
            self.threads_run();
        }
        let mut report = SwitchReport::default();
        let mut pending = Pending::new(targets);
        for _ in 0..TRIES_MAX {
            self.rescan();
            if self.switch_once(&mut pending, &mut report) {
                break;
            }
        }
        let refusal = Refusal::Restless;
        let restless = pending.rest().iter().map(|one| RefusedSite {
            site: one.site,
            refusal: refusal.clone(),
        });
        report.refused.extend(restless);
        report
    }

    /// Takes out of `pending` what was done or refused. `false`: the loader's list changed.
    fn switch_once(&mut self, pending: &mut Pending<'_>, report: &mut SwitchReport) -> bool {
        let counts = self.counts.unwrap_or_default();
        while let Some(first) = pending.rest().first().copied() {
            let Some(index) = self.module_of(first.site) else {
                pending.next += 1;
                report.refused.push(RefusedSite {
                    site: first.site,
                    refusal: Refusal::Gone,
                });
                continue;
            };
            ringmark::__private::helper::working();
            let patched = &mut self.modules[index];
            let ids = patched.module.site_ids();
            let rest = pending.rest().iter().take(SITES_MAX);
            let batch = rest.take_while(|one| one.site.0 < ids.end);
            let goal = |one: &SiteTarget| Goal {
                index: (one.site.0 - ids.start) as usize,
                target: one.target.map(|target| target.address()),
            };
            let goals: Vec<_> = batch.map(goal).collect();
            let no_fork = fork_locks::change();
            let Prepared {
                changes,
                done,
                refused,
            } = prepare(patched, &goals, self.threads, &self.code_objects);
            drop(no_fork);
            let BatchEnd::Done(more) = batch::run(patched, &changes, counts) else {
                return false;
            };
            report.done += done + changes.len() - more.len();
            report.refused.extend(refused);
            report.refused.extend(more);
            pending.next += goals.len();
        }
        true
    }
}

/// The jumps that take the place of several instructions, are not there yet, and have trampolines.
fn changes_to_put(patched: &mut PatchedModule, objects: &CodeObjects) -> Vec<SiteChange> {
    let _no_fork = fork_locks::change();
    prepare::put_once(patched, objects).unwrap_or_default()
}

/// A module as the loader and the kernel list it: while nothing of this changes, neither does what is
/// found in its file.
#[derive(Debug, PartialEq, Eq)]
struct FileInMemory {
    base: u64,
    headers: Vec<[u64; 4]>,
    /// Path, device and inode; `None`: it has no file.
    file: Option<(PathBuf, String)>,
}

impl FileInMemory {
    fn of(loaded: &Loaded, mappings: &[maps::Mapping]) -> Self {
        let file = text_of(loaded, mappings);
        Self {
            base: loaded.base,
            headers: loaded.headers.clone(),
            file: file.map(|mapping| (mapping.path.clone(), mapping.file.clone())),
        }
    }
}

/// The mapping of a module's code.
fn text_of<'m>(loaded: &Loaded, mappings: &'m [maps::Mapping]) -> Option<&'m maps::Mapping> {
    let text = loaded.segments.iter().find(|segment| segment.is_executable);
    text.and_then(|text| maps::find(mappings, text.start))
}

/// Whether `loaded` has the place, the file and the segments of `module`.
fn is_same(module: &Module, loaded: &Loaded, mappings: &[maps::Mapping]) -> bool {
    let mapping = text_of(loaded, mappings);
    let path = mapping.map_or(loaded.name.as_path(), |mapping| mapping.path.as_path());
    module.base == loaded.base && module.path == path && module.segments == loaded.segments
}
