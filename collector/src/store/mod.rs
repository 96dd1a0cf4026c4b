//! The store: one directory per day, service and host; in it the segments of sessions, each a dump.
//!
//! `ROOT/2026-11-21/SERVICE/HOST/SESSION.N.rmk`. A session stays in the directory where it began.
//! What a file holds is the truth: positions are found again by reading it.

mod name;
mod recover;
mod retention;
mod segment;
mod session;

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ringmark_format::Uuid;

use crate::figures::Figures;
pub use retention::Retention;
pub use session::{Known, StoredSession};

/// When what was received counts as durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sync {
    /// When it is on the disk: survives a power loss.
    #[default]
    Disk,
    /// When it is in the kernel's page cache: survives the collector's death.
    Cache,
}

/// How a store keeps segments.
#[derive(Debug, Clone)]
pub struct StoreOptions {
    /// The directory.
    pub root: PathBuf,
    /// When data is durable.
    pub sync: Sync,
    /// A segment is closed when it has reached this size.
    pub segment_bytes: u64,
    /// A segment is closed when it is this old.
    pub segment_age: Duration,
    /// What is removed.
    pub retention: Retention,
}

/// Why something was not stored.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The system said no.
    #[error("{}: {action}: {source}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The session was sent by another host first.
    #[error("session {session} belongs to host {owner}, sent by {host}")]
    Foreign {
        /// The session.
        session: Uuid,
        /// Whose it is.
        owner: String,
        /// Who sent it.
        host: String,
    },
    /// Blocks that contradict each other or the protocol.
    #[error("session {session}: {what}")]
    Protocol {
        /// The session.
        session: Uuid,
        /// What is wrong.
        what: String,
    },
}

pub(crate) fn io_at(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StoreError {
    let path = path.to_owned();
    move |source| StoreError::Io {
        action,
        path,
        source,
    }
}

/// A session that several connections may speak of.
pub type Shared = Arc<Mutex<StoredSession>>;

/// The store.
#[derive(Debug)]
pub struct Store {
    options: StoreOptions,
    id: [u8; 16],
    /// Sessions that were met since the collector started.
    open: Mutex<HashMap<Uuid, Shared>>,
    /// Where the sessions lie that are not open.
    places: Mutex<HashMap<Uuid, PathBuf>>,
    figures: Arc<Figures>,
}

impl Store {
    /// Opens the store, or makes one.
    ///
    /// # Errors
    /// The directory cannot be made or read.
    pub fn open(options: StoreOptions, figures: Arc<Figures>) -> Result<Self, StoreError> {
        let root = options.root.clone();
        fs::create_dir_all(&root).map_err(io_at("create", &root))?;
        let places = name::places(&root).map_err(io_at("read", &root))?;
        let id = identity(&root)?;
        Ok(Self {
            options,
            id,
            open: Mutex::default(),
            places: Mutex::new(places),
            figures,
        })
    }

    /// Identity of the store.
    #[must_use]
    pub fn id(&self) -> [u8; 16] {
        self.id
    }

    /// When data is durable.
    #[must_use]
    pub fn sync(&self) -> Sync {
        self.options.sync
    }

    /// A host announces a session with the content of its SESSION block.
    ///
    /// # Errors
    /// It is another host's, contradicts what is stored, or cannot be written.
    pub fn session(&self, uuid: Uuid, host: &str, content: &[u8]) -> Result<Shared, StoreError> {
        let shared = {
            let mut open = lock(&self.open);
            match open.get(&uuid) {
                Some(shared) => shared.clone(),
                None => {
                    let made = Arc::new(Mutex::new(self.find(uuid, host, content)?));
                    Figures::add(&self.figures.sessions_total, 1);
                    open.insert(uuid, made.clone());
                    made
                }
            }
        };
        lock(&shared).announced(host, content)?;
        Ok(shared)
    }

    fn find(&self, uuid: Uuid, host: &str, content: &[u8]) -> Result<StoredSession, StoreError> {
        let options = (self.options.clone(), self.figures.clone());
        if let Some(directory) = lock(&self.places).get(&uuid) {
            return recover::session(uuid, directory, options);
        }
        let directory = self.options.root.join(name::directory(host, content));
        Ok(StoredSession::new(uuid, host, directory, content, options))
    }

    /// Closes old segments and removes what retention does not keep.
    pub fn tidy(&self) -> Vec<StoreError> {
        let sessions: Vec<Shared> = lock(&self.open).values().cloned().collect();
        let mut busy = Vec::new();
        for session in sessions {
            let mut session = lock(&session);
            session.rotate_if_old();
            busy.extend(session.current());
        }
        self.forget_idle();
        let removed = retention::enforce(&self.options, &busy);
        Figures::add(&self.figures.segments_removed_total, removed.0);
        removed.1
    }

    /// Sessions that no connection speaks of any more take no memory: they are found again in
    /// their files.
    fn forget_idle(&self) {
        let mut open = lock(&self.open);
        open.retain(|uuid, session| {
            if Arc::strong_count(session) > 1 {
                return true;
            }
            let session = lock(session);
            if session.is_stored() {
                lock(&self.places).insert(*uuid, session.place());
            }
            false
        });
    }
}

/// A thread that panicked held the lock: what it guards is checked before each write anyway.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The store's identity, made once.
fn identity(root: &Path) -> Result<[u8; 16], StoreError> {
    let path = root.join("store.id");
    if let Ok(bytes) = fs::read(&path)
        && let Ok(id) = bytes.try_into()
    {
        return Ok(id);
    }
    let mut id = [0; 16];
    rustix::rand::getrandom(&mut id, rustix::rand::GetRandomFlags::empty())
        .map_err(|e| io_at("getrandom", &path)(e.into()))?;
    fs::write(&path, id).map_err(io_at("write", &path))?;
    Ok(id)
}
