//! A connection without a socket: what it may send, what is taken in, and what is acknowledged.

use std::time::Instant;

use ringmark_format::block::kind;
use ringmark_format::block_at::Blocks;

use super::acks::Acks;
use super::lane_share::LaneShare;
use crate::mutex::lock;
use crate::store::objects::credits::BlockRoom;
use crate::store::stepped_objects::{CountedSession, SteppedObjects};
use crate::store::{SharedSession, StoreError};

/// What became of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// It was taken in.
    Yes,
    /// There is no memory for it now; nothing of the connection is taken in before it.
    Waits,
    /// It came without credit.
    BeyondCredit,
}

/// A connection to a collector of objects.
#[derive(Debug)]
pub struct SteppedConnection {
    share: LaneShare,
    acks: Acks,
    /// Memory of the block that waits for more.
    room: Option<BlockRoom>,
}

impl SteppedConnection {
    /// One that begins now, and the position up to which it may send.
    #[must_use]
    pub fn new(collector: &SteppedObjects) -> (Self, u64) {
        let share = LaneShare::new(collector.credits().clone(), collector.now());
        let mut made = Self {
            share,
            acks: Acks::default(),
            room: None,
        };
        let credit = made.more_credit(collector);
        (made, credit)
    }

    /// Notes that a session with pages of this size was announced.
    pub fn expect_pages(&mut self, bytes: u64) {
        self.share.expect_pages(bytes);
    }

    /// Takes in a whole block of a session.
    ///
    /// # Errors
    /// The session refuses it.
    pub fn take(
        &mut self,
        collector: &SteppedObjects,
        session: &SharedSession,
        block: &[u8],
    ) -> Result<Taken, StoreError> {
        let Some(found) = Blocks::new(block).next() else {
            return Ok(Taken::Yes);
        };
        let bytes = block.len() as u64;
        let is_stored = found.header.kind != kind::SESSION;
        let preamble = lock(session).preamble_bytes();
        let most = if is_stored { bytes + preamble } else { 0 };
        if matches!(found.header.kind, kind::PAGE | kind::CONTAINER) {
            self.share.expect_no_schema();
        }
        match self.make_room(collector, bytes, most) {
            Taken::Yes => {}
            other => return Ok(other),
        }
        if is_stored {
            let content = found.content().unwrap_or_default();
            let mut session = lock(session);
            session.add(&found.header, content, block)?;
            self.acks.note_segment(session.segment());
        }
        self.took(bytes);
        Ok(Taken::Yes)
    }

    /// Takes in blocks of this many bytes, which are only counted. `session`: theirs; `None`: what is not stored.
    pub fn count(
        &mut self,
        collector: &SteppedObjects,
        session: Option<&mut CountedSession>,
        bytes: u64,
    ) -> Taken {
        if session.is_some() {
            self.share.expect_no_schema();
        }
        let preamble = session.as_ref().map(|session| session.preamble_bytes());
        let most = preamble.map_or(0, |preamble| bytes + preamble);
        match self.make_room(collector, bytes, most) {
            Taken::Yes => {}
            other => return other,
        }
        if let Some(session) = session {
            self.acks.note_segment(Some(session.count(bytes)));
        }
        self.took(bytes);
        Taken::Yes
    }

    /// Uses credit for a block, and takes memory for what it grows to.
    fn make_room(&mut self, collector: &SteppedObjects, bytes: u64, most: u64) -> Taken {
        if self.room.is_none() {
            if !self.share.has_credit(bytes) {
                return Taken::BeyondCredit;
            }
            self.room = self.share.use_credit(bytes, collector.now());
        }
        match self.room.as_mut().is_none_or(|room| room.try_grow_to(most)) {
            true => Taken::Yes,
            false => Taken::Waits,
        }
    }

    /// Notes that a block is in a segment.
    fn took(&mut self, bytes: u64) {
        self.room = None;
        self.acks.receive(bytes);
        let segment = self.acks.take_segment();
        segment
            .into_iter()
            .for_each(|segment| self.share.touch(segment));
        self.share.receive(self.acks.received());
    }

    /// What ACK says now, if it says more than before: the durable position, and the one up to which the
    /// streamer may send.
    pub fn settle(&mut self, collector: &SteppedObjects) -> Option<(u64, u64)> {
        let before = (self.acks.durable(), self.acks.add_credit(0));
        if let Some(durable) = self.share.take_durable(collector.durable()) {
            let _ = self.acks.acknowledge(durable);
        }
        let credit = self.more_credit(collector);
        let now = (self.acks.durable(), credit);
        (now != before).then_some(now)
    }

    fn more_credit(&mut self, collector: &SteppedObjects) -> u64 {
        let more = self
            .share
            .take_credit(self.acks.under_way(), collector.now());
        self.acks.add_credit(more)
    }

    /// When it is quiet, if no block comes before.
    #[must_use]
    pub const fn quiet_at(&self) -> Instant {
        self.share.quiet_at()
    }

    /// Whether it waits for credit.
    #[must_use]
    pub fn is_short(&self, collector: &SteppedObjects) -> bool {
        self.share.is_short(collector.now())
    }

    /// Bytes that came and are not durable.
    #[must_use]
    pub const fn under_way(&self) -> u64 {
        self.acks.under_way()
    }

    /// Bytes that came.
    #[must_use]
    pub const fn received(&self) -> u64 {
        self.acks.received()
    }
}
