//! A connection whose blocks go into objects: its part of the memory, and which of its bytes lie in which
//! segment.

use std::collections::VecDeque;
use std::future::pending;
use std::sync::Arc;

use tokio::sync::watch;

use super::acks::WINDOW;
use crate::connection_context::ConnectionContext;
use crate::store::object_sessions::Objects;
use crate::store::objects::credits::{Credits, Wanted};

/// What a connection without sessions needs: SESSION, schema, counters.
const LEAST: u64 = 128 << 10;
/// What a connection that sends much may have, and not have used.
const UNUSED: u64 = 1280 << 10;

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
    durable: watch::Receiver<u64>,
    freed: watch::Receiver<()>,
    /// Credit that was given and not used.
    unused: u64,
    /// Without this it cannot send anything.
    least: u64,
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
            least: LEAST,
            segments: 0,
            marks: VecDeque::new(),
        })
    }

    fn objects(&self) -> Option<&Objects> {
        self.context.store.objects()
    }

    fn credits(&self) -> Option<&Credits> {
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

    /// Counts a block that came, up to the received position. Returns false if there was no credit for it.
    pub(super) fn receive(&mut self, bytes: u64, received: u64) -> bool {
        let Some(unused) = self.unused.checked_sub(bytes) else {
            return false;
        };
        self.unused = unused;
        if let Some(credits) = self.credits() {
            credits.give(bytes);
        }
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
        true
    }

    /// The received position up to which all is durable now, if that has moved.
    pub(super) fn take_durable(&mut self) -> Option<u64> {
        let durable = *self.durable.borrow_and_update();
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
        let most = WINDOW.saturating_sub(under_way).min(UNUSED).max(self.least);
        let wanted = Wanted {
            least: self.least,
            most,
        };
        let more = self
            .credits()
            .map_or(0, |credits| credits.take(wanted, self.unused));
        self.unused += more;
        more
    }

    /// Has what came put soon.
    pub(super) fn hurry(&self) {
        if let Some(objects) = self.objects() {
            objects.hurry();
        }
    }

    /// Waits until more is durable, or credit can be had for which it waits.
    async fn moved(&mut self) {
        let (is_short, waits) = (self.unused < self.least, !self.marks.is_empty());
        tokio::select! {
            _ = self.durable.changed(), if waits => {}
            _ = self.freed.changed(), if is_short => {}
            () = pending(), if !(waits || is_short) => {}
        }
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        if let Some(credits) = self.credits() {
            credits.give(self.unused);
        }
    }
}

/// Waits until something moves on a connection's lane; for ever without one.
pub(super) async fn moved(lane: &mut Option<Lane>) {
    match lane {
        Some(lane) => lane.moved().await,
        None => pending().await,
    }
}
