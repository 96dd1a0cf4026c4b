//! The objects of a collector without the thread that puts them: its caller does.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ringmark_format::Uuid;
use ringmark_format::stream::ack_level;

use super::error::StoreError;
use super::object_sessions::{ObjectOptions, Objects};
use super::objects::credits::Credits;
use super::objects::putting::{PutObject, Putting, Then};
use super::objects::{LaneSession, ObjectStore};
use super::options::{Retention, StoreOptions, SyncMode};
use super::session::SharedSession;
use super::store_directory::DirectoryOptions;
use crate::clock::Ticking;
use crate::set_clock::SetClock;

/// Memory for what is known of sessions, in bytes.
const SESSION_BYTES: u64 = 64 << 20;

/// An object that is to be put.
#[derive(Debug, Clone, Copy)]
pub struct Put<'a> {
    /// Its name.
    pub name: &'a str,
    /// All of it.
    pub bytes: &'a [u8],
}

/// A session of which blocks are counted and not kept: models of many hosts have none.
#[derive(Debug)]
pub struct CountedSession(LaneSession);

impl CountedSession {
    pub(crate) const fn preamble_bytes(&self) -> u64 {
        self.0.preamble_bytes()
    }

    /// The segment that has its latest block.
    #[must_use]
    pub const fn segment(&self) -> Option<u64> {
        self.0.segment()
    }

    /// Counts bytes of blocks; returns the number of their segment.
    pub(crate) fn count(&mut self, bytes: u64) -> u64 {
        self.0.count(bytes)
    }
}

/// The objects of one collector.
#[derive(Debug)]
pub struct SteppedObjects {
    objects: Objects,
    putting: Option<Putting>,
    /// The object of it that is being put.
    object: Option<PutObject>,
    clock: SetClock,
}

impl SteppedObjects {
    /// Those of a collector of this uuid, which begins now.
    #[must_use]
    pub fn new(collector: Uuid, segment_bytes: u64, of: &ObjectOptions, clock: &SetClock) -> Self {
        let options = StoreOptions {
            root: "memory".into(),
            sync: SyncMode::Disk,
            segment_bytes,
            segment_age: Duration::ZERO,
            retention: Retention::default(),
            session_bytes: SESSION_BYTES,
            directory: DirectoryOptions::default(),
        };
        let ids = (Uuid([1; 16]), collector);
        let ticking = Ticking::Set(clock.clone());
        let place = Arc::new(NoPlace);
        let objects = Objects::at_rest(place, ids, options, of, Arc::default(), ticking);
        Self {
            objects,
            putting: None,
            object: None,
            clock: clock.clone(),
        }
    }

    /// A session that a connection of a host announces.
    ///
    /// # Errors
    /// As for a collector.
    pub fn session(
        &self,
        uuid: Uuid,
        host: &str,
        content: &[u8],
    ) -> Result<SharedSession, StoreError> {
        self.objects.session(uuid, host, content)
    }

    /// A session of a host, of which blocks are counted and not kept.
    #[must_use]
    pub fn counted_session(&self, uuid: Uuid, host: &str, content: &[u8]) -> CountedSession {
        CountedSession(self.objects.counted_session(uuid, host, content))
    }

    /// The identity of the store.
    #[must_use]
    pub const fn id(&self) -> [u8; 16] {
        self.objects.id()
    }

    /// Has what came so far put soon.
    pub fn hurry(&self) {
        self.objects.hurry();
    }

    /// When the next segment is to be put, if none is being put; `None`: there is none.
    #[must_use]
    pub fn due(&self) -> Option<Instant> {
        self.objects.uploads().due()
    }

    /// The object that is to be put now.
    pub fn put(&mut self) -> Option<Put<'_>> {
        if self.putting.is_none() {
            self.putting = self.objects.uploads().take();
        }
        if self.object.is_none() {
            self.object = self.putting.as_mut()?.begin();
        }
        let upload = &self.object.as_ref()?.upload;
        Some(Put {
            name: &upload.name,
            bytes: &upload.bytes,
        })
    }

    /// Bytes of the segment that is being put, those that were only counted included.
    #[must_use]
    pub fn putting_bytes(&self) -> u64 {
        self.putting.as_ref().map_or(0, |putting| putting.held)
    }

    /// Takes the answer to the put of that object.
    pub fn answer(&mut self, answer: &io::Result<()>) -> Option<Then> {
        let (putting, object) = (self.putting.as_mut()?, self.object.as_mut()?);
        let then = self.objects.uploads().take_answer(putting, object, answer);
        if !matches!(then, Then::Again(_)) {
            self.object = None;
        }
        if then == Then::Durable {
            self.putting = None;
        }
        Some(then)
    }

    /// Number of segments that are durable, which are the first ones.
    #[must_use]
    pub fn durable(&self) -> u64 {
        self.objects.durable().borrow().segments
    }

    /// Bytes that wait to be put, those of open pages included.
    #[must_use]
    pub fn waiting(&self) -> u64 {
        self.objects.credits().waiting()
    }

    /// Memory that is taken, credit included.
    #[must_use]
    pub fn taken(&self) -> u64 {
        self.objects.credits().taken_in_all()
    }

    pub(crate) fn credits(&self) -> &Arc<Credits> {
        self.objects.credits()
    }

    pub(crate) fn now(&self) -> Instant {
        self.clock.at(self.clock.now())
    }
}

/// Stands where a collector has the place of its objects: who drives it has that.
#[derive(Debug)]
struct NoPlace;

impl ObjectStore for NoPlace {
    fn put(&self, _name: &str, _bytes: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn create(&self, _name: &str, _bytes: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn list(&self, _prefix: &str) -> io::Result<Vec<String>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn get(&self, _name: &str, _range: std::ops::Range<u64>) -> io::Result<Vec<u8>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn delete(&self, _name: &str) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn level(&self) -> u32 {
        ack_level::OBJECT
    }
}
