//! The store: one directory per day, service and host; in it the segments of sessions, each a dump.
//!
//! `ROOT/2026-11-21/SERVICE/HOST/SESSION.N.rmk`. A session stays in the directory where it began.
//! What a file holds is the truth: positions are found again by reading it, or by its index, which is
//! made from it when it is closed.

mod budget;
mod damaged;
mod durable;
mod identity;
pub mod index;
mod name;
mod place;
mod positions;
mod recover;
mod retention;
mod segment;
mod session;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use ringmark_decoder::store as files;
use ringmark_format::Uuid;
use tokio::sync::mpsc::UnboundedSender;

use crate::figures::Figures;
use budget::Budget;
pub use durable::make_durable;
use identity::Identity;
use name::Places;
pub(crate) use name::{fits, safe};
pub use place::DirectoryOptions;
use retention::Retaining;
pub use retention::{Now, Retention};
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
    /// What may be done with the directory.
    pub directory: DirectoryOptions,
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
    /// No collector made what lies there.
    #[error("{}: {what}", path.display())]
    NotOurs {
        /// What.
        path: PathBuf,
        /// What was found and expected.
        what: String,
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
    /// Another collector stores there.
    #[error("{}: another collector stores there, expected it to end within {} s", root.display(), within.as_secs())]
    Taken {
        /// The store.
        root: PathBuf,
        /// How long it was waited for.
        within: Duration,
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

/// How long indexes are made at a time.
const INDEX_FOR: Duration = Duration::from_secs(2);
/// Sessions that can be found at the same time.
const FINDING: usize = 64;

/// What all sessions of a store share.
#[derive(Debug)]
pub(crate) struct Context {
    options: StoreOptions,
    figures: Arc<Figures>,
    budget: Arc<Budget>,
    /// Segments that are closed and have no index yet.
    unindexed: Mutex<Vec<PathBuf>>,
    /// Segments that damage was found in, and told.
    damaged: Mutex<BTreeSet<PathBuf>>,
    /// Where people are told.
    people: OnceLock<UnboundedSender<String>>,
}

/// The store.
#[derive(Debug)]
pub struct Store {
    context: Arc<Context>,
    identity: Identity,
    /// Sessions that were met since the collector started.
    open: Mutex<HashMap<Uuid, Shared>>,
    /// Where the sessions lie that are not open.
    places: Mutex<Places>,
    /// Held while a session is being found: nobody finds it twice.
    finding: [Mutex<()>; FINDING],
    retaining: Mutex<Retaining>,
    /// What people should know, and were not told yet.
    notices: Mutex<Vec<String>>,
}

impl Store {
    /// Opens the store, or makes one.
    ///
    /// # Errors
    /// The directory cannot be made or read, holds what no collector made, or another one has it.
    pub fn open(options: StoreOptions, figures: Arc<Figures>) -> Result<Self, StoreError> {
        let root = options.root.clone();
        let notice = options.directory.prepare(&root)?;
        let identity = Identity::take(&root)?;
        name::remove_unnamed(&root).map_err(io_at("clear", &root))?;
        let segments = files::segments(&root).map_err(io_at("read", &root))?;
        let places = Places::of_segments(&segments);
        let has_none = |segment: &PathBuf| !files::index_of(segment).exists();
        let unindexed = segments.into_iter().filter(has_none).collect();
        let budget = Budget::new(options.session_bytes, figures.clone());
        Ok(Self {
            context: Arc::new(Context {
                options,
                figures,
                budget,
                unindexed: Mutex::new(unindexed),
                damaged: Mutex::default(),
                people: OnceLock::new(),
            }),
            identity,
            open: Mutex::default(),
            places: Mutex::new(places),
            finding: std::array::from_fn(|_| Mutex::default()),
            retaining: Mutex::default(),
            notices: Mutex::new(notice.into_iter().collect()),
        })
    }

    /// Where people are told of damage from now on.
    pub(crate) fn tell(&self, people: UnboundedSender<String>) {
        let _ = self.context.people.set(people);
    }

    /// Identity of the store.
    #[must_use]
    pub fn id(&self) -> [u8; 16] {
        self.identity.id
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
        let _alone = self.alone(uuid);
        let open = lock(&self.open).get(&uuid).cloned();
        let open = match open {
            Some(shared) if lock(&shared).has_failed => {
                self.give_up(uuid, &shared)?;
                None
            }
            open => open,
        };
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

    /// A session whose sync failed is found again, with what is durable of it.
    fn give_up(&self, uuid: Uuid, session: &Shared) -> Result<(), StoreError> {
        let mut session = lock(session);
        session.give_up()?;
        lock(&self.places).insert(uuid, &session.place());
        drop(lock(&self.open).remove(&uuid));
        Ok(())
    }

    fn find(&self, uuid: Uuid, host: &str, content: &[u8]) -> Result<StoredSession, StoreError> {
        session::check_content(uuid, content)?;
        let place = lock(&self.places).of(uuid);
        if let Some(directory) = place
            && let Some(found) = recover::session(uuid, &directory, content, &self.context)?
        {
            return Ok(found);
        }
        let directory = name::directory(host, content).map_err(|what| StoreError::Protocol {
            session: uuid,
            what,
        })?;
        let directory = self.context.options.root.join(directory);
        StoredSession::new(uuid, host, directory, content, &self.context)
    }

    /// Closes old segments and removes what retention does not keep.
    pub fn tidy(&self) -> Vec<StoreError> {
        self.tidy_at(Now::read())
    }

    /// The same at another moment: for tests.
    #[doc(hidden)]
    pub fn tidy_at(&self, now: Now) -> Vec<StoreError> {
        let sessions: Vec<Shared> = lock(&self.open).values().cloned().collect();
        for session in sessions {
            lock(&session).rotate_if_old();
        }
        self.forget_idle();
        // Ages are read from them.
        let mut errors = self.make_indexes();
        let pending: HashSet<PathBuf> = lock(&self.context.unindexed).iter().cloned().collect();
        let enforced = lock(&self.retaining).enforce(
            &self.context.options,
            now,
            |segment| pending.contains(segment) || self.is_used(segment),
            |segment| self.remove(segment),
        );
        let figures = &self.context.figures;
        Figures::add(&figures.segments_removed_total, enforced.removed);
        Figures::add(&figures.removed_bytes_total, enforced.removed_bytes);
        Figures::set(&figures.store_bytes, enforced.bytes);
        lock(&self.notices).extend(enforced.notices);
        errors.extend(enforced.errors);
        errors
    }

    /// What people should know, since it was taken last.
    pub fn take_notices(&self) -> Vec<String> {
        std::mem::take(&mut lock(&self.notices))
    }

    /// Whether a segment is written, or was not acknowledged.
    fn is_used(&self, segment: &Path) -> bool {
        files::parse(segment).is_some_and(|(of, _)| self.asked(of, |s| s.has_use_for(segment)))
    }

    /// Removes a segment, unless it is written or was not acknowledged: whether it is gone. Its
    /// session may come back at any time: it is not found meanwhile.
    fn remove(&self, segment: &Path) -> Result<bool, StoreError> {
        let Some((uuid, _)) = files::parse(segment) else {
            return Ok(false);
        };
        let _alone = self.alone(uuid);
        if self.asked(uuid, |session| session.has_use_for(segment)) {
            return Ok(false);
        }
        fs::remove_file(segment).map_err(io_at("remove", segment))?;
        // Beside it lie its index, and perhaps copies of what was cut off.
        let _ = fs::remove_file(files::index_of(segment));
        let copies = damaged::remove_copies(segment);
        Figures::add(&self.context.figures.damaged_removed_total, copies);
        lock(&self.context.damaged).remove(segment);
        Ok(true)
    }

    /// What an open session answers; `false` of any other.
    fn asked(&self, uuid: Uuid, ask: impl FnOnce(&StoredSession) -> bool) -> bool {
        let open = lock(&self.open).get(&uuid).cloned();
        open.is_some_and(|session| ask(&lock(&session)))
    }

    /// While it is held, nobody finds this session.
    fn alone(&self, uuid: Uuid) -> MutexGuard<'_, ()> {
        lock(&self.finding[uuid.0[0] as usize % FINDING])
    }

    /// Makes indexes of closed segments for a while; what is left comes next time.
    fn make_indexes(&self) -> Vec<StoreError> {
        let (begun, mut errors, mut unnamed) = (Instant::now(), Vec::new(), Vec::new());
        while begun.elapsed() < INDEX_FOR {
            let Some(segment) = lock(&self.context.unindexed).pop() else {
                break;
            };
            // One that is written again comes again when it is closed.
            let of = files::parse(&segment).map(|(uuid, _)| uuid);
            let is_written = of.is_some_and(|of| self.asked(of, |s| s.writes(&segment)));
            if is_written {
                continue;
            }
            if name::unnamed(&segment).exists() {
                unnamed.push(segment);
            } else if segment.exists() {
                match index::make(&segment) {
                    Ok(Some(damage)) => self.context.damaged(&segment, &damage.to_string()),
                    Ok(None) => {}
                    Err(error) => errors.push(io_at("index", &segment)(error)),
                }
            }
        }
        // Those that have no name yet come next time.
        lock(&self.context.unindexed).extend(unnamed);
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
            let mut session = lock(session);
            if session.has_failed && session.give_up().is_err() {
                return true;
            }
            if session.is_stored() {
                lock(&self.places).insert(*uuid, &session.place());
                lock(&self.context.unindexed).extend(session.current());
            }
            false
        });
    }
}

/// A thread that panicked held the lock: what it guards is checked before each write anyway.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
