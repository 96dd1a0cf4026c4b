//! The account of a dump: what it holds, what was lost, and whether that adds up.

use std::collections::BTreeSet;

use ringmark_format::open_span::RING_WAIT_NS;
use ringmark_format::progress::SILENT_FOR_MS;

use crate::blocks::damage::Damage;
use crate::sums::endings::SessionEnd;
use crate::sums::profiled::ProfileGaps;
use crate::trace_file::dump::Dump;
use crate::trace_file::loss::{self, Loss, Why};
use crate::trace_file::session::{Session, Slot};

/// The events that were lost for one reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LostByCause {
    /// Name of the cause, as in `cat`.
    pub cause: &'static str,
    /// Number of events.
    pub events: u64,
}

/// The account of a dump.
///
/// `events + cancelled + uncommitted + reserved + overwritten + missing + removed + late + unknown` are all
/// reservations that were ever made in it. `lost` events never had one, except those that were gone before they
/// could be sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verification {
    /// Committed events that are here.
    pub events: u64,
    /// Events that were never written.
    pub lost: u64,
    /// The same by cause, causes in the order of first appearance.
    pub lost_by_cause: Vec<LostByCause>,
    /// Events that were written and then replaced (overwrite mode).
    pub overwritten: u64,
    /// Events that were written and are not in this dump.
    pub missing: u64,
    /// Events that a collector stored, and that were removed with the oldest segments of their
    /// sessions. Where a ring was overwritten before it was sent, those events are among them.
    pub removed: u64,
    /// Events that were written and are not here yet: their hosts have not said that they were sent.
    pub late: u64,
    /// The same of hosts that have been silent since.
    pub unknown: u64,
    /// Reservations that were cancelled.
    pub cancelled: u64,
    /// Reservations that were not committed when their page was read.
    pub uncommitted: u64,
    /// Records of a reserved type that this version does not know.
    pub reserved: u64,
    /// Events earlier than the recorded window: not shown, and not lost.
    pub left_out: u64,
    /// Events whose tick lies before that of the event before them in their ring.
    pub backward: u64,
    /// Pages whose clock sample lies before that of the page before: the clock itself went back.
    pub clock_steps: u64,
    /// Reservations that two pages of a slot both claim.
    pub contradictions: u64,
    /// Number of sessions.
    pub sessions: u64,
    /// Number of rings (claims of slots) that have pages here.
    pub rings: u64,
    /// Number of pages.
    pub pages: u64,
    /// Copies of pages that brought nothing new.
    pub repeated: u64,
    /// Copies of pages that contradict another one.
    pub conflicts: u64,
    /// Segments of a store that were removed while it was read; what was in them counts as if they
    /// had been removed before.
    pub removed_segments: u64,
    /// Files of a store that hold what a collector cut off the ends of segments. They are no
    /// damage: events that are gone for good count as missing.
    pub cut_off: u64,
    /// What could not be used.
    pub damage: Vec<Damage>,
    /// Earliest event, ns since 1970.
    pub first_ns: Option<u64>,
    /// Latest event, ns since 1970.
    pub last_ns: Option<u64>,
    /// Bound of the error when times of several hosts are compared, in ns; `None`: no collector
    /// measured their clocks.
    pub clock_error_ns: Option<u64>,
    /// Number of sessions that had no room to describe all their event types.
    pub incomplete_schemas: u64,
    /// Number of times that a profile tracer began to count and did not write what it had counted: its process ended by
    /// `_exit`, by exec or by a signal, or had not ended.
    pub unwritten_profiles: u64,
    /// Calls that no profile tracer counted, because their threads could not be set up.
    pub uncounted_calls: u64,
    /// Functions that were switched off for their cost while they were traced: their later calls are not here.
    pub functions_switched_off: u64,
    /// Longest time that a thread waited for its ring, at its first event, in ns; 0: none to speak of.
    pub ring_wait_ns: u64,
    /// Number of blocks of kinds that this version does not know. A newer version wrote them; they
    /// are no damage.
    pub unknown_blocks: u64,
    /// How the sessions ended that are known to have ended.
    pub endings: Vec<SessionEnd>,
    /// Whether nothing is damaged or missing, no function was switched off for its cost, and every session's final counters are here: every
    /// event is delivered or counted.
    pub complete: bool,
}

impl Dump {
    /// Counts every reservation of the dump by what became of it.
    #[must_use]
    pub fn verify(&self) -> Verification {
        self.verify_at(0)
    }

    /// As [`Dump::verify`], at this moment in ns since 1970: what is late of a host that has said
    /// nothing for long counts as unknown.
    #[must_use]
    pub fn verify_at(&self, now_ns: u64) -> Verification {
        let mut sum = Verification {
            sessions: self.sessions.len() as u64,
            repeated: self.repeated,
            conflicts: self.conflicts,
            removed_segments: self.removed_segments,
            unknown_blocks: self.unknown_blocks,
            damage: [self.damage.clone(), self.gone()].concat(),
            endings: self.endings(),
            ..Verification::default()
        };
        let gaps = self.profile_gaps();
        sum.unwritten_profiles = gaps.unwritten;
        sum.uncounted_calls = gaps.uncounted;
        sum.functions_switched_off = self.functions_switched_off();
        let mut all_final = !self.sessions.is_empty() && gaps == ProfileGaps::default();
        let mut late: u64 = 0;
        for session in &self.sessions {
            all_final &= session.is_final();
            sum.incomplete_schemas += u64::from(session.schema_incomplete());
            sum.add_session(session);
            let of_session = std::mem::take(&mut sum.late);
            match is_silent(session, now_ns) {
                true => sum.unknown = sum.unknown.saturating_add(of_session),
                false => late = late.saturating_add(of_session),
            }
        }
        sum.late = late;
        let is_traced = sum.functions_switched_off == 0;
        let is_here = sum.missing == 0 && sum.late == 0 && sum.unknown == 0 && is_traced;
        sum.complete = all_final && sum.damage.is_empty() && is_here && sum.contradictions == 0;
        sum
    }
}

/// Whether a session's host has said nothing for long.
pub(crate) fn is_silent(session: &Session, now_ns: u64) -> bool {
    let silent_for = u64::from(SILENT_FOR_MS) * 1_000_000;
    let said = session.progress.said_ns();
    said.is_some_and(|said| now_ns > said.saturating_add(silent_for))
}

/// Events whose tick lies before that of the event before them. Their code was interrupted, they
/// have a time that the program held, or the clock went back.
fn backward(slot: &Slot) -> u64 {
    let within: u64 = slot.pages.iter().map(|p| p.summary.backward).sum();
    let mut between = 0;
    let mut before = None;
    for page in &slot.pages {
        let Some((first, last)) = page.summary.ends else {
            continue;
        };
        between += u64::from(before.is_some_and(|(ring, tick)| ring == page.ring && first < tick));
        before = Some((page.ring, last));
    }
    within + between
}

/// How much earlier than the one before a page may begin: its first event may be one that was
/// interrupted, or have a time that the program held.
const HELD: u64 = 1 << 22;

/// Pages whose sample of the clock, or of `CLOCK_MONOTONIC`, went back.
fn clock_steps(slot: &Slot) -> u64 {
    let back = |new: u64, old: u64| new.saturating_add(HELD) < old;
    let pairs = slot.pages.iter().zip(slot.pages.iter().skip(1));
    let stepped = pairs.filter(|(old, new)| {
        let (old, new) = (&old.header, &new.header);
        let sampled = old.mono_base_ns != 0 && new.mono_base_ns != 0;
        back(new.tick_base, old.tick_base) || (sampled && back(new.mono_base_ns, old.mono_base_ns))
    });
    stepped.count() as u64
}

impl Verification {
    /// Counts the reservations and losses of a session.
    pub(crate) fn add_session(&mut self, session: &Session) {
        let losses = loss::of_session(session);
        losses.iter().for_each(|(_, loss)| self.add_loss(*loss));
        for slot in &session.slots {
            self.add_slot(session, slot);
        }
        let stacks = session.open_stacks.iter();
        let waits = stacks.map(|stack| stack.header.ring_wait_ns);
        let long = waits.filter(|ns| *ns >= RING_WAIT_NS).max();
        self.ring_wait_ns = self.ring_wait_ns.max(long.unwrap_or(0));
    }

    fn add_loss(&mut self, loss: Loss) {
        match loss.why {
            Why::Overwritten => self.overwritten = self.overwritten.saturating_add(loss.count),
            Why::Missing => self.missing = self.missing.saturating_add(loss.count),
            Why::Removed => self.removed = self.removed.saturating_add(loss.count),
            Why::Late => self.late = self.late.saturating_add(loss.count),
            Why::Lost(_) | Why::Unsent => {
                self.lost = self.lost.saturating_add(loss.count);
                let cause = loss.why.cause();
                let events = loss.count;
                match self.lost_by_cause.iter_mut().find(|l| l.cause == cause) {
                    Some(known) => known.events = known.events.saturating_add(events),
                    None => self.lost_by_cause.push(LostByCause { cause, events }),
                }
            }
        }
    }

    fn add_slot(&mut self, session: &Session, slot: &Slot) {
        let losses = loss::of_slot(session, slot);
        self.contradictions = self.contradictions.saturating_add(losses.contradictions);
        losses
            .items
            .iter()
            .for_each(|(_, loss)| self.add_loss(*loss));
        let rings: BTreeSet<u64> = slot.pages.iter().map(|p| p.ring.0).collect();
        self.rings += rings.len() as u64;
        self.pages += slot.pages.len() as u64;
        self.backward += backward(slot);
        self.clock_steps += clock_steps(slot);
        for page in &slot.pages {
            let counted = page.summary;
            self.events += counted.events;
            self.cancelled += counted.cancelled;
            self.uncommitted += counted.uncommitted;
            self.reserved += counted.reserved;
            self.left_out += counted.left_out;
            if let Some((low, high)) = counted.ticks.filter(|_| session.has_times()) {
                for tick in [low, high] {
                    let error = session.clock.error_ns(session.clock.t_ns(tick));
                    self.clock_error_ns = self.clock_error_ns.max(error);
                }
                let wall = |tick| session.clock.wall_of(tick, session.clock.t_ns(tick));
                let (low, high) = (wall(low), wall(high));
                self.first_ns = Some(self.first_ns.map_or(low, |ns| ns.min(low)));
                self.last_ns = Some(self.last_ns.map_or(high, |ns| ns.max(high)));
            }
        }
    }

    /// Whether no event and no profile was lost or is missing, and nothing is damaged. Overwritten events and
    /// those removed from a store are no fault.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        let is_counted = self.unwritten_profiles == 0 && self.uncounted_calls == 0;
        let is_here = self.lost == 0 && self.missing == 0 && is_counted;
        is_here && self.damage.is_empty() && self.contradictions == 0
    }
}
