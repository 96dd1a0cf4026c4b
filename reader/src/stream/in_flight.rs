//! Batches under way to the collector: which pages may be released once which byte is durable.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use ringmark_format::Uuid;

use super::positions::SpillPosition;
use crate::pages::positions::SlotPosition;

/// What is not needed any more when a batch is durable.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Landing {
    /// Pages of rings before these.
    pub(super) rings: Vec<SlotPosition>,
    /// What waited on disk, before this.
    pub(super) spilled: Option<SpillPosition>,
}

impl Landing {
    pub(super) fn pages(rings: Vec<SlotPosition>) -> Self {
        Self {
            rings,
            spilled: None,
        }
    }

    pub(super) fn spilled(to: SpillPosition) -> Self {
        Self {
            rings: Vec::new(),
            spilled: Some(to),
        }
    }
}

/// One batch under way.
#[derive(Debug)]
struct Flight {
    /// Byte of the connection after it.
    end: u64,
    session: Uuid,
    bytes: u64,
    begun: Instant,
    landing: Landing,
}

/// Batches under way on one connection, in order.
#[derive(Debug, Default)]
pub(super) struct Flights {
    flights: VecDeque<Flight>,
    /// The end of the last one that is durable.
    landed: u64,
}

impl Flights {
    /// Adds a batch that was sent; its last byte is the one before `end`.
    pub(super) fn push(&mut self, end: u64, session: Uuid, landing: Landing) {
        let behind = self.flights.back().map_or(self.landed, |last| last.end);
        self.flights.push_back(Flight {
            end,
            session,
            bytes: end.saturating_sub(behind),
            begun: Instant::now(),
            landing,
        });
    }

    /// How long the oldest batch of a session has been under way.
    pub(super) fn age(&self, session: Uuid) -> Duration {
        let oldest = self.flights.iter().find(|f| f.session == session);
        oldest.map_or(Duration::ZERO, |f| f.begun.elapsed())
    }

    /// The next batch that is durable when the first `durable` bytes are.
    pub(super) fn landed(&mut self, durable: u64) -> Option<(Uuid, Landing)> {
        let first = self.flights.front()?;
        if first.end > durable {
            return None;
        }
        let flight = self.flights.pop_front()?;
        self.landed = flight.end;
        Some((flight.session, flight.landing))
    }

    /// Bytes of a session that are under way.
    pub(super) fn bytes(&self, session: Uuid) -> u64 {
        let its = self.flights.iter().filter(|f| f.session == session);
        its.map(|f| f.bytes).sum()
    }

    /// Whether something of this session is under way.
    pub(super) fn holds(&self, session: Uuid) -> bool {
        self.flights.iter().any(|f| f.session == session)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_lands_when_its_last_byte_is_durable_and_not_before() {
        let (mut flights, session) = (Flights::default(), Uuid([1; 16]));
        let position = |&(slot, next_page): &(u32, u64)| SlotPosition { slot, next_page };
        let pages = |of: &[(u32, u64)]| Landing::pages(of.iter().map(position).collect());
        flights.push(10, session, pages(&[(0, 1)]));
        flights.push(20, session, pages(&[(0, 2), (1, 1)]));
        assert!(flights.landed(9).is_none());
        assert_eq!(flights.landed(19), Some((session, pages(&[(0, 1)]))));
        assert!(flights.landed(19).is_none() && flights.holds(session));
        assert_eq!(
            flights.landed(20),
            Some((session, pages(&[(0, 2), (1, 1)])))
        );
        assert!(!flights.holds(session));
    }
}
