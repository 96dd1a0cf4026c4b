//! How each host does whose streams a store has: heard lately, silent, behind, or over.

use crate::sums::complete;
use crate::sums::hosts::HostFigures;
use crate::trace_file::dump::Dump;
use crate::trace_file::session::Session;

/// From which age on a host counts as silent, and as lagging, in ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HealthLimits {
    /// It has said nothing for longer.
    pub silent_ns: u64,
    /// Something older than this may still come.
    pub lag_ns: u64,
}

/// What a host is now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum HostState {
    /// It has a session that is not over, and has said nothing for long.
    Silent,
    /// It was heard lately, and something older may still come.
    Lagging,
    /// It was heard lately.
    Heard,
    /// All its sessions are over, and all of them is here or counted.
    Over,
}

impl HostState {
    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Silent => "silent",
            Self::Lagging => "lagging",
            Self::Heard => "heard",
            Self::Over => "over",
        }
    }
}

/// A host, and how it does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostHealth {
    /// What is here of it.
    pub figures: HostFigures,
    /// What it is now.
    pub state: HostState,
    /// When it said something last, ns since 1970; `None`: never.
    pub heard_ns: Option<u64>,
}

impl Dump {
    /// How each host does at this moment in ns since 1970, by name.
    #[must_use]
    pub fn health(&self, now_ns: u64, limits: HealthLimits) -> Vec<HostHealth> {
        let of = |figures: HostFigures| {
            let sessions = self.sessions.iter();
            let its: Vec<_> = sessions.filter(|s| s.host() == figures.host).collect();
            let heard_ns = its.iter().filter_map(|session| heard(session)).max();
            HostHealth {
                state: state(&its, heard_ns, now_ns, limits),
                heard_ns,
                figures,
            }
        };
        self.hosts_at(now_ns).into_iter().map(of).collect()
    }
}

fn state(
    sessions: &[&Session],
    heard_ns: Option<u64>,
    now_ns: u64,
    limits: HealthLimits,
) -> HostState {
    let is_older = |ns: u64, most: u64| now_ns.saturating_sub(ns) > most;
    if sessions.iter().all(|session| is_over(session)) {
        return HostState::Over;
    }
    if heard_ns.is_none_or(|ns| is_older(ns, limits.silent_ns)) {
        return HostState::Silent;
    }
    // A session of a program that was killed with its streamer says nothing any more.
    let is_heard =
        |session: &&&Session| heard(session).is_some_and(|ns| !is_older(ns, limits.silent_ns));
    let complete = sessions.iter().filter(is_heard);
    let complete = complete
        .filter_map(|session| complete::until_ns(session))
        .min();
    match complete.is_some_and(|ns| is_older(ns, limits.lag_ns)) {
        true => HostState::Lagging,
        false => HostState::Heard,
    }
}

/// Whether nothing of a session is expected any more.
fn is_over(session: &Session) -> bool {
    session.is_final() && complete::until_ns(session).is_none()
}

/// When a session said something last: an event, its counters, or what became of its pages.
fn heard(session: &Session) -> Option<u64> {
    let counters = session.counters.as_ref();
    let sampled = counters.and_then(|counters| counters.sample());
    let sampled = sampled.map(|sample| sample.tick);
    let pages = session.slots.iter().flat_map(|slot| &slot.pages);
    let last = pages
        .filter_map(|page| page.summary.ticks)
        .map(|(_, last)| last)
        .max();
    let wall = |tick| session.clock.wall_of(tick, session.clock.t_ns(tick));
    let seen = sampled.into_iter().chain(last).max().map(wall);
    seen.into_iter().chain(session.progress.said_ns()).max()
}
