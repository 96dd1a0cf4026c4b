//! From wishes to changes: which bytes have to become which, and what they call.

use std::io;
use std::sync::Arc;

use super::refusal::Refusal;
use super::room::Room;
use super::threads::Threads;
use crate::arch::{Bytes, Edit, Form, STEPS, State};
use crate::sites::{Module, Site, SiteId};

/// What the site with this index is wanted to call; nothing, to be at rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wish {
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
    pub(crate) form: Form,
    pub(crate) state: State,
    pub(crate) distance: i32,
}

/// What is to be done with one module.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub(crate) changes: Vec<Change>,
    /// Sites that only call something else now, or are as they should be.
    pub(crate) done: usize,
    pub(crate) refused: Vec<(SiteId, Refusal)>,
}

/// Makes the pads that `wishes`, sorted by index, need, sets their targets and lists the changes.
pub(crate) fn plan(module: &mut Module, wishes: &[Wish], threads: Threads) -> Plan {
    let mut plan = Plan::default();
    let mut opening = Vec::new();
    for wish in wishes {
        let Some(site) = module.sites.get(wish.index) else {
            continue;
        };
        match (wish.target, site.state) {
            (Some(_), State::Rest) => opening.push(*wish),
            (Some(target), State::Open) => {
                if let Some(room) = &module.room {
                    room.set_target(wish.index, target);
                }
                plan.done += 1;
            }
            (None, State::Open) => plan.changes.push(closing(site, wish.index)),
            (None, State::Rest) => plan.done += 1,
        }
    }
    if let Err(error) = open(module, &opening, threads, &mut plan) {
        let error = Arc::new(error);
        let refusal = |wish: &Wish| {
            Some((
                module.sites.get(wish.index)?.id,
                Refusal::Room(Arc::clone(&error)),
            ))
        };
        plan.refused.extend(opening.iter().filter_map(refusal));
    }
    plan
}

fn closing(site: &Site, index: usize) -> Change {
    Change {
        index,
        address: site.address,
        expected: site.form.bytes(State::Open, site.distance),
        steps: site.form.close(site.distance),
        form: site.form,
        state: State::Rest,
        distance: site.distance,
    }
}

/// Adds changes that open the sites of `wishes`, or says why none can be.
fn open(module: &mut Module, wishes: &[Wish], threads: Threads, plan: &mut Plan) -> io::Result<()> {
    if wishes.is_empty() {
        return Ok(());
    }
    let mut room = match module.room.take() {
        Some(room) => room,
        None => Room::reserve(module)?,
    };
    let result = open_in(&mut room, module, wishes, threads, plan);
    module.room = Some(room);
    result
}

fn open_in(
    room: &mut Room,
    module: &Module,
    wishes: &[Wish],
    threads: Threads,
    plan: &mut Plan,
) -> io::Result<()> {
    let all: Vec<_> = wishes.iter().map(|wish| wish.index).collect();
    room.make_pads(&all, module.site_ids().start)?;
    let is_mirrored = |index: &usize| {
        let site = module.sites.get(*index);
        threads == Threads::Running && site.is_some_and(|site| site.form.has_boundaries())
    };
    let mirrored: Vec<_> = all.iter().copied().filter(is_mirrored).collect();
    let mirror = match mirrored.is_empty() {
        true => Ok(0),
        false => room.make_hops(&module.sites, &mirrored).map_err(Arc::new),
    };
    for wish in wishes {
        let Some(site) = module.sites.get(wish.index) else {
            continue;
        };
        let distance = match is_mirrored(&wish.index) {
            true => mirror.clone(),
            false => room
                .distance(site, wish.index)
                .ok_or_else(|| Arc::new(io::Error::other("it is out of reach"))),
        };
        room.set_target(wish.index, wish.target.unwrap_or(0));
        match distance {
            Ok(distance) => plan
                .changes
                .push(opening(site, wish.index, distance, threads)),
            Err(error) => plan.refused.push((site.id, Refusal::Room(error))),
        }
    }
    Ok(())
}

fn opening(site: &Site, index: usize, distance: i32, threads: Threads) -> Change {
    let form = match threads {
        Threads::NotYet => site.form.without_boundaries(),
        Threads::Running => site.form,
    };
    Change {
        index,
        address: site.address,
        expected: form.bytes(State::Rest, 0),
        steps: form.open(distance),
        form: form.settled(distance),
        state: State::Open,
        distance,
    }
}
