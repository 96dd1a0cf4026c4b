//! From when to when a session holds everything, and what of it is not there.
//!
//! A ring in overwrite mode holds the last part only, and the sessions of one process may hold
//! different parts. Sums and nesting over several of them are whole in the time that all cover.

use crate::trace_file::dump::Dump;
use crate::trace_file::loss::{self, Why};
use crate::trace_file::session::{Session, Slot};

/// What one session holds. Times are in ns since the start of its process's first session.
#[derive(Debug, Clone, Copy)]
pub struct Cover<'a> {
    /// The session.
    pub session: &'a Session,
    /// From when on all its rings are here.
    pub from_ns: u64,
    /// The last time that is known of it.
    pub to_ns: u64,
    /// Events that were replaced by newer ones.
    pub overwritten: u64,
    /// Events that were never written.
    pub lost: u64,
}

impl Cover<'_> {
    /// Whether the session holds functions: it is a function tracer's, or its program has one.
    #[must_use]
    pub fn has_functions(&self) -> bool {
        let types = self.session.schema.types();
        types.iter().any(|ty| ty.function.is_some())
    }

    /// How long it is, in ns.
    #[must_use]
    pub const fn length_ns(&self) -> u64 {
        self.to_ns.saturating_sub(self.from_ns)
    }
}

impl Dump {
    /// What each session holds that has pages, in the order of the sessions.
    #[must_use]
    pub fn covers(&self) -> Vec<Cover<'_>> {
        self.sessions.iter().filter_map(cover).collect()
    }
}

fn cover(session: &Session) -> Option<Cover<'_>> {
    let (mut first, mut whole, mut last) = (u64::MAX, 0, 0);
    let (mut overwritten, mut lost) = (0_u64, 0_u64);
    let mut add = |why, count| match why {
        Why::Overwritten => overwritten = overwritten.saturating_add(count),
        Why::Lost(_) | Why::Unsent => lost = lost.saturating_add(count),
        Why::Missing | Why::Removed | Why::Late => {}
    };
    for slot in &session.slots {
        let losses = loss::of_slot(session, slot);
        let gap = losses.items.iter().filter(|(_, loss)| is_gap(loss.why));
        if let Some((after, _)) = gap.max_by_key(|(place, _)| *place) {
            whole = whole.max(start_of(slot, *after).unwrap_or(0));
        }
        losses.items.iter().for_each(|(_, l)| add(l.why, l.count));
        first = first.min(start_of(slot, 0).unwrap_or(u64::MAX));
        let ends = slot.pages.iter().filter_map(|page| page.summary.ticks);
        last = ends.map(|ticks| ticks.1).fold(last, u64::max);
    }
    for (_, loss) in loss::of_session(session) {
        add(loss.why, loss.count);
    }
    if first == u64::MAX {
        return None;
    }
    let clock = &session.clock;
    // After the end of the process its clock goes on, and the session covers nothing more.
    let counters = session.counters.as_ref();
    let counters = counters.filter(|_| session.ending.is_none());
    let sampled = counters.and_then(|c| c.sample());
    let sampled = sampled.map_or(0, |s| s.mono_ns.saturating_sub(clock.mono_zero_ns));
    Some(Cover {
        session,
        from_ns: clock.t_ns(first.max(whole)),
        to_ns: clock.t_ns(last.max(session.dead_tick)).max(sampled),
        overwritten,
        lost,
    })
}

const fn is_gap(why: Why) -> bool {
    !matches!(why, Why::Lost(_))
}

/// The tick with which a page of the slot begins, or the window in it.
fn start_of(slot: &Slot, page: usize) -> Option<u64> {
    let page = slot.pages.get(page)?;
    let first = page.summary.ticks.map(|ticks| ticks.0);
    Some(first.unwrap_or(page.header.tick_base).max(page.from))
}
