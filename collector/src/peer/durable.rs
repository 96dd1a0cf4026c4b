//! What a connection received is made durable while it receives more, then acknowledged.

use std::future::pending;

use tokio::task::{JoinHandle, spawn_blocking};

use super::{ACK_BYTES, End, Peer, WINDOW, wrong};
use crate::store::{Shared, StoreError, Sync, make_durable};
use crate::words;

/// A sync under way.
pub(super) struct Syncing {
    task: JoinHandle<Result<(), StoreError>>,
    /// Bytes that were received before it began: durable when it has ended.
    received: u64,
}

/// Waits for the end of the sync under way, for ever without one; the bytes that are durable then.
/// Whoever gives up waiting can wait again.
pub(super) async fn ended(syncing: &mut Option<Syncing>) -> Result<u64, End> {
    let Some(under_way) = syncing else {
        return pending().await;
    };
    let ended = (&mut under_way.task).await;
    let received = under_way.received;
    *syncing = None;
    ended.map_err(|_| wrong("the sync was given up"))??;
    Ok(received)
}

impl Peer {
    /// Whether something was received that nobody makes durable yet.
    pub(super) fn is_to_sync(&self) -> bool {
        self.received > self.durable && self.syncing.is_none()
    }

    /// Has what was received so far made durable, if nothing else is being made so.
    pub(super) async fn begin_sync(&mut self) -> Result<(), End> {
        if !self.is_to_sync() {
            return Ok(());
        }
        let touched = std::mem::take(&mut self.touched).into_iter();
        let sessions = touched.filter_map(|uuid| self.sessions.get(&uuid).cloned());
        let sessions: Vec<Shared> = sessions.collect();
        match self.common.store.sync() {
            Sync::Cache => self.acknowledge(self.received).await,
            Sync::Disk => {
                self.syncing = Some(Syncing {
                    task: spawn_blocking(move || sessions.iter().try_for_each(make_durable)),
                    received: self.received,
                });
                Ok(())
            }
        }
    }

    /// The same once there is enough. Who sends more than it may waits.
    pub(super) async fn sync_if_much(&mut self) -> Result<(), End> {
        let is_too_much = self.received - self.durable > WINDOW;
        let syncing = self.syncing.as_ref();
        if syncing.is_some_and(|syncing| is_too_much || syncing.task.is_finished()) {
            let synced = ended(&mut self.syncing).await?;
            self.acknowledge(synced).await?;
        }
        match self.received - self.durable >= ACK_BYTES {
            true => self.begin_sync().await,
            false => Ok(()),
        }
    }

    /// Makes durable all that was received.
    pub(super) async fn sync_all(&mut self) -> Result<(), End> {
        while self.received > self.durable {
            self.begin_sync().await?;
            if self.syncing.is_some() {
                let synced = ended(&mut self.syncing).await?;
                self.acknowledge(synced).await?;
            }
        }
        Ok(())
    }

    /// Makes durable what was stored of a session, whoever stored it.
    pub(super) async fn sync_session(&mut self, session: Shared) -> Result<(), End> {
        if self.common.store.sync() == Sync::Cache {
            return Ok(());
        }
        let synced = spawn_blocking(move || make_durable(&session)).await;
        Ok(synced.map_err(|_| wrong("the sync was given up"))??)
    }

    /// Says that so many bytes are durable.
    pub(super) async fn acknowledge(&mut self, durable: u64) -> Result<(), End> {
        let new = durable - self.durable;
        self.count(|presence| presence.acknowledged(new));
        self.durable = durable;
        let ack = words::ack(durable, durable + WINDOW);
        self.say(&ack).await
    }
}
