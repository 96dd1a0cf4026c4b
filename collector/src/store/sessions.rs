//! The store as a whole: its sessions, found again and forgotten, and the care of their segments.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::{Duration, Instant};

use ringmark_decoder::store as files;
use ringmark_format::Uuid;
use tokio::sync::mpsc::UnboundedSender;

use super::budget::Budget;
use super::context::Context;
use super::error::{StoreError, io_at};
use super::identity::Identity;
use super::known_session::check_content;
use super::options::{StoreOptions, Sync};
use super::retention::{Now, Retaining};
use super::session::{Shared, StoredSession};
use super::session_directories::{self, Places};
use super::{damaged, index, recover};
use crate::figures::Figures;
use crate::lock::lock;

/// How long indexes are made at a time.
const INDEX_FOR: Duration = Duration::from_secs(2);
/// Sessions that can be found at the same time.
const FINDING: usize = 64;

/// The store.
#[derive(Debug)]
pub struct Store {
    context: Arc<Context>,
    identity: Identity,
    /// Sessions that were met since the collector started.
    open: Mutex<HashMap<Uuid, Shared>>,
    /// Where the sessions lie that are not open.
    places: Mutex<Places>,
    /// Held while a session is being found: no other thread finds it, too.
    finding: [Mutex<()>; FINDING],
    retaining: Mutex<Retaining>,
    /// Notices that were not taken yet.
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
        session_directories::remove_unnamed(&root).map_err(io_at("clear", &root))?;
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
        check_content(uuid, content)?;
        let place = lock(&self.places).of(uuid);
        if let Some(directory) = place
            && let Some(found) = recover::session(uuid, &directory, content, &self.context)?
        {
            return Ok(found);
        }
        let directory =
            session_directories::directory(host, content).map_err(|long| StoreError::Protocol {
                session: uuid,
                what: long.to_string(),
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

    /// Notices since they were taken last.
    pub fn take_notices(&self) -> Vec<String> {
        std::mem::take(&mut lock(&self.notices))
    }

    /// Whether a segment is written, or was not acknowledged.
    fn is_used(&self, segment: &Path) -> bool {
        files::parse(segment).is_some_and(|(of, _)| self.asked(of, |s| s.has_use_for(segment)))
    }

    /// Removes a segment, unless it is written or was not acknowledged; returns whether it is gone.
    /// Its session may come back at any time: it is not found while this runs.
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

    /// Keeps other threads from finding this session while it is held.
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
            if session_directories::unnamed(&segment).exists() {
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
