//! The thread that puts segments, one after the other, until each is durable.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

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
use crate::store::hours::hour_of;

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
    durable: watch::Sender<Durable>,
    credits: Arc<Credits>,
    context: Arc<StoreContext>,
}

/// What is durable.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Durable {
    /// Number of segments: those before it are.
    pub(crate) segments: u64,
    /// No more will be.
    pub(crate) is_over: bool,
}

impl Uploads {
    pub(in crate::store) fn new(
        objects: Arc<dyn ObjectStore>,
        collector: Uuid,
        lane: Lane,
        credits: Arc<Credits>,
        context: Arc<StoreContext>,
    ) -> Self {
        Self {
            objects,
            collector,
            lane: Mutex::new(lane),
            wake: Condvar::new(),
            durable: watch::Sender::default(),
            credits,
            context,
        }
    }

    pub(in crate::store) const fn credits(&self) -> &Arc<Credits> {
        &self.credits
    }

    /// Follows what is durable.
    pub(in crate::store) fn durable(&self) -> watch::Receiver<Durable> {
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
        // Before the thread can put it.
        self.credits.hold(grown);
        drop(lane);
        self.show_waiting();
        if is_due_changed {
            self.wake.notify_one();
        }
        number
    }

    /// Takes memory for an open page, if there is some.
    pub(super) fn keep(&self, bytes: u64) -> bool {
        let is_kept = self.credits.keep(bytes);
        self.show_waiting();
        is_kept
    }

    /// Gives the memory of an open page back.
    pub(super) fn let_go(&self, bytes: u64) {
        self.credits.let_go(bytes);
        self.show_waiting();
    }

    fn show_waiting(&self) {
        Figures::set(&self.context.figures.waiting_bytes, self.credits.waiting());
    }

    /// Has what came so far put soon: a streamer waits.
    pub(in crate::store) fn hurry(&self) {
        lock(&self.lane).hurry();
        self.wake.notify_one();
    }

    /// Ends the thread.
    pub(in crate::store) fn end(&self) {
        lock(&self.lane).end();
        self.wake.notify_one();
    }

    /// Puts segments until [`Uploads::end`]. If that panics, nothing is acknowledged any more, and all are told.
    pub(in crate::store) fn run(&self) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| self.put_all())) {
            let text = format!(
                "putting segments was given up: {}; nothing is acknowledged any more, restart the collector",
                panic_text(&*panic)
            );
            self.context.notice(Notice::error(text));
            Figures::set(&self.context.figures.uploads_over, 1);
            self.durable.send_modify(|durable| durable.is_over = true);
        }
    }

    fn put_all(&self) {
        while let Some(segment) = self.next() {
            let (number, held) = (segment.number, segment.held());
            let hour = hour_of(now_ns());
            let objects = segment.objects(&hour, self.collector);
            if !objects.iter().all(|object| self.put(object)) {
                return;
            }
            Figures::add(&self.context.figures.segments_total, 1);
            // First the memory: who hears of the ACK may send more.
            self.credits.put(held);
            self.show_waiting();
            self.durable
                .send_modify(|durable| durable.segments = number + 1);
        }
    }

    /// Waits for the next segment; `None`: there will be none.
    fn next(&self) -> Option<OpenSegment> {
        let mut lane = lock(&self.lane);
        loop {
            let now = Instant::now();
            if lane.has_ended() {
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
            if lane.has_ended() {
                return false;
            }
            drop(self.wake.wait_timeout(lane, wait));
            wait = (wait * 2).min(AGAIN_AFTER_MAX);
        }
    }
}

/// What a panic said.
fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("a panic")
}
