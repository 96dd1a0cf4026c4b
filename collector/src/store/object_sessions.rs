//! A store of objects: its sessions, each of one connection, and the thread that puts their segments.

#[cfg(test)]
mod schema_puts;
#[cfg(test)]
mod tests;

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;
use std::time::Duration;

use ringmark_format::Uuid;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::{Notify, watch};

use super::budget::Budget;
use super::context::StoreContext;
use super::error::{StoreError, io_at};
use super::known_session::check_content;
use super::objects::credits::{Credits, MEMORY_MIN};
use super::objects::lane::{CloseAt, Lane};
use super::objects::open_segment::Owner;
use super::objects::uploader::Uploads;
use super::objects::{Durable, FileObjects, LaneSession, ObjectStore, identity};
use super::options::StoreOptions;
use super::room::Room;
use super::session::{SharedSession, StoredSession};
use super::session_directories::service;
use crate::clock::Ticking;
use crate::figures::Figures;
use crate::host_name::fits;
use crate::notice::Notice;

/// Age at which a segment is closed while a streamer waits for its last acknowledgement.
const HURRIED: Duration = Duration::from_millis(50);
/// Segments take one part in this many of the memory, so that some can wait while one is put.
const PARTS: u64 = 8;

/// How a collector that stores objects is configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectOptions {
    /// Age at which a segment is put.
    pub flush: Duration,
    /// Memory for credit and for what waits to be put, in bytes; at least 8 MiB are used.
    pub memory_bytes: u64,
}

/// A store of objects.
#[derive(Debug)]
pub struct Objects {
    id: Uuid,
    level: u32,
    flush: Duration,
    uploads: Arc<Uploads>,
    context: Arc<StoreContext>,
}

impl Objects {
    /// Opens the store in this place, or in the directory that the options name as root.
    ///
    /// # Errors
    /// It cannot be used.
    pub(crate) fn open(
        options: StoreOptions,
        place: Option<Arc<dyn ObjectStore>>,
        of: &ObjectOptions,
        figures: Arc<Figures>,
    ) -> Result<Self, StoreError> {
        let collector = identity::random()?;
        let directory = || {
            let StoreOptions {
                root,
                sync,
                directory,
                ..
            } = &options;
            FileObjects::open(root, *sync, *directory, collector)
        };
        let place = match place {
            Some(place) => place,
            None => Arc::new(directory()?),
        };
        Self::over(place, collector, options, of, figures)
    }

    /// Over any place for objects.
    fn over(
        objects: Arc<dyn ObjectStore>,
        collector: Uuid,
        options: StoreOptions,
        of: &ObjectOptions,
        figures: Arc<Figures>,
    ) -> Result<Self, StoreError> {
        let id = identity::take(&*objects, &options.root)?;
        let root = options.root.clone();
        let ids = (id, collector);
        let made = Self::at_rest(objects, ids, options, of, figures, Ticking::Real);
        let uploader = made.uploads.clone();
        let named = thread::Builder::new().name("uploader".to_owned());
        let started = named.spawn(move || uploader.run());
        started.map_err(io_at("start a thread for", &root))?;
        Ok(made)
    }

    /// Without a thread that puts segments.
    pub(super) fn at_rest(
        objects: Arc<dyn ObjectStore>,
        (id, collector): (Uuid, Uuid),
        options: StoreOptions,
        of: &ObjectOptions,
        figures: Arc<Figures>,
        ticking: Ticking,
    ) -> Self {
        let level = objects.level();
        let memory = of.memory_bytes.max(MEMORY_MIN);
        let lane = Lane::new(CloseAt {
            bytes: options.segment_bytes.min(memory / PARTS),
            age: of.flush,
            hurried: HURRIED,
        });
        let context = Arc::new(StoreContext {
            id: collector.0,
            budget: Budget::new(options.session_bytes, figures.clone()),
            room: Room::new(figures.clone()),
            segment_bytes: AtomicU64::new(options.segment_bytes),
            retention: Mutex::new(options.retention.clone()),
            keep_bytes: AtomicU64::new(u64::MAX),
            options,
            figures,
            too_much: Notify::new(),
            unindexed: Mutex::default(),
            damaged: Mutex::default(),
            notices: OnceLock::new(),
        });
        let credits = Arc::new(Credits::new(memory));
        let uploads = Uploads::new(objects, collector, lane, credits, context.clone(), ticking);
        Self {
            id,
            level,
            flush: of.flush,
            uploads: Arc::new(uploads),
            context,
        }
    }

    /// Sends notices there from now on.
    pub(crate) fn send_notices_to(&self, notices: UnboundedSender<Notice>) {
        let _ = self.context.notices.set(notices);
    }

    /// Identity of the store, which all its collectors share.
    pub(crate) const fn id(&self) -> [u8; 16] {
        self.id.0
    }

    /// What an acknowledgement says.
    pub(crate) const fn level(&self) -> u32 {
        self.level
    }

    /// Age at which a segment is put.
    pub(crate) const fn flush(&self) -> Duration {
        self.flush
    }

    /// The memory of all connections.
    pub(crate) fn credits(&self) -> &Arc<Credits> {
        self.uploads.credits()
    }

    #[cfg(feature = "models")]
    /// What is to be put.
    pub(super) const fn uploads(&self) -> &Arc<Uploads> {
        &self.uploads
    }

    /// Follows what is durable.
    pub(crate) fn durable(&self) -> watch::Receiver<Durable> {
        self.uploads.durable()
    }

    /// Has what came so far put soon.
    pub(crate) fn hurry(&self) {
        self.uploads.hurry();
    }

    /// Follows whether there is room for more: credit says that here.
    pub(crate) fn room(&self) -> watch::Receiver<bool> {
        self.context.room.follow()
    }

    #[cfg(feature = "models")]
    /// A session of which blocks are counted and not kept.
    pub(super) fn counted_session(&self, session: Uuid, host: &str, content: &[u8]) -> LaneSession {
        let owner = Owner {
            session,
            host: host.to_owned(),
            service: String::new(),
            epoch: 0,
            schema_bytes: 0,
            from: 0,
        };
        LaneSession::new(&self.uploads, owner, content)
    }

    /// A session that a connection of a host announces. This collector does not know what of it is in objects.
    ///
    /// # Errors
    /// It takes too much memory, or names something too long.
    pub(crate) fn session(
        &self,
        uuid: Uuid,
        host: &str,
        content: &[u8],
    ) -> Result<SharedSession, StoreError> {
        check_content(uuid, content)?;
        let service = service(content);
        for (what, name) in [("host", host), ("service", &service)] {
            fits(what, name).map_err(|long| StoreError::Protocol {
                session: uuid,
                source: long.into(),
            })?;
        }
        let owner = Owner {
            session: uuid,
            host: host.to_owned(),
            service,
            epoch: 0,
            schema_bytes: 0,
            from: 0,
        };
        let root = self.context.options.root.clone();
        let mut session = StoredSession::new(uuid, host, root, content, &self.context)?;
        session.lane = Some(LaneSession::new(&self.uploads, owner, content));
        Figures::add(&self.context.figures.sessions_total, 1);
        Ok(Arc::new(Mutex::new(session)))
    }
}

impl Drop for Objects {
    fn drop(&mut self) {
        self.uploads.end();
    }
}
