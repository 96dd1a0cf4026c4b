//! The thread that puts segments, one after the other, until each is durable.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use ringmark_decoder::Stamper;
use ringmark_format::Uuid;
use tokio::sync::watch;

use super::credits::Credits;
use super::lane::Lane;
use super::object_store::ObjectStore;
use super::open_segment::{OpenSegment, Owner, SchemaPiece, Upload};
use crate::clock::now_ns;
use crate::figures::Figures;
use crate::mutex::lock;
use crate::notice::Notice;
use crate::store::context::StoreContext;

/// How long after a failed put the first next try is.
const AGAIN_AFTER: Duration = Duration::from_millis(20);
/// The longest such wait.
const AGAIN_AFTER_MAX: Duration = Duration::from_secs(5);
/// How long the thread sleeps at most.
const IDLE: Duration = Duration::from_secs(60);

/// What connections and the thread share.
#[derive(Debug)]
pub(in crate::store) struct Uploads {
    objects: Arc<dyn ObjectStore>,
    /// The collector, as its objects are named.
    collector: Uuid,
    lane: Mutex<Lane>,
    wake: Condvar,
    /// The number of segments that are durable: those before it.
    durable: watch::Sender<u64>,
    credits: Credits,
    context: Arc<StoreContext>,
    has_ended: AtomicBool,
}

impl Uploads {
    pub(in crate::store) fn new(
        objects: Arc<dyn ObjectStore>,
        collector: Uuid,
        lane: Lane,
        credits: Credits,
        context: Arc<StoreContext>,
    ) -> Self {
        Self {
            objects,
            collector,
            lane: Mutex::new(lane),
            wake: Condvar::new(),
            durable: watch::Sender::new(0),
            credits,
            context,
            has_ended: AtomicBool::new(false),
        }
    }

    pub(in crate::store) const fn credits(&self) -> &Credits {
        &self.credits
    }

    /// Follows how many segments are durable.
    pub(in crate::store) fn durable(&self) -> watch::Receiver<u64> {
        self.durable.subscribe()
    }

    /// Appends a whole block of a session; returns the number of its segment.
    pub(super) fn append(
        &self,
        owner: &Owner,
        block: &[u8],
        preamble: impl FnOnce() -> Vec<u8>,
    ) -> u64 {
        Figures::add(&self.context.figures.stored_bytes_total, block.len() as u64);
        self.change(|lane, now| lane.append(owner, block, preamble, now))
    }

    /// Adds schema of a session; returns the number of the segment before which it is put.
    pub(super) fn add_schema(&self, owner: &Owner, piece: SchemaPiece, preamble: Vec<u8>) -> u64 {
        Figures::add(&self.context.figures.stored_bytes_total, piece.bytes());
        self.change(|lane, now| lane.add_schema(owner, piece, preamble, now))
    }

    fn change(&self, change: impl FnOnce(&mut Lane, Instant) -> (u64, u64)) -> u64 {
        let mut lane = lock(&self.lane);
        let before = lane.due();
        let (number, grown) = change(&mut lane, Instant::now());
        let is_due_changed = lane.due() != before;
        drop(lane);
        self.credits.hold(grown);
        if is_due_changed {
            self.wake.notify_one();
        }
        number
    }

    /// Has what came so far put soon: a streamer waits.
    pub(in crate::store) fn hurry(&self) {
        lock(&self.lane).hurry();
        self.wake.notify_one();
    }

    /// Ends the thread.
    pub(in crate::store) fn end(&self) {
        self.has_ended.store(true, Relaxed);
        self.wake.notify_one();
    }

    /// Puts segments until [`Uploads::end`].
    pub(in crate::store) fn run(&self) {
        while let Some(segment) = self.next() {
            let (number, held) = (segment.number, segment.held());
            let hour = hour(now_ns());
            let objects = segment.objects(&hour, self.collector);
            if !objects.iter().all(|object| self.put(object)) {
                return;
            }
            Figures::add(&self.context.figures.segments_total, 1);
            // First the memory: who hears of the ACK may send more.
            self.credits.give(held);
            self.durable.send_replace(number + 1);
        }
    }

    /// Waits for the next segment; `None`: there will be none.
    fn next(&self) -> Option<OpenSegment> {
        let mut lane = lock(&self.lane);
        loop {
            let now = Instant::now();
            if self.has_ended.load(Relaxed) {
                return None;
            }
            if let Some(segment) = lane.take(now) {
                return Some(segment);
            }
            let wait = lane
                .due()
                .map_or(IDLE, |due| due.saturating_duration_since(now));
            let woken = self.wake.wait_timeout(lane, wait);
            lane = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Puts an object, again and again until it is there. Returns false if the collector ends before.
    fn put(&self, object: &Upload) -> bool {
        let (mut wait, mut failed) = (AGAIN_AFTER, false);
        loop {
            let begun = Instant::now();
            let put = self.objects.put(&object.name, &object.bytes);
            Figures::add(&self.context.figures.syncs_total, 1);
            Figures::add_time(&self.context.figures.sync_microseconds_total, begun);
            match put {
                Ok(()) if failed => {
                    let text = format!("{}: it was put now", object.name);
                    self.context.notice(Notice::info(text));
                    return true;
                }
                Ok(()) => return true,
                Err(error) if !failed => {
                    let text = format!(
                        "{}: put: {error}; streamers wait, nothing is refused",
                        object.name
                    );
                    self.context.notice(Notice::error(text));
                    failed = true;
                }
                Err(_) => {}
            }
            let lane = lock(&self.lane);
            if self.has_ended.load(Relaxed) {
                return false;
            }
            drop(self.wake.wait_timeout(lane, wait));
            wait = (wait * 2).min(AGAIN_AFTER_MAX);
        }
    }
}

/// The hour of a moment in UTC, `YYYY-MM-DD-HH`.
fn hour(ns: u64) -> String {
    let mut stamper = Stamper::default();
    let text = String::from_utf8_lossy(&stamper.stamp(ns)[..13]).into_owned();
    text.replacen(['T', ' '], "-", 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_hour_is_named() {
        assert_eq!(hour(1_795_720_296_240_882_128), "2026-11-26-19");
    }
}
