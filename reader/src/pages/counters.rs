//! The content of COUNTERS blocks: what every slot produced and lost, and a clock sample.

use ringmark_format::block::CONTENT_BYTES_MAX;
use ringmark_format::counters::{CountersHeader, FINAL, SCHEMA_INCOMPLETE, SlotCounters};
use ringmark_ring::{ClockSample, SlotView, clock};
use zerocopy::IntoBytes;

use crate::sessions::session::Session;

/// Most slots that one COUNTERS block holds.
const SLOTS_MAX: usize = (CONTENT_BYTES_MAX as usize - CountersHeader::BYTES) / SlotCounters::BYTES;

/// Content of a COUNTERS block. `finished`: the session has ended and everything was read.
pub(crate) fn content(session: &Session, slots: &[SlotCounters], finished: bool) -> Vec<u8> {
    let slots = &slots[..slots.len().min(SLOTS_MAX)];
    let ring = session.ring();
    let sample = clock_sample(session);
    let header = CountersHeader {
        sample_tick: sample.tick,
        sample_mono_ns: sample.mono_ns,
        sample_real_ns: clock::realtime_ns(),
        slots: slots.len() as u32,
        flags: if finished { FINAL } else { 0 }
            | if ring.schema_incomplete() {
                SCHEMA_INCOMPLETE
            } else {
                0
            },
        lost: ring.lost(),
        schema_bytes: ring.schema_log().published(),
    };
    let mut content = header.as_bytes().to_vec();
    content.extend_from_slice(slots.as_bytes());
    content
}

/// A sample is worth something only if it was taken on the boot and clock of the session.
fn clock_sample(session: &Session) -> ClockSample {
    let sample = clock::sample(session.ring().geometry().clock);
    if sample.mono_ns == 0 || !session.shares_clocks() {
        return ClockSample::default();
    }
    sample
}

/// Totals of one slot now.
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

/// Whether counters say anything that they did not say before.
#[derive(Debug, Default)]
pub(crate) struct News {
    last: Vec<u8>,
}

impl News {
    /// Whether these differ from the last ones in more than their clock sample.
    pub(crate) fn are_in(&mut self, content: &[u8]) -> bool {
        let after_sample = content.get(24..).unwrap_or_default();
        if self.last == after_sample {
            return false;
        }
        after_sample.clone_into(&mut self.last);
        true
    }
}
