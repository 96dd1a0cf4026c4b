//! How much of what a connection received is durable, and the sync that makes more of it so.
//!
//! Positions count the bytes of blocks since the connection began. `durable` follows `received`
//! sync by sync, while more is received. Nothing here knows a socket or a file.

use std::future::pending;

use ringmark_format::Uuid;
use tokio::task::JoinHandle;

use crate::connection_end::ConnectionEnd;
use crate::store::StoreError;

/// Bytes that a streamer may have in flight: received or not, and not acknowledged.
pub(super) const WINDOW: u64 = 8 << 20;
/// Bytes that are not durable after which a sync begins at once, without waiting for more.
const ACK_BYTES: u64 = 1 << 20;

/// The positions of one connection, and the sync that moves them.
#[derive(Debug, Default)]
pub(super) struct Acks {
    received: u64,
    durable: u64,
    /// The position up to which the streamer may send. It never moves back.
    credit: u64,
    /// Sessions with bytes that are neither durable nor part of the sync under way.
    touched: Vec<Uuid>,
    segment: Option<u64>,
    syncing: Option<Syncing>,
}

/// A sync under way.
#[derive(Debug)]
struct Syncing {
    task: JoinHandle<Result<(), StoreError>>,
    /// The received position when it began: the durable one when it has ended.
    received: u64,
}

impl Acks {
    /// Counts the bytes of a block that was received and stored.
    pub(super) fn receive(&mut self, bytes: u64) {
        self.received += bytes;
    }

    /// Notes that a session has bytes for the next sync.
    pub(super) fn touch(&mut self, session: Uuid) {
        if !self.touched.contains(&session) {
            self.touched.push(session);
        }
    }

    /// The received position.
    pub(super) const fn received(&self) -> u64 {
        self.received
    }

    /// Whether all that was received is durable.
    pub(super) const fn is_durable(&self) -> bool {
        self.received == self.durable
    }

    /// Whether a sync could begin: something is not durable, and none is under way.
    pub(super) const fn is_to_sync(&self) -> bool {
        !self.is_durable() && self.syncing.is_none()
    }

    /// Whether so much is not durable that a sync must begin now.
    pub(super) const fn is_much(&self) -> bool {
        self.received - self.durable >= ACK_BYTES
    }

    /// Whether the sync under way must be waited for: it has ended, or the streamer sent beyond its
    /// credit.
    pub(super) fn is_to_wait(&self) -> bool {
        let is_too_much = self.received - self.durable > WINDOW;
        let syncing = self.syncing.as_ref();
        syncing.is_some_and(|syncing| is_too_much || syncing.task.is_finished())
    }

    /// Whether a sync is under way.
    pub(super) const fn is_syncing(&self) -> bool {
        self.syncing.is_some()
    }

    /// The sessions of a sync that begins now; those touched later are for the next one.
    pub(super) fn take_touched(&mut self) -> Vec<Uuid> {
        std::mem::take(&mut self.touched)
    }

    /// Notes that `task` syncs all that was received up to now.
    pub(super) fn begin(&mut self, task: JoinHandle<Result<(), StoreError>>) {
        let received = self.received;
        self.syncing = Some(Syncing { task, received });
    }

    /// Waits for the end of the sync under way; returns the position that is then durable. Without
    /// one it waits for ever. A caller that gives up waiting can wait again.
    ///
    /// # Errors
    /// The sync failed: what was received is not durable.
    pub(super) async fn ended(&mut self) -> Result<u64, ConnectionEnd> {
        let Some(under_way) = &mut self.syncing else {
            return pending().await;
        };
        let ended = (&mut under_way.task).await;
        let received = under_way.received;
        self.syncing = None;
        let synced = ended.map_err(|error| ConnectionEnd::given_up("the sync", error))?;
        synced.map_err(ConnectionEnd::not_durable)?;
        Ok(received)
    }

    /// Gives credit for as many bytes again as may be in flight, if the store has room for them;
    /// returns the position up to which the streamer may send.
    pub(super) fn give_credit(&mut self, has_room: bool) -> u64 {
        if has_room {
            self.credit = self.durable + WINDOW;
        }
        self.credit
    }

    /// Gives more credit; returns the position up to which the streamer may send.
    pub(super) const fn add_credit(&mut self, bytes: u64) -> u64 {
        self.credit += bytes;
        self.credit
    }

    /// Bytes that came and are not durable.
    pub(super) const fn under_way(&self) -> u64 {
        self.received - self.durable
    }

    /// The segment, of those that are objects, into which the last block went.
    pub(super) const fn take_segment(&mut self) -> Option<u64> {
        self.segment.take()
    }

    /// Notes into which segment a block went.
    pub(super) fn note_segment(&mut self, segment: Option<u64>) {
        self.segment = self.segment.max(segment);
    }

    /// Whether credit was withheld that could be given.
    pub(super) const fn is_credit_due(&self) -> bool {
        self.credit < self.durable + WINDOW
    }

    /// The durable position.
    pub(super) const fn durable(&self) -> u64 {
        self.durable
    }

    /// Moves the durable position; returns the bytes that became durable.
    pub(super) const fn acknowledge(&mut self, durable: u64) -> u64 {
        let new = durable - self.durable;
        self.durable = durable;
        new
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::io;
    use std::path::PathBuf;
    use std::sync::mpsc;
    use std::task::{Context, Poll, Waker};

    use tokio::task::spawn_blocking;

    use super::*;

    fn is_pending(future: impl Future) -> bool {
        let future = std::pin::pin!(future);
        matches!(
            future.poll(&mut Context::from_waker(Waker::noop())),
            Poll::Pending
        )
    }

    #[tokio::test]
    async fn a_sync_makes_durable_what_came_before_it_began() {
        let mut acks = Acks::default();
        assert!(acks.is_durable() && !acks.is_to_sync());
        assert!(is_pending(acks.ended()), "nothing is under way");
        acks.receive(100);
        assert!(acks.is_to_sync() && !acks.is_much() && !acks.is_to_wait());
        let (end, ends) = mpsc::channel();
        acks.begin(spawn_blocking(move || {
            ends.recv().unwrap();
            Ok(())
        }));
        acks.receive(50);
        assert!(acks.is_syncing() && !acks.is_to_sync(), "one at a time");
        assert!(is_pending(acks.ended()) && acks.is_syncing(), "given up");
        end.send(()).unwrap();
        assert_eq!(acks.ended().await.unwrap(), 100);
        assert_eq!(acks.acknowledge(100), 100);
        assert!(acks.is_to_sync() && !acks.is_durable(), "50 came later");
        assert_eq!((acks.acknowledge(150), acks.received()), (50, 150));
        assert!(acks.is_durable());
    }

    #[tokio::test]
    async fn much_begins_a_sync_and_too_much_waits_for_its_end() {
        let mut acks = Acks::default();
        acks.receive(ACK_BYTES - 1);
        assert!(!acks.is_much());
        acks.receive(1);
        assert!(acks.is_much() && !acks.is_to_wait(), "nothing to wait for");
        let (end, ends) = mpsc::channel::<()>();
        acks.begin(spawn_blocking(move || {
            let _ = ends.recv();
            Ok(())
        }));
        acks.receive(WINDOW - ACK_BYTES);
        assert!(!acks.is_to_wait(), "all that it may send");
        acks.receive(1);
        assert!(acks.is_to_wait());
        drop(end);
        let durable = acks.ended().await.unwrap();
        assert_eq!((durable, acks.acknowledge(durable)), (ACK_BYTES, ACK_BYTES));
    }

    #[tokio::test]
    async fn a_sync_that_failed_moves_nothing() {
        let mut acks = Acks::default();
        acks.receive(1);
        acks.begin(spawn_blocking(|| {
            Err(StoreError::Io {
                action: "sync",
                path: PathBuf::from("/store"),
                source: io::ErrorKind::StorageFull.into(),
            })
        }));
        let why = acks.ended().await.unwrap_err().why();
        assert!(why.is_some_and(|why| why.starts_with("/store: sync: ")));
        assert!(!acks.is_durable() && !acks.is_syncing());
    }

    #[test]
    fn credit_is_given_while_there_is_room_and_never_taken_back() {
        let mut acks = Acks::default();
        assert_eq!((acks.give_credit(false), acks.is_credit_due()), (0, true));
        assert_eq!(acks.give_credit(true), WINDOW);
        acks.receive(100);
        let _ = acks.acknowledge(100);
        assert_eq!(acks.give_credit(false), WINDOW, "not taken back");
        assert!(acks.is_credit_due());
        assert_eq!(acks.give_credit(true), WINDOW + 100);
        assert!(!acks.is_credit_due());
    }

    #[test]
    fn a_session_is_touched_once_for_each_sync() {
        let mut acks = Acks::default();
        for session in [1, 2, 1] {
            acks.touch(Uuid([session; 16]));
        }
        assert_eq!(acks.take_touched(), [Uuid([1; 16]), Uuid([2; 16])]);
        assert!(acks.take_touched().is_empty());
        acks.touch(Uuid([1; 16]));
        assert_eq!(acks.take_touched(), [Uuid([1; 16])]);
    }
}
