//! Which rings one thread wrote.
//!
//! A thread has a ring in each session of its process in which it had an event, and thread ids are
//! used again. So the claims of slots with one tid are told apart by their lives: claims whose lives
//! overlap are one thread's.
//!
//! The life of a claim lasts from its first tick to its last one. Where a thread has no later claim
//! in the session, its ring may go on after the last event; where the first pages are gone, and no
//! earlier claim is here, it began before the first event. Sessions of other processes never share
//! a thread, and within one session each claim is a thread of its own, unless another session's
//! claim spans both: a thread takes a new ring when its own no longer works.

use std::collections::{BTreeMap, HashMap};

use ringmark_format::RingId;
use ringmark_format::page::FIRST_OF_CLAIM;

use crate::blocks::page::Page;
use crate::trace_file::session::Session;

/// A claim of a slot: a ring of one session.
#[derive(Debug)]
struct Claim {
    session: usize,
    slot: usize,
    ring: RingId,
    /// First and last tick of its life.
    from: u64,
    to: u64,
    /// Its first page is not here.
    is_cut: bool,
}

impl Claim {
    fn new(session: usize, slot: usize, page: &Page) -> Self {
        Self {
            session,
            slot,
            ring: page.ring,
            from: u64::MAX,
            to: 0,
            is_cut: page.header.flags & FIRST_OF_CLAIM == 0,
        }
    }

    fn take(&mut self, page: &Page) {
        let base = page.header.tick_base;
        let (low, high) = page.summary.ticks.unwrap_or((base, base));
        self.from = self.from.min(low).min(base);
        self.to = self.to.max(high).max(base);
    }
}

/// Gives the pages of all sessions the numbers of their threads, from 0.
pub(crate) fn number(sessions: &mut [Session]) {
    let mut next = 0;
    let mut numbers = HashMap::new();
    for mut claims in claims(sessions) {
        let first = claims.first().map(|claim| claim.session);
        let is_joined = claims.iter().any(|claim| Some(claim.session) != first);
        if is_joined {
            extend(&mut claims);
        }
        claims.sort_by_key(|claim| (claim.from, claim.to));
        let mut end: Option<u64> = None;
        for claim in &claims {
            let is_same = is_joined && end.is_some_and(|end| claim.from <= end);
            if end.is_some() && !is_same {
                next += 1;
                end = None;
            }
            end = end.max(Some(claim.to));
            numbers.insert((claim.session, claim.slot, claim.ring), next);
        }
        next += 1;
    }
    for session in sessions {
        for (slot, found) in session.slots.iter_mut().enumerate() {
            for page in &mut found.pages {
                let number = numbers.get(&(session.number, slot, page.ring));
                page.thread = number.copied().unwrap_or(next);
            }
        }
    }
}

/// The claims of each process and thread id. One whose process or thread is not known is alone.
fn claims(sessions: &[Session]) -> Vec<Vec<Claim>> {
    let (mut known, mut alone) = (BTreeMap::<(usize, u32), Vec<Claim>>::new(), Vec::new());
    for session in sessions {
        for (slot, found) in session.slots.iter().enumerate() {
            let mut by_ring: BTreeMap<u64, (u32, Claim)> = BTreeMap::new();
            for page in &found.pages {
                let new = || (page.header.tid, Claim::new(session.number, slot, page));
                let (_, claim) = by_ring.entry(page.ring.0).or_insert_with(new);
                claim.take(page);
            }
            for (tid, claim) in by_ring.into_values() {
                match tid {
                    0 => alone.push(vec![claim]),
                    _ => known.entry((session.process, tid)).or_default().push(claim),
                }
            }
        }
    }
    alone.extend(known.into_values());
    alone
}

/// Extends the lives of the claims that nothing of their own session follows or precedes.
fn extend(claims: &mut [Claim]) {
    let mut ends: HashMap<usize, (u64, u64)> = HashMap::new();
    for claim in &*claims {
        let (first, last) = ends.entry(claim.session).or_insert((u64::MAX, 0));
        (*first, *last) = ((*first).min(claim.from), (*last).max(claim.to));
    }
    for claim in claims {
        let Some((first, last)) = ends.get(&claim.session) else {
            continue;
        };
        if claim.to == *last {
            claim.to = u64::MAX;
        }
        if claim.is_cut && claim.from == *first {
            claim.from = 0;
        }
    }
}
