//! What a connection whose blocks go into objects has of the collector's memory, and which of its bytes lie in
//! which segment.
//!
//! What it may send is set aside for it while it sends. One that is quiet gives that back and may send the largest
//! block all the same: such a block is taken in when there is memory for it. So no connection keeps what others
//! need, and none waits for ever. Nothing here reads a clock or waits.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::acks::WINDOW;
use crate::store::objects::credits::{BLOCK_BYTES_MAX, BlockRoom, Credits, Wanted};

/// What a connection needs before the first page of a session: SESSION, schema, counters. A larger block waits until the
/// connection is quiet.
const LEAST: u64 = 128 << 10;
/// What it needs besides a page: the header, and what comes with pages.
const BESIDES: u64 = 1 << 10;
/// What a connection that sends much may have, and not have used.
const UNUSED: u64 = 1280 << 10;
/// How long after its last block a connection is quiet.
const QUIET: Duration = Duration::from_secs(1);

/// Bytes of the connection up to a segment's end.
#[derive(Debug, Clone, Copy)]
struct Mark {
    /// Segments that must be durable.
    segments: u64,
    /// The received position then.
    received: u64,
}

/// The share of one connection.
#[derive(Debug)]
pub(crate) struct LaneShare {
    credits: Arc<Credits>,
    /// Credit that was given and not used.
    unused: u64,
    /// The part of it for which memory is set aside.
    set_aside: u64,
    /// Bytes of the largest page of its sessions.
    page: u64,
    /// No page came since a session was announced: its schema comes.
    awaits_schema: bool,
    /// It is counted among those that send.
    sends: bool,
    /// When it is quiet, if no block comes before.
    quiet_at: Instant,
    /// Segments that must be durable for what came last.
    segments: u64,
    marks: VecDeque<Mark>,
}

impl LaneShare {
    /// That of a connection that begins now.
    pub(crate) fn new(credits: Arc<Credits>, now: Instant) -> Self {
        Self {
            credits,
            unused: 0,
            set_aside: 0,
            page: 0,
            awaits_schema: true,
            sends: false,
            quiet_at: now + QUIET,
            segments: 0,
            marks: VecDeque::new(),
        }
    }

    /// Notes that a session with pages of this size was announced.
    pub(crate) fn expect_pages(&mut self, bytes: u64) {
        self.page = self.page.max(bytes);
        self.awaits_schema = true;
    }

    /// Notes that pages come.
    pub(crate) const fn expect_no_schema(&mut self) {
        self.awaits_schema = false;
    }

    /// With less set aside it cannot send its next block.
    const fn least(&self) -> u64 {
        match self.awaits_schema {
            true => LEAST + self.page,
            false => BESIDES + self.page,
        }
    }

    /// Notes that a block went into this segment.
    pub(crate) fn touch(&mut self, segment: u64) {
        self.segments = self.segments.max(segment + 1);
    }

    /// Whether there is credit for a block of this size.
    pub(crate) const fn has_credit(&self, bytes: u64) -> bool {
        self.unused >= bytes
    }

    /// Uses credit for a block. Returns the memory that was set aside for it; `None`: there was no credit for it.
    pub(crate) fn use_credit(&mut self, bytes: u64, now: Instant) -> Option<BlockRoom> {
        self.unused = self.unused.checked_sub(bytes)?;
        self.quiet_at = now + QUIET;
        let set_aside = self.set_aside.min(bytes);
        self.set_aside -= set_aside;
        Some(BlockRoom::of_credit(&self.credits, set_aside))
    }

    /// Notes that a block came, up to the received position.
    pub(crate) fn receive(&mut self, received: u64) {
        let mark = Mark {
            segments: self.segments,
            received,
        };
        match self
            .marks
            .back_mut()
            .filter(|last| last.segments == mark.segments)
        {
            Some(last) => *last = mark,
            None => self.marks.push_back(mark),
        }
    }

    /// The received position up to which all is durable when this number of segments is, if that has moved.
    pub(crate) fn take_durable(&mut self, segments: u64) -> Option<u64> {
        let mut reached = None;
        while let Some(mark) = self.marks.front().filter(|mark| mark.segments <= segments) {
            reached = Some(mark.received);
            self.marks.pop_front();
        }
        reached
    }

    /// Takes more credit, if it needs some and there is some. `under_way`: bytes that are not durable.
    pub(crate) fn take_credit(&mut self, under_way: u64, now: Instant) -> u64 {
        if self.needs_nothing(under_way, now) {
            self.give_back();
            // What waits there may be larger than what it may send.
            return self.allow(if under_way == 0 { BLOCK_BYTES_MAX } else { 0 });
        }
        if !std::mem::replace(&mut self.sends, true) {
            self.credits.add_sender();
        }
        let least = self.least();
        let most = WINDOW.saturating_sub(under_way).min(UNUSED).max(least);
        self.set_aside += self.credits.take(Wanted { least, most }, self.set_aside);
        self.allow(self.set_aside)
    }

    /// Whether it is quiet, and not for want of credit. If nothing is under way, it gets credit all the same.
    fn needs_nothing(&self, under_way: u64, now: Instant) -> bool {
        self.quiet_at <= now && (under_way == 0 || self.unused >= self.least())
    }

    /// Lets it send up to this in all; returns by how much that is more than it could.
    fn allow(&mut self, unused: u64) -> u64 {
        let more = unused.saturating_sub(self.unused);
        self.unused += more;
        more
    }

    /// Gives back what is set aside for it: it does not send.
    fn give_back(&mut self) {
        self.credits.give(std::mem::take(&mut self.set_aside));
        if std::mem::take(&mut self.sends) {
            self.credits.remove_sender();
        }
    }

    /// When it is quiet, if no block comes before.
    pub(crate) const fn quiet_at(&self) -> Instant {
        self.quiet_at
    }

    /// Whether some of its bytes are not durable.
    pub(crate) fn waits(&self) -> bool {
        !self.marks.is_empty()
    }

    /// Whether it waits for credit.
    pub(crate) fn is_short(&self, now: Instant) -> bool {
        self.set_aside < self.least() && !self.needs_nothing(u64::from(self.waits()), now)
    }
}

impl Drop for LaneShare {
    fn drop(&mut self) {
        self.give_back();
    }
}
