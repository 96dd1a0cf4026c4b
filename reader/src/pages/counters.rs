//! The content of COUNTERS blocks: what every slot produced and lost, and a clock sample.
//!
//! All figures are cumulative. A decoder subtracts what it read from what was produced, so a block
//! that was lost on the way costs nothing but freshness.

use std::mem::offset_of;

use ringmark_format::block::CONTENT_BYTES_MAX;
use ringmark_format::counters::{CountersHeader, FINAL, SCHEMA_INCOMPLETE, SlotCounters};
use ringmark_ring::{ClockSample, SlotView, clock};
use zerocopy::IntoBytes;

use crate::sessions::session::Session;

/// Most slots that one COUNTERS block has room for.
const SLOTS_MAX: usize = (CONTENT_BYTES_MAX as usize - CountersHeader::BYTES) / SlotCounters::BYTES;

/// Whether counters are the last ones of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finality {
    /// More may follow: the session runs, or not all of it was read.
    Interim,
    /// The session has ended and everything in it was read. What they count beyond the pages of
    /// the dump is lost.
    Final,
}

impl Finality {
    /// Final counters where this holds, else interim ones.
    pub(crate) const fn final_if(is_final: bool) -> Self {
        match is_final {
            true => Self::Final,
            false => Self::Interim,
        }
    }
}

/// Content of a COUNTERS block.
pub(crate) fn content(session: &Session, slots: &[SlotCounters], finality: Finality) -> Vec<u8> {
    let slots = &slots[..slots.len().min(SLOTS_MAX)];
    let ring = session.ring();
    let sample = clock_sample(session);
    let mut flags = 0;
    if finality == Finality::Final {
        flags |= FINAL;
    }
    if ring.schema_incomplete() {
        flags |= SCHEMA_INCOMPLETE;
    }
    let header = CountersHeader {
        sample_tick: sample.tick,
        sample_mono_ns: sample.mono_ns,
        sample_real_ns: clock::realtime_ns(),
        slots: slots.len() as u32,
        flags,
        lost: ring.lost(),
        schema_bytes: ring.schema_log().published(),
    };
    let mut content = header.as_bytes().to_vec();
    content.extend_from_slice(slots.as_bytes());
    content
}

/// A sample of the session's clock; zeros where ours is another one, because a sample of another
/// boot or time namespace would move the session's events in time.
fn clock_sample(session: &Session) -> ClockSample {
    let sample = clock::sample(session.ring().geometry().clock);
    if sample.mono_ns == 0 || !session.shares_clocks() {
        return ClockSample::default();
    }
    sample
}

/// Totals of one slot now; `events` are the reservations that its reader counted.
pub(crate) fn of_slot(index: u32, slot: &SlotView<'_>, events: u64) -> SlotCounters {
    let owner = slot.owner();
    SlotCounters {
        slot: index,
        tid: owner.map_or(0, |owner| owner.tid),
        ring_id: owner.map_or(0, |owner| owner.ring_id.0),
        produced: slot.produced(),
        consumed: slot.consumed(),
        events,
        lost: slot.lost(),
    }
}

/// The counters that were written last, to leave out those that say nothing new.
#[derive(Debug, Default)]
pub(crate) struct LastCounters(Vec<u8>);

impl LastCounters {
    /// Whether `content` differs from the last counters in more than its clock sample. It then
    /// takes their place.
    pub(crate) fn differ_from(&mut self, content: &[u8]) -> bool {
        // The clock sample, which always differs, comes first in the header.
        let after_sample = offset_of!(CountersHeader, slots);
        let figures = content.get(after_sample..).unwrap_or_default();
        if self.0 == figures {
            return false;
        }
        figures.clone_into(&mut self.0);
        true
    }
}
