//! What is under way to the collector: which pages may be released once which byte is durable.

use std::collections::VecDeque;

use ringmark_format::Uuid;

/// Positions of a session's slots.
pub(super) type Marks = Vec<(u32, u64)>;

/// One batch under way.
#[derive(Debug)]
struct Flight {
    /// Byte of the connection behind it.
    end: u64,
    session: Uuid,
    marks: Marks,
}

/// Batches under way on one connection, in order.
#[derive(Debug, Default)]
pub(super) struct Flights {
    flights: VecDeque<Flight>,
}

impl Flights {
    /// A batch went out; its last byte is the one before `end`.
    pub(super) fn push(&mut self, end: u64, session: Uuid, marks: Marks) {
        self.flights.push_back(Flight {
            end,
            session,
            marks,
        });
    }

    /// The next batch that is durable when the first `durable` bytes are.
    pub(super) fn landed(&mut self, durable: u64) -> Option<(Uuid, Marks)> {
        let first = self.flights.front()?;
        if first.end > durable {
            return None;
        }
        let flight = self.flights.pop_front()?;
        Some((flight.session, flight.marks))
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
        flights.push(10, session, vec![(0, 1)]);
        flights.push(20, session, vec![(0, 2), (1, 1)]);
        assert!(flights.landed(9).is_none());
        assert_eq!(flights.landed(19), Some((session, vec![(0, 1)])));
        assert!(flights.landed(19).is_none() && flights.holds(session));
        assert_eq!(flights.landed(20), Some((session, vec![(0, 2), (1, 1)])));
        assert!(!flights.holds(session));
    }
}
