//! The store: one directory per day, service and host; in it the segments of sessions, each a dump.
//!
//! `ROOT/2026-11-21/SERVICE/HOST/SESSION.N.rmk`. A session stays in the directory where it began.
//! What a file holds is the truth: positions are found again by reading it.

mod budget;
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
use budget::Budget;
use name::Places;
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
    /// Memory for what is remembered of sessions, bytes; one connection gets an eighth.
    pub session_bytes: u64,
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
    /// Sessions take all the memory they may.
    #[error("all sessions together would take more than {most} bytes of memory")]
    Full {
        /// What they may take, bytes.
        most: u64,
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

/// Sessions that can be found at the same time.
const FINDING: usize = 64;

/// What all sessions of a store share.
#[derive(Debug)]
pub(crate) struct Context {
    options: StoreOptions,
    figures: Arc<Figures>,
    budget: Arc<Budget>,
}

/// The store.
#[derive(Debug)]
pub struct Store {
    context: Arc<Context>,
    id: [u8; 16],
    /// Sessions that were met since the collector started.
    open: Mutex<HashMap<Uuid, Shared>>,
    /// Where the sessions lie that are not open.
    places: Mutex<Places>,
    /// Held while a session is being found: nobody finds it twice.
    finding: [Mutex<()>; FINDING],
}

impl Store {
    /// Opens the store, or makes one.
    ///
    /// # Errors
    /// The directory cannot be made or read.
    pub fn open(options: StoreOptions, figures: Arc<Figures>) -> Result<Self, StoreError> {
        let root = options.root.clone();
        fs::create_dir_all(&root).map_err(io_at("create", &root))?;
        let places = Places::read(&root).map_err(io_at("read", &root))?;
        let id = identity(&root)?;
        let budget = Budget::new(options.session_bytes, figures.clone());
        Ok(Self {
            context: Arc::new(Context {
                options,
                figures,
                budget,
            }),
            id,
            open: Mutex::default(),
            places: Mutex::new(places),
            finding: std::array::from_fn(|_| Mutex::default()),
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
        self.context.options.sync
    }

    /// Memory that the sessions of one connection may take, bytes.
    #[must_use]
    pub fn share(&self) -> u64 {
        self.context.options.session_bytes / 8
    }

    /// A host announces a session with the content of its SESSION block. May read its files.
    ///
    /// # Errors
    /// It is another host's, contradicts what is stored, or cannot be read or remembered.
    pub fn session(&self, uuid: Uuid, host: &str, content: &[u8]) -> Result<Shared, StoreError> {
        let _alone = lock(&self.finding[uuid.0[0] as usize % FINDING]);
        let open = lock(&self.open).get(&uuid).cloned();
        let shared = match open {
            Some(shared) => shared,
            None => {
                let found = match self.find(uuid, host, content) {
                    Err(StoreError::Full { .. }) => {
                        self.forget_idle();
                        self.find(uuid, host, content)?
                    }
                    found => found?,
                };
                let found = Arc::new(Mutex::new(found));
                Figures::add(&self.context.figures.sessions_total, 1);
                lock(&self.open).insert(uuid, found.clone());
                found
            }
        };
        lock(&shared).announced(host, content)?;
        Ok(shared)
    }

    fn find(&self, uuid: Uuid, host: &str, content: &[u8]) -> Result<StoredSession, StoreError> {
        let place = lock(&self.places).of(uuid);
        if let Some(directory) = place {
            return recover::session(uuid, &directory, &self.context);
        }
        let directory = name::directory(host, content);
        let directory = self.context.options.root.join(directory);
        StoredSession::new(uuid, host, directory, content, &self.context)
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
        let (removed, errors) = retention::enforce(&self.context.options, &busy);
        Figures::add(&self.context.figures.segments_removed_total, removed);
        errors
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
                lock(&self.places).insert(*uuid, &session.place());
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
