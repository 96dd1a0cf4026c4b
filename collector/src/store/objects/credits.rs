//! The memory of a collector that stores objects: what streamers may send and have not sent, what waits
//! to be put, and open pages that are kept, are together no more than there is.
//!
//! Credit is memory that is set aside. One part is never set aside: a block for which nothing was can always come.
//! Its connection waits here, in the order of asking, until the block fits. So connections that send nothing need
//! nothing set aside, and however large the block is that one sends next, it gets through.

use std::sync::{Arc, Mutex};

use ringmark_format::block::{BlockHeader, CONTENT_BYTES_MAX};
use tokio::sync::{Mutex as FairMutex, Notify, watch};

use crate::mutex::lock;

/// Bytes of the largest block.
pub(crate) const BLOCK_BYTES_MAX: u64 = BlockHeader::BYTES as u64 + CONTENT_BYTES_MAX as u64;
/// What is never set aside: the largest block, and what a session begins with in a segment.
const NEVER_SET_ASIDE: u64 = 5 << 20;
/// Least memory, in bytes.
pub(in crate::store) const MEMORY_MIN: u64 = 8 << 20;
/// Connections that wait for credit look for it when at least this is free. All of them look: after each block of
/// thousands of connections that would be most of what the collector does.
const WORTH_A_LOOK: u64 = 128 << 10;
/// Open pages may take one part in this many.
const KEPT_PARTS: u64 = 8;

/// The memory of all connections.
#[derive(Debug)]
pub(crate) struct Credits {
    most: u64,
    taken: Mutex<Taken>,
    /// Changes whenever some is free again that may be set aside.
    freed: watch::Sender<()>,
    /// Held by the connection whose block is the next to get room.
    turn: FairMutex<()>,
    /// Tells that connection that there may be room.
    room: Notify,
}

/// What the memory is taken for, in bytes.
#[derive(Debug, Clone, Copy, Default)]
struct Taken {
    /// Credit that was given and not used.
    credit: u64,
    /// Blocks that are being taken in.
    coming: u64,
    /// Open pages.
    kept: u64,
    /// What waits to be put.
    held: u64,
    /// Connections that send, and want credit for that.
    senders: u64,
}

impl Taken {
    const fn all(&self) -> u64 {
        self.credit + self.coming + self.kept + self.held
    }
}

/// How much a connection asks for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted {
    /// With less it cannot send its next block.
    pub(crate) least: u64,
    /// What it can use.
    pub(crate) most: u64,
}

/// Room for a block that is being taken in; given back when dropped.
#[derive(Debug)]
pub(crate) struct BlockRoom {
    credits: Arc<Credits>,
    bytes: u64,
}

impl Credits {
    /// `most` bytes, or the least if that is more.
    pub(crate) fn new(most: u64) -> Self {
        Self {
            most: most.max(MEMORY_MIN),
            taken: Mutex::default(),
            freed: watch::Sender::new(()),
            turn: FairMutex::new(()),
            room: Notify::new(),
        }
    }

    /// What may be set aside before the blocks that it is for come.
    const fn set_aside_most(&self) -> u64 {
        self.most - NEVER_SET_ASIDE
    }

    /// Counts one more connection that sends.
    pub(crate) fn add_sender(&self) {
        lock(&self.taken).senders += 1;
    }

    /// Counts one less.
    pub(crate) fn remove_sender(&self) {
        lock(&self.taken).senders -= 1;
    }

    /// Takes what can be given to a connection that has `unused` left. 0: it has enough, or there is nothing.
    ///
    /// All that send have equal parts of one half. The other half is for what waits to be put: if thousands had credit
    /// that they use slowly, there would be no room for what they send.
    pub(crate) fn take(&self, wanted: Wanted, unused: u64) -> u64 {
        let mut taken = lock(&self.taken);
        let most = self.set_aside_most();
        let free = most.saturating_sub(taken.all());
        let part = most / 2 / taken.senders.max(1);
        let up_to = part.min(wanted.most).max(wanted.least);
        // Not for a little more: each time costs a message.
        if unused >= up_to / 2 && unused >= wanted.least {
            return 0;
        }
        let more = up_to.saturating_sub(unused);
        match more <= free {
            true => taken.credit += more,
            false => return 0,
        }
        more
    }

    /// Gives credit back that will not be used.
    pub(crate) fn give(&self, bytes: u64) {
        if bytes > 0 {
            self.free(|taken| taken.credit -= bytes);
        }
    }

    /// Takes room for a block, if there is some. One that needs more than there ever is gets it alone.
    fn try_room(&self, bytes: u64, own: u64) -> bool {
        let mut taken = lock(&self.taken);
        let is_alone = taken.coming == own && taken.held == 0;
        let fits = is_alone || taken.all() + bytes <= self.most;
        if fits {
            taken.coming += bytes;
        }
        fits
    }

    /// Takes memory for an open page, if there is some.
    pub(super) fn keep(&self, bytes: u64) -> bool {
        let mut taken = lock(&self.taken);
        let fits = taken.kept + bytes <= self.most / KEPT_PARTS
            && taken.all() + bytes <= self.set_aside_most();
        if fits {
            taken.kept += bytes;
        }
        fits
    }

    /// Gives the memory of open pages back.
    pub(super) fn let_go(&self, bytes: u64) {
        self.free(|taken| taken.kept -= bytes);
    }

    /// Counts bytes that wait now to be put.
    pub(super) fn hold(&self, bytes: u64) {
        lock(&self.taken).held += bytes;
    }

    /// Gives the memory of bytes back that were put.
    pub(super) fn put(&self, bytes: u64) {
        self.free(|taken| taken.held -= bytes);
    }

    fn free(&self, free: impl FnOnce(&mut Taken)) {
        let mut taken = lock(&self.taken);
        free(&mut taken);
        let is_worth_it = taken.all() + WORTH_A_LOOK <= self.set_aside_most();
        drop(taken);
        self.room.notify_one();
        if is_worth_it {
            self.freed.send_replace(());
        }
    }

    /// What waits to be put, and open pages, in bytes.
    pub(in crate::store) fn waiting(&self) -> u64 {
        let taken = lock(&self.taken);
        taken.kept + taken.held
    }

    #[cfg(feature = "models")]
    /// What is taken, in bytes.
    pub(in crate::store) fn taken_in_all(&self) -> u64 {
        lock(&self.taken).all()
    }

    /// Follows whether some is free again that may be set aside. A connection that waits for less than is worth a
    /// look gets it when what it sent is durable, or when it is quiet.
    pub(crate) fn follow(&self) -> watch::Receiver<()> {
        self.freed.subscribe()
    }
}

impl BlockRoom {
    /// The room that was set aside for a block.
    pub(crate) fn of_credit(credits: &Arc<Credits>, bytes: u64) -> Self {
        let mut taken = lock(&credits.taken);
        taken.credit -= bytes;
        taken.coming += bytes;
        drop(taken);
        Self {
            credits: credits.clone(),
            bytes,
        }
    }

    /// Waits until there are `bytes` in all.
    pub(crate) async fn grow_to(&mut self, bytes: u64) {
        if bytes <= self.bytes {
            return;
        }
        let credits = self.credits.clone();
        let turn = credits.turn.lock().await;
        while !self.try_grow_to(bytes) {
            credits.room.notified().await;
        }
        drop(turn);
    }

    /// Grows to `bytes` in all, if that is free; returns whether it did.
    pub(crate) fn try_grow_to(&mut self, bytes: u64) -> bool {
        let more = bytes.saturating_sub(self.bytes);
        let fits = more == 0 || self.credits.try_room(more, self.bytes);
        self.bytes += if fits { more } else { 0 };
        fits
    }
}

impl Drop for BlockRoom {
    fn drop(&mut self) {
        self.credits.free(|taken| taken.coming -= self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    /// A hundredth of what may be set aside.
    const PART: u64 = 100 << 10;
    const WANTED: Wanted = Wanted {
        least: 10 * PART,
        most: 40 * PART,
    };

    fn credits() -> Arc<Credits> {
        Arc::new(Credits::new(NEVER_SET_ASIDE + 100 * PART))
    }

    fn taken(credits: &Credits) -> u64 {
        lock(&credits.taken).all()
    }

    fn is_ready(future: &mut (impl Future<Output = ()> + Unpin)) -> bool {
        let mut context = Context::from_waker(Waker::noop());
        matches!(
            std::pin::Pin::new(future).poll(&mut context),
            Poll::Ready(())
        )
    }

    /// As many connections that send.
    fn send(credits: &Credits, count: u64) {
        (0..count).for_each(|_| credits.add_sender());
    }

    #[test]
    fn no_more_is_given_than_there_is_and_all_that_send_have_equal_parts_of_a_half() {
        let credits = credits();
        send(&credits, 1);
        assert_eq!(credits.take(WANTED, 0), 40 * PART, "all that it can use");
        send(&credits, 1);
        assert_eq!(credits.take(WANTED, 0), 25 * PART);
        send(&credits, 98);
        assert_eq!(credits.take(WANTED, 0), 10 * PART, "only the least");
        assert_eq!(credits.take(WANTED, 0), 10 * PART);
        assert_eq!(credits.take(WANTED, 0), 10 * PART);
        assert_eq!(credits.take(WANTED, 0), 0, "5 of 100 are left");
        credits.give(4 * PART);
        assert_eq!(credits.take(WANTED, 0), 0, "not a part of the least");
        assert_eq!(credits.take(WANTED, PART), 9 * PART);
        assert_eq!(taken(&credits), 100 * PART);
        assert!(!credits.keep(1), "nor for open pages");
        (0..99).for_each(|_| credits.remove_sender());
        credits.give(60 * PART);
        assert_eq!(credits.take(WANTED, 0), 40 * PART, "others send no more");
    }

    #[test]
    fn one_that_has_enough_gets_nothing() {
        let credits = credits();
        send(&credits, 1);
        assert_eq!(credits.take(WANTED, 20 * PART), 0);
        assert_eq!(credits.take(WANTED, 40 * PART), 0);
        assert_eq!(credits.take(WANTED, 19 * PART), 21 * PART);
        // One whose least has grown gets it.
        let wanted = Wanted {
            least: 35 * PART,
            ..WANTED
        };
        assert_eq!(credits.take(wanted, 30 * PART), 10 * PART);
        credits.hold(5);
        assert_eq!(taken(&credits), 31 * PART + 5);
        assert!(credits.keep(7) && !credits.keep(NEVER_SET_ASIDE));
        assert_eq!(credits.waiting(), 12);
        credits.let_go(7);
        credits.put(5);
        assert_eq!(credits.waiting(), 0);
    }

    #[test]
    fn connections_are_woken_for_what_is_worth_it() {
        let credits = credits();
        send(&credits, 100);
        while credits.take(WANTED, 0) > 0 {}
        let freed = credits.follow();
        credits.give(PART);
        assert_eq!(freed.has_changed().ok(), Some(false), "too little");
        credits.give(PART);
        assert_eq!(freed.has_changed().ok(), Some(true));
    }

    #[tokio::test]
    async fn the_largest_block_gets_through_when_all_credit_is_given() {
        let credits = credits();
        send(&credits, 100);
        while credits.take(WANTED, 0) > 0 {}
        let mut first = BlockRoom::of_credit(&credits, 0);
        first.grow_to(BLOCK_BYTES_MAX).await;
        assert!(taken(&credits) <= credits.most);
        // The next one waits until the first is put, and a small one for its turn.
        let (mut second, mut small) = (
            BlockRoom::of_credit(&credits, 0),
            BlockRoom::of_credit(&credits, 0),
        );
        {
            let mut second = pin!(second.grow_to(BLOCK_BYTES_MAX));
            let mut small = pin!(small.grow_to(100));
            assert!(!is_ready(&mut second) && !is_ready(&mut small));
            credits.hold(BLOCK_BYTES_MAX);
            drop(first);
            assert!(!is_ready(&mut second) && !is_ready(&mut small));
            credits.put(BLOCK_BYTES_MAX);
            assert!(is_ready(&mut second) && is_ready(&mut small));
        }
        assert!(taken(&credits) <= credits.most);
        drop((second, small));
        assert_eq!(taken(&credits), 100 * PART);
    }

    #[tokio::test]
    async fn what_needs_more_than_there_is_comes_alone() {
        let credits = credits();
        credits.hold(10);
        let mut room = BlockRoom::of_credit(&credits, 0);
        {
            let mut grows = pin!(room.grow_to(2 * credits.most));
            assert!(!is_ready(&mut grows));
            credits.put(10);
            assert!(is_ready(&mut grows));
        }
        drop(room);
        assert_eq!(taken(&credits), 0);
    }
}
