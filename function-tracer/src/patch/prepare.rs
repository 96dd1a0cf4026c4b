//! From goals to changes: which bytes have to become which, and what they call.

use std::io;
use std::sync::Arc;

use super::patched::{Patched, SiteState};
use super::refusal::Refusal;
use super::threads::Threads;
use super::trampolines::{Call, Room};
use crate::arch::{Bytes, Edit, STEPS, State};
use crate::sites::{Site, SiteId};

/// What the site with this index shall call; nothing, to be at rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Goal {
    pub(crate) index: usize,
    pub(crate) target: Option<u64>,
}

/// One site of a batch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Change {
    pub(crate) index: usize,
    pub(crate) address: u64,
    /// What must stand there now.
    pub(crate) expected: Bytes,
    pub(crate) steps: [Option<Edit>; STEPS],
    /// What the site is afterwards.
    pub(crate) after: SiteState,
}

/// What is to be done with one module.
#[derive(Debug, Default)]
pub(crate) struct Prepared {
    pub(crate) changes: Vec<Change>,
    /// Sites that only call something else now, or are as they should be.
    pub(crate) done: usize,
    pub(crate) refused: Vec<(SiteId, Refusal)>,
}

/// Makes the pads that `goals`, sorted by index, need, sets their targets and lists the changes.
pub(crate) fn prepare(patched: &mut Patched, goals: &[Goal], threads: Threads) -> Prepared {
    let mut prepared = Prepared::default();
    let mut opening = Vec::new();
    for goal in goals {
        let sites = &patched.module.sites;
        let (Some(site), Some(now)) = (sites.get(goal.index), patched.states.get(goal.index))
        else {
            continue;
        };
        match (goal.target, now.state) {
            (Some(_), State::Rest) => opening.push(*goal),
            (Some(target), State::Open) => {
                if let Some(room) = &patched.room {
                    room.set_target(goal.index, target);
                }
                prepared.done += 1;
            }
            (None, State::Open) => prepared.changes.push(closing(site, now, goal.index)),
            (None, State::Rest) => prepared.done += 1,
        }
    }
    if let Err(error) = open(patched, &opening, threads, &mut prepared) {
        let error = Arc::new(error);
        let refusal = |goal: &Goal| {
            let site = patched.module.sites.get(goal.index)?;
            Some((site.id, Refusal::Room(Arc::clone(&error))))
        };
        prepared.refused.extend(opening.iter().filter_map(refusal));
    }
    prepared
}

fn closing(site: &Site, now: &SiteState, index: usize) -> Change {
    Change {
        index,
        address: site.address,
        expected: now.form.bytes(State::Open, now.distance),
        steps: now.form.close(now.distance),
        after: SiteState {
            state: State::Rest,
            ..*now
        },
    }
}

/// Adds changes that open the sites of `goals`, or says why none can be.
fn open(
    patched: &mut Patched,
    goals: &[Goal],
    threads: Threads,
    prepared: &mut Prepared,
) -> io::Result<()> {
    if goals.is_empty() {
        return Ok(());
    }
    let Patched {
        module,
        room,
        states,
    } = patched;
    let room = match room {
        Some(room) => room,
        None => room.insert(Room::reserve(module)?),
    };
    let all: Vec<_> = goals.iter().map(|goal| goal.index).collect();
    room.make_pads(&all, module.site_ids().start)?;
    // Threads may rest between its bytes.
    let is_mirrored = |index: usize| {
        let now = states.get(index);
        threads == Threads::Running && now.is_some_and(|now| now.form.has_boundaries())
    };
    let mirror = mirror(
        room,
        &module.sites,
        states,
        all.into_iter().filter(|at| is_mirrored(*at)),
    );
    for goal in goals {
        let sites = &module.sites;
        let (Some(site), Some(now)) = (sites.get(goal.index), states.get(goal.index)) else {
            continue;
        };
        let distance = match is_mirrored(goal.index) {
            true => mirror.clone(),
            false => now
                .form
                .distance(site.address, room.pad_at(goal.index))
                .ok_or_else(|| Arc::new(io::Error::other("it is out of reach"))),
        };
        room.set_target(goal.index, goal.target.unwrap_or(0));
        match distance {
            Ok(distance) => {
                let change = opening(site, now, goal.index, distance, threads);
                prepared.changes.push(change);
            }
            Err(error) => prepared.refused.push((site.id, Refusal::Room(error))),
        }
    }
    Ok(())
}

/// Makes hops for the sites with these sorted indexes, if there are any, and says how far they are.
fn mirror(
    room: &mut Room,
    sites: &[Site],
    states: &[SiteState],
    indexes: impl Iterator<Item = usize>,
) -> Result<i32, Arc<io::Error>> {
    let call = |index: usize| Call {
        end: sites.get(index).map_or(0, Site::return_address),
        index,
    };
    let wanted: Vec<_> = indexes.map(call).collect();
    if wanted.is_empty() {
        return Ok(0);
    }
    let with_boundaries = states
        .iter()
        .enumerate()
        .filter(|(_, now)| now.form.has_boundaries());
    let all = with_boundaries.map(|(index, _)| call(index));
    room.make_hops(all, &wanted).map_err(Arc::new)
}

fn opening(site: &Site, now: &SiteState, index: usize, distance: i32, threads: Threads) -> Change {
    let form = match threads {
        Threads::NotYet => now.form.without_boundaries(),
        Threads::Running => now.form,
    };
    Change {
        index,
        address: site.address,
        expected: form.bytes(State::Rest, 0),
        steps: form.open(distance),
        after: SiteState {
            form: form.settled(distance),
            state: State::Open,
            distance,
        },
    }
}
