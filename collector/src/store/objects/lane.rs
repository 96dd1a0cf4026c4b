//! The way of blocks into objects: one open segment for all connections of a collector. Segments are put
//! one after the other, so one that is there says that all before it are.
//!
//! Nothing here reads a clock or puts an object: `uploader` does.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::open_segment::{OpenSegment, Owner, SchemaPiece};

/// When a segment is closed.
#[derive(Debug, Clone, Copy)]
pub(in crate::store) struct CloseAt {
    /// Bytes from which on it is.
    pub(in crate::store) bytes: u64,
    /// Its age.
    pub(in crate::store) age: Duration,
    /// Its age where a streamer waits for its last acknowledgement.
    pub(in crate::store) hurried: Duration,
}

/// The segments of a collector that are not durable.
#[derive(Debug)]
pub(in crate::store) struct Lane {
    close_at: CloseAt,
    open: Option<OpenSegment>,
    closed: VecDeque<OpenSegment>,
    /// Number of the next segment.
    next: u64,
    /// A streamer waits for what is in the open segment.
    is_hurried: bool,
    /// No more will be put.
    has_ended: bool,
}

impl Lane {
    pub(in crate::store) fn new(close_at: CloseAt) -> Self {
        Self {
            close_at,
            open: None,
            closed: VecDeque::new(),
            next: 0,
            is_hurried: false,
            has_ended: false,
        }
    }

    /// The segment into which a block of this session goes now.
    fn open(&mut self, owner: &Owner, now: Instant) -> &mut OpenSegment {
        if self.open.as_ref().is_some_and(|open| open.has_other(owner)) {
            self.close();
        }
        let next = &mut self.next;
        self.open.get_or_insert_with(|| {
            *next += 1;
            OpenSegment::new(*next - 1, now)
        })
    }

    /// Appends a whole block; returns the number of its segment, and by how much what is held grew.
    pub(super) fn append(
        &mut self,
        owner: &Owner,
        block: &[u8],
        preamble: impl FnOnce() -> Vec<u8>,
        now: Instant,
    ) -> (u64, u64) {
        self.add(owner, now, |open| open.append(owner, block, preamble))
    }

    /// Adds schema, likewise.
    pub(super) fn add_schema(
        &mut self,
        owner: &Owner,
        piece: SchemaPiece,
        preamble: Vec<u8>,
        now: Instant,
    ) -> (u64, u64) {
        self.add(owner, now, |open| open.add_schema(owner, piece, preamble))
    }

    fn add(
        &mut self,
        owner: &Owner,
        now: Instant,
        add: impl FnOnce(&mut OpenSegment),
    ) -> (u64, u64) {
        let most = self.close_at.bytes;
        let open = self.open(owner, now);
        let before = open.held();
        add(open);
        let (number, held) = (open.number, open.held());
        if held >= most {
            self.close();
        }
        (number, held - before)
    }

    /// Closes the open segment soon: a peer waits.
    pub(super) fn hurry(&mut self) {
        self.is_hurried |= self.open.is_some();
    }

    /// Has no more put: the collector ends.
    pub(super) const fn end(&mut self) {
        self.has_ended = true;
    }

    /// Whether no more will be put.
    pub(super) const fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// When the open segment is to be closed; `None`: there is none.
    pub(super) fn due(&self) -> Option<Instant> {
        let age = match self.is_hurried {
            true => self.close_at.hurried.min(self.close_at.age),
            false => self.close_at.age,
        };
        Some(self.open.as_ref()?.begun + age)
    }

    /// The next segment to be put, if one is due.
    pub(super) fn take(&mut self, now: Instant) -> Option<OpenSegment> {
        if self.closed.is_empty() && self.due().is_some_and(|due| due <= now) {
            self.close();
        }
        self.closed.pop_front()
    }

    fn close(&mut self) {
        self.closed.extend(self.open.take());
        self.is_hurried = false;
    }
}

#[cfg(test)]
mod tests {
    use ringmark_format::Uuid;

    use super::*;

    fn owner(session: u8, host: &str) -> Owner {
        Owner {
            session: Uuid([session; 16]),
            host: host.to_owned(),
            service: String::new(),
            epoch: 1,
            schema_bytes: 0,
        }
    }

    fn lane() -> Lane {
        Lane::new(CloseAt {
            bytes: 100,
            age: Duration::from_secs(5),
            hurried: Duration::from_millis(50),
        })
    }

    #[test]
    fn a_segment_is_put_when_it_is_full_or_old_and_in_order() {
        let (mut lane, begin) = (lane(), Instant::now());
        let at = |millis| begin + Duration::from_millis(millis);
        assert!(lane.due().is_none() && lane.take(begin).is_none());
        let a = owner(1, "a");
        assert_eq!(lane.append(&a, &[0; 60], || vec![0; 10], begin), (0, 70));
        assert_eq!(lane.append(&a, &[0; 20], || vec![0; 10], at(1)), (0, 20));
        assert!(lane.take(at(4999)).is_none());
        assert_eq!(
            lane.append(&a, &[0; 20], Vec::new, at(4999)),
            (0, 20),
            "full"
        );
        assert_eq!(lane.append(&a, &[0; 20], Vec::new, at(4999)), (1, 20));
        let numbers = |lane: &mut Lane, at| lane.take(at).map(|segment| segment.number);
        assert_eq!(numbers(&mut lane, at(4999)), Some(0));
        assert_eq!(numbers(&mut lane, at(4999)), None, "young");
        assert_eq!(numbers(&mut lane, at(9999)), Some(1));
        lane.hurry();
        assert!(lane.due().is_none(), "nothing is open");
        let _ = lane.append(&a, &[0; 20], Vec::new, at(20_000));
        lane.hurry();
        assert_eq!(numbers(&mut lane, at(20_050)), Some(2));
    }

    #[test]
    fn no_segment_has_one_uuid_of_two_hosts() {
        let (mut lane, now) = (lane(), Instant::now());
        let (first, second) = (owner(1, "a"), owner(1, "b"));
        assert_eq!(lane.append(&first, &[0; 8], Vec::new, now).0, 0);
        assert_eq!(lane.append(&owner(2, "b"), &[0; 8], Vec::new, now).0, 0);
        assert_eq!(lane.append(&second, &[0; 8], Vec::new, now).0, 1);
        assert_eq!(lane.append(&first, &[0; 8], Vec::new, now).0, 2);
    }
}
