//! The way of blocks into objects: one open segment for all connections of a collector, and one more for each
//! other host with a session uuid that is in it. Segments are put one after the other, so one that is there says
//! that all before it are.
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
    /// By ascending number.
    open: VecDeque<OpenSegment>,
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
            open: VecDeque::new(),
            closed: VecDeque::new(),
            next: 0,
            is_hurried: false,
            has_ended: false,
        }
    }

    /// Place of the segment into which a block of this session goes now: not before its earlier ones.
    fn place(&mut self, owner: &Owner, now: Instant) -> usize {
        let takes = |open: &OpenSegment| open.number >= owner.from && !open.has_other(owner);
        let found = self.open.iter().position(takes);
        found.unwrap_or_else(|| {
            self.open.push_back(OpenSegment::new(self.next, now));
            self.next += 1;
            self.open.len() - 1
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

    #[cfg(feature = "models")]
    /// Counts bytes of blocks that are not there, likewise.
    pub(super) fn count(
        &mut self,
        owner: &Owner,
        bytes: u64,
        preamble: impl FnOnce() -> Vec<u8>,
        now: Instant,
    ) -> (u64, u64) {
        self.add(owner, now, |open| open.count(owner, bytes, preamble))
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
        let place = self.place(owner, now);
        let open = &mut self.open[place];
        let before = open.held();
        add(open);
        let (number, held) = (open.number, open.held());
        if held >= self.close_at.bytes || open.has_full_footer() {
            self.close(place + 1);
        }
        (number, held - before)
    }

    /// Closes the open segment soon: a peer waits.
    pub(super) fn hurry(&mut self) {
        self.is_hurried |= !self.open.is_empty();
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
        Some(self.open.front()?.begun + age)
    }

    /// The next segment to be put, if one is due.
    pub(super) fn take(&mut self, now: Instant) -> Option<OpenSegment> {
        if self.closed.is_empty() && self.due().is_some_and(|due| due <= now) {
            let is_old = |open: &OpenSegment| open.begun + self.close_at.age <= now;
            let old = self.open.partition_point(is_old).max(1);
            self.close(if self.is_hurried {
                self.open.len()
            } else {
                old
            });
        }
        self.closed.pop_front()
    }

    /// Closes the first ones: no segment is put before an earlier one.
    fn close(&mut self, count: usize) {
        self.closed.extend(self.open.drain(..count));
        self.is_hurried &= !self.open.is_empty();
    }
}

#[cfg(test)]
mod tests {
    use ringmark_decoder::store::SegmentFooter;
    use ringmark_format::Uuid;
    use ringmark_format::block::kind;
    use ringmark_format::block_at::Blocks;
    use ringmark_format::codec::write;

    use super::*;

    fn owner(session: u8, host: &str) -> Owner {
        Owner {
            session: Uuid([session; 16]),
            host: host.to_owned(),
            service: String::new(),
            epoch: 1,
            schema_bytes: 0,
            from: 0,
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
        let mut append = |owner: &Owner| lane.append(owner, &[0; 8], Vec::new, now).0;
        assert_eq!(append(&second), 1);
        for _ in 0..3 {
            assert_eq!((append(&first), append(&second)), (0, 1), "two are enough");
        }
        assert_eq!(append(&owner(1, "c")), 2);
        // What came before in a later segment is not overtaken.
        let later = Owner {
            from: 2,
            ..owner(3, "c")
        };
        assert_eq!(append(&later), 2);
        lane.hurry();
        let after = now + Duration::from_millis(50);
        let numbers: Vec<_> = (0..4)
            .filter_map(|_| lane.take(after))
            .map(|segment| segment.number)
            .collect();
        assert_eq!(numbers, [0, 1, 2]);
        let first_again = lane.append(&first, &[0; 8], Vec::new, after);
        assert_eq!(first_again.0, 3);
        assert_eq!(lane.append(&second, &[0; 100], Vec::new, after).0, 4);
        let numbers: Vec<_> = (0..3)
            .filter_map(|_| lane.take(after))
            .map(|segment| segment.number)
            .collect();
        assert_eq!(numbers, [3, 4], "a full one is put after those before it");
    }

    #[test]
    fn the_blocks_of_a_session_lie_together_and_the_sessions_of_a_host() {
        let (mut lane, now) = (lane(), Instant::now());
        lane.close_at.bytes = u64::MAX;
        let owners = [(3, "a"), (1, "b"), (2, "a")].map(|(session, host)| owner(session, host));
        for round in 0..5 {
            for owner in &owners {
                let block = |kind| {
                    let mut block = Vec::new();
                    let header = write::header(kind, owner.session);
                    write::block(&mut block, header, &[round; 40]).unwrap();
                    block
                };
                let preamble = || block(kind::HOST_CLOCK);
                let _ = lane.append(owner, &block(kind::COUNTERS), preamble, now);
            }
        }
        let segment = lane.take(now + Duration::from_secs(60)).unwrap();
        let bytes = segment.objects("2026-11-26-19", Uuid([1; 16])).1.bytes;
        let end = bytes.len() - SegmentFooter::end_bytes(&bytes).unwrap();
        let footer = SegmentFooter::read(&bytes[end..]).unwrap();
        assert!(footer.is_grouped && footer.segment_bytes == end as u64);
        let hosts: Vec<_> = footer
            .sessions
            .iter()
            .map(|of| of.host.as_slice())
            .collect();
        assert_eq!(hosts, [b"a", b"a", b"b"]);
        let mut rest = &bytes[..end];
        for entry in &footer.sessions {
            let (blocks, after) = rest.split_at(entry.bytes as usize);
            let of: Vec<_> = Blocks::new(blocks)
                .map(|block| block.header.session)
                .collect();
            assert_eq!(of, [entry.session.0; 6]);
            rest = after;
        }
        assert!(rest.is_empty());
    }

    #[test]
    fn no_segment_has_more_sessions_than_a_footer_holds() {
        let (mut lane, now) = (lane(), Instant::now());
        lane.close_at.bytes = u64::MAX;
        let long = "h".repeat(250);
        for session in 0..20_000_u128 {
            let mut owner = owner(0, &long);
            owner.session = Uuid(session.to_be_bytes());
            owner.service.clone_from(&long);
            let _ = lane.append(&owner, &[], Vec::new, now);
        }
        let mut segments = 0;
        while let Some(segment) = lane.take(now + Duration::from_secs(60)) {
            let (_, object) = segment.objects("2026-11-26-19", Uuid([1; 16]));
            assert!(SegmentFooter::end_bytes(&object.bytes).is_some());
            segments += 1;
        }
        assert!(segments > 1, "{segments}");
    }
}
