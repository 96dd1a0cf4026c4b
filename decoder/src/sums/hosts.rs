//! What a dump holds of each host.

use crate::sums::complete;
use crate::sums::verify::{self, Verification};
use crate::trace_file::dump::Dump;
use crate::trace_file::loss::{self, Loss, Why};
use crate::trace_file::session::{Session, Slot};

/// The figures of one host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostFigures {
    /// Its name, as [`Session::host`](crate::Session::host) gives it; empty if not known.
    pub host: Vec<u8>,
    /// Its processes.
    pub processes: u64,
    /// Events that are here.
    pub events: u64,
    /// Events that were never written.
    pub lost: u64,
    /// Events that were written and then replaced.
    pub overwritten: u64,
    /// Events that were written and are not here.
    pub missing: u64,
    /// Events that were removed from the store; see [`Verification::removed`].
    pub removed: u64,
    /// Events that are not here yet; see [`Verification::late`].
    pub late: u64,
    /// The same of sessions whose host has been silent since.
    pub unknown: u64,
    /// The moment, ns since 1970, before which nothing is late or unknown. `None`: nothing is, and all
    /// sessions have ended.
    pub complete_ns: Option<u64>,
    /// Earliest event, ns since 1970.
    pub first_ns: Option<u64>,
    /// Latest event, ns since 1970.
    pub last_ns: Option<u64>,
    /// All events that are lost or missing would stand between these times, ns since 1970; `None`:
    /// none is, or no event shows when.
    pub losses_ns: Option<(u64, u64)>,
}

impl Dump {
    /// Whether its sessions ran on several hosts.
    #[must_use]
    pub fn has_several_hosts(&self) -> bool {
        let mut hosts = self.sessions.iter().map(|s| s.host());
        let first = hosts.next();
        hosts.any(|host| Some(host) != first)
    }

    /// The figures of each host, by name.
    #[must_use]
    pub fn hosts(&self) -> Vec<HostFigures> {
        self.hosts_at(0)
    }

    /// As [`Dump::hosts`], at this moment in ns since 1970: what is late of a host that has said
    /// nothing for long counts as unknown.
    #[must_use]
    pub fn hosts_at(&self, now_ns: u64) -> Vec<HostFigures> {
        let mut names: Vec<_> = self.sessions.iter().map(|s| s.host()).collect();
        names.sort_unstable();
        names.dedup();
        names
            .into_iter()
            .map(|host| self.of_host(host, now_ns))
            .collect()
    }

    fn of_host(&self, host: &[u8], now_ns: u64) -> HostFigures {
        let mut sum = Verification::default();
        let (mut processes, mut losses_ns) = (Vec::new(), None);
        let (mut late, mut unknown, mut complete_ns) = (0_u64, 0_u64, None);
        for session in self.sessions.iter().filter(|s| s.host() == host) {
            sum.add_session(session);
            match verify::is_silent(session, now_ns) {
                true => unknown = unknown.saturating_add(std::mem::take(&mut sum.late)),
                false => late = late.saturating_add(std::mem::take(&mut sum.late)),
            }
            let complete = complete::until_ns(session);
            complete_ns = complete_ns.into_iter().chain(complete).min();
            let losses = losses_of(session).filter(|_| session.has_times());
            losses_ns = joined(losses_ns, losses);
            processes.push(session.process);
        }
        processes.sort_unstable();
        processes.dedup();
        HostFigures {
            host: host.to_vec(),
            processes: processes.len() as u64,
            events: sum.events,
            lost: sum.lost,
            overwritten: sum.overwritten,
            missing: sum.missing,
            removed: sum.removed,
            late,
            unknown,
            complete_ns,
            first_ns: sum.first_ns,
            last_ns: sum.last_ns,
            losses_ns,
        }
    }
}

/// The shortest time that holds two others.
fn joined(a: Option<(u64, u64)>, b: Option<(u64, u64)>) -> Option<(u64, u64)> {
    let (Some(a), Some(b)) = (a, b) else {
        return a.or(b);
    };
    Some((a.0.min(b.0), a.1.max(b.1)))
}

/// When events of a session were lost, or would be that are missing.
fn losses_of(session: &Session) -> Option<(u64, u64)> {
    let wall = |tick| session.clock.wall_of(tick, session.clock.t_ns(tick));
    let pages = || session.slots.iter().flat_map(|slot| &slot.pages);
    let first = pages().map(|page| page.header.tick_base).min()?;
    let last = pages().filter_map(|page| Some(page.summary.ticks?.1)).max();
    // Counters are taken at the end, too: what they count may be later than all that is here.
    let sampled = session.counters.as_ref().and_then(|c| c.sample());
    let last = last
        .unwrap_or(first)
        .max(sampled.map_or(0, |sample| sample.tick));
    let mut ticks = None;
    for slot in &session.slots {
        let losses = loss::of_slot(session, slot).items.into_iter();
        for (place, _) in losses.filter(|(_, loss)| is_loss(loss)) {
            ticks = joined(ticks, Some(around(slot, place, (first, last))));
        }
    }
    if loss::of_session(session)
        .iter()
        .any(|(_, loss)| is_loss(loss))
    {
        ticks = Some((first, last));
    }
    ticks.map(|(from, to)| (wall(from), wall(to)))
}

/// The ticks between which a loss before this page of a slot lies. `session`: its first and last.
fn around(slot: &Slot, place: usize, session: (u64, u64)) -> (u64, u64) {
    let before = place.checked_sub(1).and_then(|place| slot.pages.get(place));
    let before = before.and_then(|page| page.summary.ticks);
    let after = slot.pages.get(place).map(|page| page.header.tick_base);
    (
        before.map_or(session.0, |ticks| ticks.1),
        after.unwrap_or(session.1),
    )
}

/// Whether events are gone that were to be here: not those that made way for newer ones.
const fn is_loss(loss: &Loss) -> bool {
    matches!(loss.why, Why::Lost(_) | Why::Missing | Why::Unsent)
}
