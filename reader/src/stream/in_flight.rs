//! Batches in flight: sent to the collector, and not known to be durable.
//!
//! The collector acknowledges bytes of the connection, in order. Each batch is kept with the
//! position of its last byte, so an acknowledgement says which pages may be released.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use ringmark_format::Uuid;

use super::positions::SpillPosition;
use crate::pages::positions::SlotPosition;

/// What may be released once a batch is durable.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Release {
    /// The pages before these, in their rings.
    pub pages: Vec<SlotPosition>,
    /// What lies before this place, in the session's spill.
    pub spilled_to: Option<SpillPosition>,
    /// The pages before these, which came from the session's spill.
    pub spilled: Vec<SlotPosition>,
    /// Bytes of the schema stream; 0: it came from the spill.
    pub schema_bytes: u64,
    /// Ranges of pages that are gone, of all that were found; 0: none were told.
    pub ranges: u64,
}

impl Release {
    /// Pages in rings, after these bytes of schema.
    pub fn pages(pages: Vec<SlotPosition>, schema_bytes: u64) -> Self {
        Self {
            pages,
            schema_bytes,
            ..Self::default()
        }
    }

    /// The first ranges of pages that are gone.
    pub fn told(ranges: u64) -> Self {
        Self {
            ranges,
            ..Self::default()
        }
    }

    /// Files on disk, with the pages before these positions.
    pub fn spilled(to: SpillPosition, spilled: Vec<SlotPosition>) -> Self {
        Self {
            spilled_to: Some(to),
            spilled,
            ..Self::default()
        }
    }
}

/// A batch that was sent.
#[derive(Debug)]
struct SentBatch {
    /// Position after its last byte, in bytes of the connection.
    end: u64,
    session: Uuid,
    bytes: u64,
    sent_at: Instant,
    release: Release,
}

/// A batch that the collector has for good.
#[derive(Debug, PartialEq, Eq)]
pub struct DurableBatch {
    pub session: Uuid,
    pub release: Release,
}

/// The batches in flight on one connection, in the order of sending.
#[derive(Debug, Default)]
pub struct InFlight {
    batches: VecDeque<SentBatch>,
    /// The end of the last batch that is durable.
    durable_to: u64,
}

impl InFlight {
    /// Adds a batch that was sent; its last byte is the one before `end`.
    pub fn push(&mut self, end: u64, session: Uuid, release: Release) {
        let begin = self.batches.back().map_or(self.durable_to, |last| last.end);
        self.batches.push_back(SentBatch {
            end,
            session,
            bytes: end.saturating_sub(begin),
            sent_at: Instant::now(),
            release,
        });
    }

    /// How long the oldest batch of a session has been in flight; 0 without one.
    pub fn age(&self, session: Uuid) -> Duration {
        let oldest = self.batches.iter().find(|sent| sent.session == session);
        oldest.map_or(Duration::ZERO, |sent| sent.sent_at.elapsed())
    }

    /// Removes the next batch that is durable when the first `durable` bytes are, and returns it.
    pub fn next_durable(&mut self, durable: u64) -> Option<DurableBatch> {
        let first = self.batches.front()?;
        if first.end > durable {
            return None;
        }
        let sent = self.batches.pop_front()?;
        self.durable_to = sent.end;
        Some(DurableBatch {
            session: sent.session,
            release: sent.release,
        })
    }

    /// Bytes of a session that are in flight.
    pub fn bytes(&self, session: Uuid) -> u64 {
        let its = self.batches.iter().filter(|sent| sent.session == session);
        its.map(|sent| sent.bytes).sum()
    }

    /// Whether a batch of this session is in flight.
    pub fn has(&self, session: Uuid) -> bool {
        self.batches.iter().any(|sent| sent.session == session)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_released_when_its_last_byte_is_durable_and_not_before() {
        let (mut in_flight, session) = (InFlight::default(), Uuid([1; 16]));
        let position = |&(slot, next_page): &(u32, u64)| SlotPosition { slot, next_page };
        let pages = |of: &[(u32, u64)]| Release::pages(of.iter().map(position).collect(), 0);
        let durable = |release| Some(DurableBatch { session, release });
        in_flight.push(10, session, pages(&[(0, 1)]));
        in_flight.push(20, session, pages(&[(0, 2), (1, 1)]));
        assert_eq!(in_flight.bytes(session), 20);
        assert!(in_flight.next_durable(9).is_none());
        assert_eq!(in_flight.next_durable(19), durable(pages(&[(0, 1)])));
        assert!(in_flight.next_durable(19).is_none() && in_flight.has(session));
        assert_eq!(in_flight.bytes(session), 10);
        let second = pages(&[(0, 2), (1, 1)]);
        assert_eq!(in_flight.next_durable(20), durable(second));
        assert!(!in_flight.has(session));
    }
}
