//! How what a connection received becomes durable and is acknowledged: its sessions are synced, or the segments
//! that it is in are put.

use ringmark_format::block::{BlockHeader, kind};
use tokio::task::spawn_blocking;
use tokio::time::sleep_until;

use super::lane::{self, Lane};
use super::{Peer, has_position};
use crate::connection_end::ConnectionEnd;
use crate::figures::UPLOADS_OVER;
use crate::messages;
use crate::reason::Reason;
use crate::store::objects::credits::BlockRoom;
use crate::store::{SharedSession, SyncMode, make_durable};

impl Peer {
    /// Checks that there is credit for a block that goes into objects, before it is received.
    pub(super) fn check_credit(&self, header: &BlockHeader) -> Result<(), ConnectionEnd> {
        let bytes = header.whole_bytes() as u64;
        let lane = self.lane.as_ref().filter(|_| has_position(header));
        match lane.is_none_or(|lane| lane.has_credit(bytes)) {
            true => Ok(()),
            false => Err(ConnectionEnd::protocol("a block beyond the credit")),
        }
    }

    /// Waits for memory for the block at the buffer's front, whatever it grows to in objects. What came before is
    /// acknowledged during that.
    pub(super) async fn room_for(
        &mut self,
        header: &BlockHeader,
    ) -> Result<Option<BlockRoom>, ConnectionEnd> {
        let bytes = header.whole_bytes() as u64;
        let lane = self.lane.as_mut().filter(|_| has_position(header));
        let use_credit = |lane: &mut Lane| {
            if matches!(header.kind, kind::PAGE | kind::CONTAINER) {
                lane.expect_no_schema();
            }
            lane.use_credit(bytes)
        };
        let Some(mut room) = lane.and_then(use_credit) else {
            return Ok(None);
        };
        let most = self.sessions.most_stored(header);
        let grown = async move {
            room.grow_to(most).await;
            room
        };
        tokio::pin!(grown);
        loop {
            let ping_at = self.connection.ping_if_due().await?;
            tokio::select! {
                biased;
                room = &mut grown => return Ok(Some(room)),
                () = lane::moved(&mut self.lane) => {}
                () = sleep_until(ping_at) => {}
            }
            self.drain_if_due().await?;
            self.settle().await?;
        }
    }

    /// Notes that a block is in objects, or waits in memory for better ones.
    pub(super) fn note_stored(&mut self) {
        let segment = self.acks.take_segment();
        if let Some(lane) = &mut self.lane {
            segment.into_iter().for_each(|segment| lane.touch(segment));
            lane.receive(self.acks.received());
        }
    }

    /// Acknowledges what of the connection is durable in objects, and gives credit for more.
    pub(super) async fn settle(&mut self) -> Result<(), ConnectionEnd> {
        let Some(lane) = &mut self.lane else {
            return Ok(());
        };
        if lane.is_over() {
            return Err(ConnectionEnd::refused(Reason::Store, UPLOADS_OVER));
        }
        if let Some(durable) = lane.take_durable() {
            return self.acknowledge(durable).await;
        }
        let before = self.acks.add_credit(0);
        let credit = self.more_credit();
        match credit == before {
            true => Ok(()),
            false => {
                let ack = messages::ack(self.acks.durable(), credit);
                self.connection.say(&ack).await
            }
        }
    }

    /// The position up to which the streamer may send now.
    pub(super) fn more_credit(&mut self) -> u64 {
        match &mut self.lane {
            Some(lane) => {
                let more = lane.take_credit(self.acks.under_way());
                self.acks.add_credit(more)
            }
            None => self.acks.give_credit(*self.room.borrow_and_update()),
        }
    }

    /// Waits until all that came is durable in objects.
    pub(super) async fn settle_all(&mut self) -> Result<(), ConnectionEnd> {
        while !self.acks.is_durable() {
            if let Some(lane) = &self.lane {
                lane.hurry();
            }
            let ping_at = self.connection.ping_if_due().await?;
            tokio::select! {
                () = lane::moved(&mut self.lane) => {}
                () = sleep_until(ping_at) => {}
            }
            self.settle().await?;
        }
        Ok(())
    }

    /// Begins a sync of what was received so far, if there is anything and none is under way. It
    /// runs on a thread of its own while more is received.
    pub(super) async fn begin_sync(&mut self) -> Result<(), ConnectionEnd> {
        if !self.acks.is_to_sync() || self.lane.is_some() {
            return Ok(());
        }
        let touched = self.acks.take_touched();
        match self.context.store.sync() {
            SyncMode::Cache => self.acknowledge(self.acks.received()).await,
            SyncMode::Disk => {
                let sessions = self.sessions.of(&touched);
                let context = self.context.clone();
                let sync = move || {
                    let calls = &context.figures.disk_calls;
                    calls.count(|| sessions.iter().try_for_each(make_durable))
                };
                self.acks.begin(spawn_blocking(sync));
                Ok(())
            }
        }
    }

    /// Begins a sync once much was received. One under way is waited for if it has ended, or if the
    /// streamer sent beyond its credit: then nothing is received until there is credit again.
    pub(super) async fn sync_if_much(&mut self) -> Result<(), ConnectionEnd> {
        if self.acks.is_to_wait() {
            let synced = self.acks.ended().await?;
            self.acknowledge(synced).await?;
        }
        match self.acks.is_much() {
            true => self.begin_sync().await,
            false => Ok(()),
        }
    }

    /// Makes all that was received durable, and acknowledges it.
    pub(super) async fn sync_all(&mut self) -> Result<(), ConnectionEnd> {
        if self.lane.is_some() {
            return self.settle_all().await;
        }
        while !self.acks.is_durable() {
            self.begin_sync().await?;
            if self.acks.is_syncing() {
                let synced = self.acks.ended().await?;
                self.acknowledge(synced).await?;
            }
        }
        Ok(())
    }

    /// Makes all that is stored of a session durable, over whichever connection it came.
    pub(super) async fn sync_session(
        &mut self,
        session: SharedSession,
    ) -> Result<(), ConnectionEnd> {
        if self.context.store.sync() == SyncMode::Cache {
            return Ok(());
        }
        let context = self.context.clone();
        let sync = move || context.figures.disk_calls.count(|| make_durable(&session));
        let synced = spawn_blocking(sync).await;
        let synced = synced.map_err(|error| ConnectionEnd::given_up("the sync", error))?;
        synced.map_err(ConnectionEnd::not_durable)
    }

    /// Tells the streamer how many bytes are durable, and gives credit for as many again while the
    /// store has room.
    pub(super) async fn acknowledge(&mut self, durable: u64) -> Result<(), ConnectionEnd> {
        let new = self.acks.acknowledge(durable);
        self.count(|presence| presence.acknowledged(new));
        self.sessions.forget_ended(durable);
        let credit = self.more_credit();
        self.connection.say(&messages::ack(durable, credit)).await
    }
}
