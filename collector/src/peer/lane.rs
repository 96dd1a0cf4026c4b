//! A connection whose blocks go into objects: its share of the memory, and what it waits for.

use std::future::pending;
use std::sync::Arc;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::lane_share::LaneShare;
use crate::connection_context::ConnectionContext;
use crate::store::objects::Durable;
use crate::store::objects::credits::BlockRoom;

/// The part of one connection.
pub(super) struct Lane {
    context: Arc<ConnectionContext>,
    durable: watch::Receiver<Durable>,
    freed: watch::Receiver<()>,
    share: LaneShare,
}

impl Lane {
    /// `None`: the collector has a directory.
    pub(super) fn of(context: &Arc<ConnectionContext>) -> Option<Self> {
        let objects = context.store.objects()?;
        let credits = objects.credits();
        Some(Self {
            durable: objects.durable(),
            freed: credits.follow(),
            share: LaneShare::new(credits.clone(), Instant::now().into_std()),
            context: context.clone(),
        })
    }

    /// Notes that a session with pages of this size was announced.
    pub(super) fn expect_pages(&mut self, bytes: u64) {
        self.share.expect_pages(bytes);
    }

    /// Notes that pages come.
    pub(super) const fn expect_no_schema(&mut self) {
        self.share.expect_no_schema();
    }

    /// Notes that a block went into this segment.
    pub(super) fn touch(&mut self, segment: u64) {
        self.share.touch(segment);
    }

    /// Whether there is credit for a block of this size.
    pub(super) const fn has_credit(&self, bytes: u64) -> bool {
        self.share.has_credit(bytes)
    }

    /// Uses credit for a block. Returns the memory that was set aside for it; `None`: there was no credit for it.
    pub(super) fn use_credit(&mut self, bytes: u64) -> Option<BlockRoom> {
        self.share.use_credit(bytes, Instant::now().into_std())
    }

    /// Notes that a block came, up to the received position.
    pub(super) fn receive(&mut self, received: u64) {
        self.share.receive(received);
    }

    /// Whether nothing more will be durable.
    pub(super) fn is_over(&self) -> bool {
        self.durable.borrow().is_over
    }

    /// The received position up to which all is durable now, if that has moved.
    pub(super) fn take_durable(&mut self) -> Option<u64> {
        let durable = self.durable.borrow_and_update().segments;
        self.share.take_durable(durable)
    }

    /// Takes more credit, if it needs some and there is some. `under_way`: bytes that are not durable.
    pub(super) fn take_credit(&mut self, under_way: u64) -> u64 {
        self.freed.mark_unchanged();
        self.share.take_credit(under_way, Instant::now().into_std())
    }

    /// Has what came put soon.
    pub(super) fn hurry(&self) {
        if let Some(objects) = self.context.store.objects() {
            objects.hurry();
        }
    }

    /// Waits until more is durable, it becomes quiet, or credit can be had for which it waits.
    async fn moved(&mut self) {
        let (now, quiet_at) = (Instant::now(), self.share.quiet_at().into());
        let (waits, is_quiet) = (self.share.waits(), quiet_at <= now);
        let is_short = self.share.is_short(now.into_std());
        tokio::select! {
            _ = self.durable.changed(), if waits => {}
            _ = self.freed.changed(), if is_short => {}
            () = sleep_until(quiet_at), if !is_quiet => {}
            () = pending(), if is_quiet && !(waits || is_short) => {}
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
