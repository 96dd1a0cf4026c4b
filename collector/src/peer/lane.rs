//! A connection whose blocks go into objects: its part of the memory, and which of its bytes lie in which
//! segment.
//!
//! What it may send is set aside for it while it sends. One that is quiet gives that back and may send the largest
//! block all the same: such a block is taken in when there is memory for it. So no connection keeps what others
//! need, and none waits for ever.

use std::collections::VecDeque;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::acks::WINDOW;
use crate::connection_context::ConnectionContext;
use crate::store::object_sessions::Objects;
use crate::store::objects::Durable;
use crate::store::objects::credits::{BLOCK_BYTES_MAX, BlockRoom, Credits, Wanted};

/// What a connection without sessions needs: SESSION, schema, counters.
const LEAST: u64 = 128 << 10;
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

/// The part of one connection.
pub(super) struct Lane {
    context: Arc<ConnectionContext>,
    durable: watch::Receiver<Durable>,
    freed: watch::Receiver<()>,
    /// Credit that was given and not used.
    unused: u64,
    /// The part of it for which memory is set aside.
    set_aside: u64,
    /// With less set aside it cannot send much at once.
    least: u64,
    /// When it is quiet, if no block comes before.
    quiet_at: Instant,
    /// Segments that must be durable for what came last.
    segments: u64,
    marks: VecDeque<Mark>,
}

impl Lane {
    /// `None`: the collector has a directory.
    pub(super) fn of(context: &Arc<ConnectionContext>) -> Option<Self> {
        let objects = context.store.objects()?;
        Some(Self {
            durable: objects.durable(),
            freed: objects.credits().follow(),
            context: context.clone(),
            unused: 0,
            set_aside: 0,
            least: LEAST,
            quiet_at: Instant::now() + QUIET,
            segments: 0,
            marks: VecDeque::new(),
        })
    }

    fn objects(&self) -> Option<&Objects> {
        self.context.store.objects()
    }

    fn credits(&self) -> Option<&Arc<Credits>> {
        self.objects().map(Objects::credits)
    }

    /// Notes that a session with pages of this size was announced.
    pub(super) fn expect_pages(&mut self, bytes: u64) {
        self.least = self.least.max(LEAST + bytes);
    }

    /// Notes that a block went into this segment.
    pub(super) fn touch(&mut self, segment: u64) {
        self.segments = self.segments.max(segment + 1);
    }

    /// Whether there is credit for a block of this size.
    pub(super) const fn has_credit(&self, bytes: u64) -> bool {
        self.unused >= bytes
    }

    /// Uses credit for a block. Returns the memory that was set aside for it; `None`: there was no credit for it.
    pub(super) fn use_credit(&mut self, bytes: u64) -> Option<BlockRoom> {
        self.unused = self.unused.checked_sub(bytes)?;
        self.quiet_at = Instant::now() + QUIET;
        let set_aside = self.set_aside.min(bytes);
        self.set_aside -= set_aside;
        let credits = self.credits()?;
        Some(BlockRoom::of_credit(credits, set_aside))
    }

    /// Notes that a block came, up to the received position.
    pub(super) fn receive(&mut self, received: u64) {
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

    /// Whether nothing more will be durable.
    pub(super) fn is_over(&self) -> bool {
        self.durable.borrow().is_over
    }

    /// The received position up to which all is durable now, if that has moved.
    pub(super) fn take_durable(&mut self) -> Option<u64> {
        let durable = self.durable.borrow_and_update().segments;
        let mut reached = None;
        while let Some(mark) = self.marks.front().filter(|mark| mark.segments <= durable) {
            reached = Some(mark.received);
            self.marks.pop_front();
        }
        reached
    }

    /// Takes more credit, if it needs some and there is some. `under_way`: bytes that are not durable.
    pub(super) fn take_credit(&mut self, under_way: u64) -> u64 {
        self.freed.mark_unchanged();
        if self.needs_nothing(under_way) {
            self.give_back();
            // What waits there may be larger than what it may send.
            return self.allow(if under_way == 0 { BLOCK_BYTES_MAX } else { 0 });
        }
        let most = WINDOW.saturating_sub(under_way).min(UNUSED).max(self.least);
        let wanted = Wanted {
            least: self.least,
            most,
        };
        let unused = self.set_aside;
        let more = self
            .credits()
            .map_or(0, |credits| credits.take(wanted, unused));
        self.set_aside += more;
        self.allow(self.set_aside)
    }

    /// Whether it is quiet, and not for want of credit. If nothing is under way, it gets credit all the same.
    fn needs_nothing(&self, under_way: u64) -> bool {
        self.is_quiet() && (under_way == 0 || self.unused >= self.least)
    }

    fn is_quiet(&self) -> bool {
        self.quiet_at <= Instant::now()
    }

    /// Lets it send up to this in all; returns by how much that is more than it could.
    fn allow(&mut self, unused: u64) -> u64 {
        let more = unused.saturating_sub(self.unused);
        self.unused += more;
        more
    }

    /// Gives back what is set aside for it.
    fn give_back(&mut self) {
        let set_aside = std::mem::take(&mut self.set_aside);
        if let Some(credits) = self.credits() {
            credits.give(set_aside);
        }
    }

    /// Has what came put soon.
    pub(super) fn hurry(&self) {
        if let Some(objects) = self.objects() {
            objects.hurry();
        }
    }

    /// Waits until more is durable, it becomes quiet, or credit can be had for which it waits.
    async fn moved(&mut self) {
        let waits = !self.marks.is_empty();
        let is_short =
            self.set_aside < self.least && !self.needs_nothing(if waits { 1 } else { 0 });
        let (is_quiet, quiet_at) = (self.is_quiet(), self.quiet_at);
        tokio::select! {
            _ = self.durable.changed(), if waits => {}
            _ = self.freed.changed(), if is_short => {}
            () = sleep_until(quiet_at), if !is_quiet => {}
            () = pending(), if is_quiet && !(waits || is_short) => {}
        }
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        self.give_back();
    }
}

/// Waits until something moves on a connection's lane; for ever without one.
pub(super) async fn moved(lane: &mut Option<Lane>) {
    match lane {
        Some(lane) => lane.moved().await,
        None => pending().await,
    }
}
