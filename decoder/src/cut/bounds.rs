//! Which ticks of a session are inside a piece.

use crate::blocks::page::Page;
use crate::events::filter::Filter;
use crate::trace_file::session::Session;

/// The bounds of a piece, in the terms of one session.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// `CLOCK_MONOTONIC` in ns from when on events are shown; 0: from the session's start.
    pub(super) from_mono_ns: u64,
    /// The same as a tick.
    from: u64,
    /// First tick after the piece; [`u64::MAX`]: it has no end.
    pub(super) to: u64,
    /// Whether the session's end, as far as it is known, is in the piece.
    pub(super) has_end: bool,
}

impl Bounds {
    /// The bounds that the times of `filter` are for a session, whatever kind of time they are.
    ///
    /// Times are exact: a tick is inside if and only if an event with it passes the filter.
    pub(super) fn of(session: &Session, filter: &Filter) -> Self {
        let clock = &session.clock;
        let (from, to) = filter.bounds(clock);
        let mono = |t_ns: u64| clock.mono_zero_ns.saturating_add(t_ns);
        let tick = |t_ns| match t_ns {
            0 => 0,
            _ => clock.first_tick(mono(t_ns)),
        };
        let from = from.filter(|t_ns| *t_ns > 0);
        let to = to.map_or(u64::MAX, tick);
        Self {
            from_mono_ns: from.map_or(0, mono),
            from: from.map_or(0, tick),
            to,
            has_end: session.left_out.is_empty() && last_tick(session) < to,
        }
    }

    /// The tick from which on records of this page are shown, which may be a piece already.
    pub(super) fn from(&self, page: &Page) -> u64 {
        self.from.max(page.from)
    }

    /// Whether records of this page with this tick are shown.
    pub(super) fn hold(&self, page: &Page, tick: u64) -> bool {
        tick >= self.from(page) && tick < self.to
    }
}

/// Tick of the session's last event; 0: it has none here.
fn last_tick(session: &Session) -> u64 {
    let pages = session.slots.iter().flat_map(|slot| &slot.pages);
    let ticks = pages.filter_map(|page| page.summary.ticks);
    ticks.map(|(_, last)| last).max().unwrap_or(0)
}
