//! The thread that puts segments, one after the other, until each is durable. The schema of a segment is put by several
//! threads at the same time: of thousands of sessions that begin, each has an object of its own.

use std::any::Any;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use ringmark_format::Uuid;
use tokio::sync::watch;

use super::credits::Credits;
use super::lane::Lane;
use super::object_store::ObjectStore;
use super::open_segment::{OpenSegment, Owner, SchemaPiece, Upload};
use super::putting::{PutObject, Putting, Then, Worth};
use crate::clock::{Ticking, now_ns};
use crate::figures::Figures;
use crate::mutex::lock;
use crate::notice::Notice;
use crate::store::context::StoreContext;
use crate::store::hours::hour_of;

/// How long the thread sleeps at most.
const IDLE: Duration = Duration::from_secs(60);
/// Objects that are put at the same time at most. What they take is held in any case.
pub(in crate::store) const PUTS_AT_ONCE: usize = 8;

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
    ticking: Ticking,
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
        ticking: Ticking,
    ) -> Self {
        Self {
            objects,
            collector,
            lane: Mutex::new(lane),
            wake: Condvar::new(),
            durable: watch::Sender::default(),
            credits,
            context,
            ticking,
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

    #[cfg(feature = "models")]
    /// Counts bytes of blocks that are not there; returns the number of their segment.
    pub(super) fn count(
        &self,
        owner: &Owner,
        bytes: u64,
        preamble: impl FnOnce() -> Vec<u8>,
    ) -> u64 {
        Figures::add(&self.context.figures.stored_bytes_total, bytes);
        self.change(|lane, now| lane.count(owner, bytes, preamble, now))
    }

    /// Adds schema of a session; returns the number of the segment before which it is put.
    pub(super) fn add_schema(&self, owner: &Owner, piece: SchemaPiece, preamble: Vec<u8>) -> u64 {
        Figures::add(&self.context.figures.stored_bytes_total, piece.bytes());
        self.change(|lane, now| lane.add_schema(owner, piece, preamble, now))
    }

    fn change(&self, change: impl FnOnce(&mut Lane, Instant) -> (u64, u64)) -> u64 {
        let mut lane = lock(&self.lane);
        let before = lane.due();
        let (number, grown) = change(&mut lane, self.ticking.now());
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
        self.wake.notify_all();
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
        while let Some(putting) = self.next() {
            let helpers = putting.at_once().min(PUTS_AT_ONCE) - 1;
            let putting = Mutex::new(putting);
            thread::scope(|scope| {
                let start = |_| {
                    let named = thread::Builder::new().name("uploader".to_owned());
                    // Without it the others do what it would do.
                    named.spawn_scoped(scope, || self.put_some(&putting)).ok()
                };
                let helpers: Vec<_> = (0..helpers).filter_map(start).collect();
                self.put_some(&putting);
                let mut ended = helpers.into_iter().map(thread::ScopedJoinHandle::join);
                if let Some(panic) = ended.find_map(Result::err) {
                    resume_unwind(panic);
                }
            });
        }
    }

    /// Puts objects of a segment while there are some that may be put, and until [`Uploads::end`].
    fn put_some(&self, putting: &Mutex<Putting>) {
        loop {
            let begun = lock(putting).begin();
            let Some(mut object) = begun else {
                return;
            };
            while let Then::Again(after) = self.put(putting, &mut object) {
                let lane = lock(&self.lane);
                if lane.has_ended() {
                    return;
                }
                drop(self.wake.wait_timeout(lane, after));
            }
        }
    }

    /// Waits for the next segment; `None`: there will be none.
    fn next(&self) -> Option<Putting> {
        let mut lane = lock(&self.lane);
        loop {
            let now = self.ticking.now();
            if lane.has_ended() {
                return None;
            }
            if let Some(segment) = lane.take(now) {
                // Connections go on while its objects are made.
                drop(lane);
                return Some(self.putting(segment));
            }
            let wait = lane
                .due()
                .map_or(IDLE, |due| due.saturating_duration_since(now));
            let woken = self.wake.wait_timeout(lane, wait);
            lane = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn putting(&self, segment: OpenSegment) -> Putting {
        Putting::new(segment, &hour_of(now_ns()), self.collector)
    }

    #[cfg(feature = "models")]
    /// The next segment, if one is to be put now.
    pub(in crate::store) fn take(&self) -> Option<Putting> {
        let segment = lock(&self.lane).take(self.ticking.now());
        segment.map(|segment| self.putting(segment))
    }

    #[cfg(feature = "models")]
    /// When the next segment is to be put; `None`: there is none.
    pub(in crate::store) fn due(&self) -> Option<Instant> {
        lock(&self.lane).due()
    }

    /// Puts an object once.
    fn put(&self, putting: &Mutex<Putting>, object: &mut PutObject) -> Then {
        let begun = Instant::now();
        let Upload { name, bytes } = &object.upload;
        let put = self.objects.put(name, bytes);
        let times = &self.context.figures.sync_duration_seconds;
        times.count(begun.elapsed());
        self.take_answer(&mut lock(putting), object, &put)
    }

    /// Takes the answer to a put.
    pub(in crate::store) fn take_answer(
        &self,
        putting: &mut Putting,
        object: &mut PutObject,
        put: &io::Result<()>,
    ) -> Then {
        let (then, worth) = putting.take(object, put);
        self.tell(&object.upload.name, put, worth);
        if then == Then::Durable {
            Figures::add(&self.context.figures.segments_total, 1);
            // First the memory: who hears of the ACK may send more.
            self.credits.put(putting.held);
            self.show_waiting();
            self.durable
                .send_modify(|durable| durable.segments = putting.number + 1);
        }
        then
    }

    /// Tells the operator of the first failure to put objects, and of its end.
    fn tell(&self, name: &str, put: &io::Result<()>, worth: Worth) {
        let notice = match (put, worth) {
            (Ok(()), Worth::IsPut) => Notice::info(format!("{name}: it was put now")),
            (Err(error), Worth::Fails) => Notice::error(format!(
                "{name}: put: {error}; streamers wait, nothing is refused"
            )),
            _ => return,
        };
        self.context.notice(notice);
    }
}

/// What a panic said.
fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("a panic")
}
