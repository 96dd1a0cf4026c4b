//! Where a collector stores: a directory with segments of each session, or objects that many collectors share.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use ringmark_format::Uuid;
use ringmark_format::stream::ack_level;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::watch;

use crate::figures::Figures;
use crate::notice::Notice;
use crate::options::CollectorOptions;
use crate::store::object_sessions::Objects;
use crate::store::objects::ObjectStore;
use crate::store::{Now, Retention, SharedSession, Store, StoreError, SyncMode};

/// How long an acknowledgement takes as a rule where each block goes to the disk at once.
const ACK_WITHIN: Duration = Duration::from_millis(100);

/// Where a collector stores.
#[derive(Debug)]
pub(crate) enum Storage {
    /// In a directory, which no other collector has.
    Disk(Box<Store>),
    /// In objects.
    Objects(Objects),
}

impl Storage {
    /// Opens what the options name; `place`: where objects are, if in no directory.
    ///
    /// # Errors
    /// It cannot be used.
    pub(crate) fn open(
        options: &CollectorOptions,
        place: Option<Arc<dyn ObjectStore>>,
        figures: Arc<Figures>,
    ) -> Result<Self, StoreError> {
        let store = options.store.clone();
        match &options.objects {
            None => Store::open(store, figures).map(|store| Self::Disk(Box::new(store))),
            Some(objects) => Objects::open(store, place, objects, figures).map(Self::Objects),
        }
    }

    /// The objects; `None`: it is a directory.
    pub(crate) const fn objects(&self) -> Option<&Objects> {
        match self {
            Self::Disk(_) => None,
            Self::Objects(objects) => Some(objects),
        }
    }

    /// Sends notices about it there from now on.
    pub(crate) fn send_notices_to(&self, notices: UnboundedSender<Notice>) {
        match self {
            Self::Disk(store) => store.send_notices_to(notices),
            Self::Objects(objects) => objects.send_notices_to(notices),
        }
    }

    /// Its identity.
    pub(crate) fn id(&self) -> [u8; 16] {
        match self {
            Self::Disk(store) => store.id(),
            Self::Objects(objects) => objects.id(),
        }
    }

    /// What an acknowledgement says.
    pub(crate) fn level(&self) -> u32 {
        match self {
            Self::Disk(store) => match store.sync() {
                SyncMode::Cache => ack_level::CACHE,
                SyncMode::Disk => ack_level::DISK,
            },
            Self::Objects(objects) => objects.level(),
        }
    }

    /// Within how long a block is acknowledged as a rule.
    pub(crate) fn ack_within(&self) -> Duration {
        let flush = self.objects().map(Objects::flush);
        flush.map_or(ACK_WITHIN, |flush| flush + ACK_WITHIN)
    }

    /// When a segment of a session counts as stored; objects do so when they are put.
    pub(crate) fn sync(&self) -> SyncMode {
        match self {
            Self::Disk(store) => store.sync(),
            Self::Objects(_) => SyncMode::Cache,
        }
    }

    /// The session that a host announces.
    ///
    /// # Errors
    /// It contradicts what is stored, cannot be read, or takes too much memory.
    pub(crate) fn session(
        &self,
        uuid: Uuid,
        host: &str,
        content: &[u8],
    ) -> Result<SharedSession, StoreError> {
        match self {
            Self::Disk(store) => store.session(uuid, host, content),
            Self::Objects(objects) => objects.session(uuid, host, content),
        }
    }

    /// Forgets a session that has ended.
    pub(crate) fn forget(&self, session: Uuid) {
        if let Self::Disk(store) = self {
            store.forget(session);
        }
    }

    /// Follows whether there is room for more.
    pub(crate) fn room(&self) -> watch::Receiver<bool> {
        match self {
            Self::Disk(store) => store.room(),
            Self::Objects(objects) => objects.room(),
        }
    }

    /// Looks whether there is room; returns a notice if that changed.
    pub(crate) fn look_for_room(&self) -> Option<String> {
        match self {
            Self::Disk(store) => store.look_for_room(),
            Self::Objects(_) => None,
        }
    }

    /// Cares for what is stored; returns what failed.
    pub(crate) fn tidy(&self) -> Vec<StoreError> {
        match self {
            Self::Disk(store) => store.tidy(Now::read()),
            Self::Objects(_) => Vec::new(),
        }
    }

    /// The same between two regular cares.
    pub(crate) fn tidy_what_came(&self) -> Vec<StoreError> {
        match self {
            Self::Disk(store) => store.tidy_what_came(),
            Self::Objects(_) => Vec::new(),
        }
    }

    /// Waits until more came than may be kept.
    pub(crate) async fn too_much(&self) {
        match self {
            Self::Disk(store) => store.too_much().await,
            Self::Objects(_) => pending().await,
        }
    }

    /// Keeps this from now on.
    pub(crate) fn keep(&self, retention: Retention) {
        if let Self::Disk(store) = self {
            store.keep(retention);
        }
    }

    /// Notices since the last call.
    pub(crate) fn take_notices(&self) -> Vec<String> {
        match self {
            Self::Disk(store) => store.take_notices(),
            Self::Objects(_) => Vec::new(),
        }
    }
}
