//! From goals to changes: which bytes of a patch site become which, and what the site then calls.

use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::{fs, io};

use super::code_objects::CodeObjects;
use super::patched::{PatchedModule, PatchedSite};
use super::refusal::{Refusal, RefusedSite};
use super::trampolines::{SiteCall, Trampolines};
use crate::arch::{self, Bytes, Edit, STEPS, SiteState};
use crate::sites::Site;

/// Whether a thread may be between two bytes of a site while it is changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Threads {
    /// No: one thread, which has not run code with sites yet, as at the program's start.
    NotYet,
    /// Yes: any number of threads, anywhere. Correct in every program.
    Running,
}

/// Whether this is the only thread of the process: its directory of threads then has three links.
pub(crate) fn is_alone() -> bool {
    has_threads(1)
}

/// Whether the process has this many threads.
pub(crate) fn has_threads(count: u64) -> bool {
    fs::metadata("/proc/self/task").is_ok_and(|data| data.nlink() == 2 + count)
}

/// What a site is to call from now on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Goal {
    /// The site's index in its module.
    pub(crate) index: usize,
    /// Address of the target; `None`: the site is to be disabled.
    pub(crate) target: Option<u64>,
}

/// The change of one site in a batch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SiteChange {
    /// The site's index in its module.
    pub(crate) index: usize,
    pub(crate) address: u64,
    /// Bytes that must be in memory before the change.
    pub(crate) expected: Bytes,
    pub(crate) steps: [Option<Edit>; STEPS],
    /// Whether each step leaves code that threads can execute only if they see all of its head or none.
    pub(crate) needs_whole_head: bool,
    /// Whether no thread can be at the site.
    pub(crate) is_held: bool,
    /// What the site is after the change.
    pub(crate) after: PatchedSite,
}

/// What is to be done with one module.
#[derive(Debug, Default)]
pub(crate) struct Prepared {
    pub(crate) changes: Vec<SiteChange>,
    /// Sites that need no write: only their target changed, or nothing did.
    pub(crate) done: usize,
    pub(crate) refused: Vec<RefusedSite>,
}

/// Makes the trampolines that `goals` need, sets their targets and lists the changes. `goals` are
/// sorted by index.
pub(crate) fn prepare(
    patched: &mut PatchedModule,
    goals: &[Goal],
    threads: Threads,
    objects: &CodeObjects,
) -> Prepared {
    let mut prepared = Prepared::default();
    let mut enabling = Vec::new();
    for goal in goals {
        let sites = &patched.module.sites;
        let (Some(site), Some(now)) = (sites.get(goal.index), patched.states.get(goal.index))
        else {
            continue;
        };
        if site.form.is_put_once() {
            let is_there = now.distance != 0;
            match (is_there, goal.target, &patched.trampolines) {
                (true, target, Some(trampolines)) => {
                    trampolines.set_target(goal.index, target.unwrap_or_else(arch::passing));
                    let after = now.switched(target.is_some());
                    patched.set(goal.index, after);
                    prepared.done += 1;
                }
                (_, None, _) => prepared.done += 1,
                (_, Some(_), _) => prepared.refused.push(RefusedSite {
                    site: site.id,
                    refusal: Refusal::NotPut,
                }),
            }
            continue;
        }
        match (goal.target, now.state) {
            (Some(_), SiteState::Disabled) => enabling.push(*goal),
            (Some(target), SiteState::Enabled) => {
                if let Some(trampolines) = &patched.trampolines {
                    trampolines.set_target(goal.index, target);
                }
                prepared.done += 1;
            }
            (None, SiteState::Enabled) => {
                prepared.changes.push(to_disable(site, now, goal.index));
            }
            (None, SiteState::Disabled) => prepared.done += 1,
        }
    }
    if let Err(error) = enable(patched, &enabling, threads, objects, &mut prepared) {
        let error = Arc::new(error);
        let refusal = |goal: &Goal| {
            let site = patched.module.sites.get(goal.index)?;
            Some(no_trampoline(site, Arc::clone(&error)))
        };
        prepared.refused.extend(enabling.iter().filter_map(refusal));
    }
    prepared
}

/// Makes the trampolines of the sites whose jump is put there once, disabled, and lists the changes. No thread
/// may be at them while the changes are done.
///
/// # Errors
/// No trampoline can be made, or one is out of reach.
pub(crate) fn put_once(
    patched: &mut PatchedModule,
    objects: &CodeObjects,
) -> io::Result<Vec<SiteChange>> {
    let PatchedModule {
        module,
        trampolines,
        states,
    } = patched;
    let sites = module.sites.iter().zip(states.iter()).enumerate();
    let to_put = sites.filter(|(_, (site, now))| site.form.is_put_once() && now.distance == 0);
    let indexes: Vec<_> = to_put.map(|(index, _)| index).collect();
    if indexes.is_empty() {
        return Ok(Vec::new());
    }
    let trampolines = match trampolines {
        Some(trampolines) => trampolines,
        None => trampolines.insert(Trampolines::reserve(module, objects)?),
    };
    trampolines.make(&indexes, module)?;
    let change = |index: usize| {
        trampolines.set_target(index, arch::passing());
        let site = module.sites.get(index)?;
        let to = trampolines.address_of(index);
        let distance = site.form.distance(site.address, to)?;
        let jump = Edit {
            offset: 0,
            bytes: site.form.bytes(SiteState::Disabled, distance),
        };
        Some(SiteChange {
            index,
            address: site.address,
            expected: site.form.bytes(SiteState::Disabled, 0),
            steps: [None, None, None, Some(jump)],
            needs_whole_head: false,
            is_held: true,
            after: PatchedSite {
                distance,
                ..*states.get(index)?
            },
        })
    };
    let changes = indexes.into_iter().map(change);
    let out_of_reach = || io::Error::other("a trampoline is out of reach");
    changes.collect::<Option<_>>().ok_or_else(out_of_reach)
}

fn no_trampoline(site: &Site, error: Arc<io::Error>) -> RefusedSite {
    RefusedSite {
        site: site.id,
        refusal: Refusal::Trampoline(error),
    }
}

fn to_disable(site: &Site, now: &PatchedSite, index: usize) -> SiteChange {
    let form = now.form(site);
    SiteChange {
        index,
        address: site.address,
        expected: form.bytes(SiteState::Enabled, now.distance),
        steps: form.steps_to_disable(now.distance),
        needs_whole_head: !form.has_one_byte_head(),
        is_held: false,
        after: now.switched(false),
    }
}

/// Adds changes that enable the sites of `goals`.
///
/// # Errors
/// No trampoline can be made for any of them.
fn enable(
    patched: &mut PatchedModule,
    goals: &[Goal],
    threads: Threads,
    objects: &CodeObjects,
    prepared: &mut Prepared,
) -> io::Result<()> {
    if goals.is_empty() {
        return Ok(());
    }
    let PatchedModule {
        module,
        trampolines,
        states,
    } = patched;
    let trampolines = match trampolines {
        Some(trampolines) => trampolines,
        None => trampolines.insert(Trampolines::reserve(module, objects)?),
    };
    let all: Vec<_> = goals.iter().map(|goal| goal.index).collect();
    trampolines.make(&all, module)?;
    // A site between whose bytes a thread may be needs a hop at a safe distance.
    let is_mirrored = |index: usize| {
        let has_boundaries = has_boundaries(&module.sites, states, index);
        threads == Threads::Running && has_boundaries
    };
    let mirror = mirror(
        trampolines,
        &module.sites,
        states,
        all.into_iter().filter(|at| is_mirrored(*at)),
        objects,
    );
    for goal in goals {
        let sites = &module.sites;
        let (Some(site), Some(now)) = (sites.get(goal.index), states.get(goal.index)) else {
            continue;
        };
        let distance = match is_mirrored(goal.index) {
            true => mirror.clone(),
            false => site
                .form
                .distance(site.address, trampolines.address_of(goal.index))
                .ok_or_else(|| Arc::new(io::Error::other("it is out of reach"))),
        };
        trampolines.set_target(goal.index, goal.target.unwrap_or(0));
        match distance {
            Ok(distance) => {
                let change = to_enable(site, now, goal.index, distance, threads);
                prepared.changes.push(change);
            }
            Err(error) => prepared.refused.push(no_trampoline(site, error)),
        }
    }
    Ok(())
}

/// Makes hops for the sites with these sorted indexes, if there are any. Returns the distance of
/// the sites' calls to their hops.
fn mirror(
    trampolines: &mut Trampolines,
    sites: &[Site],
    states: &[PatchedSite],
    indexes: impl Iterator<Item = usize>,
    objects: &CodeObjects,
) -> Result<i32, Arc<io::Error>> {
    let call = |index: usize| SiteCall {
        end: sites.get(index).map_or(0, Site::return_address),
        index,
    };
    let wanted: Vec<_> = indexes.map(call).collect();
    if wanted.is_empty() {
        return Ok(0);
    }
    let with_boundaries = (0..sites.len()).filter(|at| has_boundaries(sites, states, *at));
    let all = with_boundaries.map(call);
    trampolines
        .make_hops(all, &wanted, objects)
        .map_err(Arc::new)
}

/// Whether a thread may be between two bytes of the site with this index.
fn has_boundaries(sites: &[Site], states: &[PatchedSite], index: usize) -> bool {
    let found = sites.get(index).zip(states.get(index));
    found.is_some_and(|(site, now)| site.form.has_boundaries() && !now.is_one_nop)
}

fn to_enable(
    site: &Site,
    now: &PatchedSite,
    index: usize,
    distance: i32,
    threads: Threads,
) -> SiteChange {
    let is_one_nop = now.is_one_nop || threads == Threads::NotYet;
    let form = PatchedSite { is_one_nop, ..*now }.form(site);
    SiteChange {
        index,
        address: site.address,
        expected: form.bytes(SiteState::Disabled, 0),
        steps: form.steps_to_enable(distance),
        needs_whole_head: !form.has_one_byte_head(),
        is_held: false,
        after: PatchedSite {
            state: SiteState::Enabled,
            is_one_nop,
            distance,
        },
    }
}
