//! The store as a whole: its sessions, opened and forgotten, and the care of their segments.
//!
//! A thread may lock the maps while it holds a session. Only [`Store::tidy`] does it the other way
//! round, with sessions that no other thread has.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use ringmark_decoder::store::{self as files, SegmentName};
use ringmark_format::Uuid;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::{Notify, watch};

use super::budget::Budget;
use super::context::StoreContext;
use super::error::{StoreError, io_at};
use super::free_space::FreeSpace;
use super::identity::{self, Identity};
use super::known_session::check_content;
use super::options::{Retention, StoreOptions, SyncMode};
use super::retention::{Now, Occasion, RetentionState, Sessions};
use super::room::Room;
use super::session::{SharedSession, StoredSession};
use super::session_directories::{self, SessionDirectories};
use super::turns::Turns;
use super::{damaged, index, recover};
use crate::figures::Figures;
use crate::mutex::{lock, try_lock};
use crate::notice::Notice;

/// How long one care of the store makes indexes; the rest is left to the next.
const INDEX_FOR: Duration = Duration::from_secs(2);
/// The store.
#[derive(Debug)]
pub struct Store {
    context: Arc<StoreContext>,
    identity: Identity,
    /// Sessions in memory: a connection uses them, or did so lately.
    open: Mutex<HashMap<Uuid, SharedSession>>,
    /// Where the sessions lie that are not in memory.
    directories: Mutex<SessionDirectories>,
    /// One thread at a time finds a session or removes one of its segments.
    turns: Turns,
    retention: Mutex<RetentionState>,
    /// Notices that were not taken yet.
    notices: Mutex<Vec<String>>,
}

impl Store {
    /// Opens the store, or makes one in an empty directory.
    ///
    /// # Errors
    /// The directory cannot be made or read, holds files that no collector made, or is another
    /// collector's.
    pub fn open(options: StoreOptions, figures: Arc<Figures>) -> Result<Self, StoreError> {
        let root = options.root.clone();
        let notice = options.directory.prepare(&root)?;
        let identity = Identity::take(&root, identity::WITHIN)?;
        session_directories::remove_left(&root).map_err(io_at("clear", &root))?;
        let segments = files::segments(&root).map_err(io_at("read", &root))?;
        let directories = SessionDirectories::of_segments(&segments);
        let has_none = |segment: &PathBuf| !files::index_of(segment).exists();
        let unindexed = segments.into_iter().filter(has_none).collect();
        let segment_bytes = options.segment_bytes;
        let budget = Budget::new(options.session_bytes, figures.clone());
        let room = Room::new(figures.clone());
        let retention = options.retention.clone();
        let keep_bytes = retention.bytes.unwrap_or(u64::MAX);
        Ok(Self {
            context: Arc::new(StoreContext {
                id: identity.id,
                options,
                retention: Mutex::new(retention),
                keep_bytes: AtomicU64::new(keep_bytes),
                figures,
                budget,
                room,
                segment_bytes: AtomicU64::new(segment_bytes),
                too_much: Notify::new(),
                unindexed: Mutex::new(unindexed),
                damaged: Mutex::default(),
                notices: OnceLock::new(),
            }),
            identity,
            open: Mutex::default(),
            directories: Mutex::new(directories),
            turns: Turns::default(),
            retention: Mutex::default(),
            notices: Mutex::new(notice.into_iter().collect()),
        })
    }

    /// Sends notices about damage there from now on. Only the first call counts.
    pub(crate) fn send_notices_to(&self, notices: UnboundedSender<Notice>) {
        let _ = self.context.notices.set(notices);
    }

    /// Identity of the store, which WELCOME tells streamers.
    #[must_use]
    pub fn id(&self) -> [u8; 16] {
        self.identity.id
    }

    /// When data counts as durable.
    #[must_use]
    pub fn sync(&self) -> SyncMode {
        self.context.options.sync
    }

    /// The session that a host announces with this content of SESSION. If it is not in memory it is
    /// read from its files, which takes time.
    ///
    /// # Errors
    /// It is another host's, contradicts what is stored, cannot be read, or takes too much memory.
    pub fn session(
        &self,
        uuid: Uuid,
        host: &str,
        content: &[u8],
    ) -> Result<SharedSession, StoreError> {
        let found = self
            .turns
            .alone(uuid, || self.find_or_make(uuid, host, content));
        found.map_err(|error| self.context.failed(error))
    }

    /// Follows whether there is room for more.
    pub(crate) fn room(&self) -> watch::Receiver<bool> {
        self.context.room.follow()
    }

    /// Looks whether there is room for more; returns a notice if that changed.
    pub(crate) fn look_for_room(&self) -> Option<String> {
        self.context.room.look(&self.context.options_now())
    }

    fn find_or_make(
        &self,
        uuid: Uuid,
        host: &str,
        content: &[u8],
    ) -> Result<SharedSession, StoreError> {
        let open = lock(&self.open).get(&uuid).cloned();
        let open = match open {
            Some(shared) if lock(&shared).segments.have_failed() => {
                self.give_up(uuid, &shared)?;
                None
            }
            // A host that announced the session of another one and stored nothing does not keep it.
            Some(shared) if self.is_given_up(&shared, host) => {
                drop(lock(&self.open).remove(&uuid));
                None
            }
            open => open,
        };
        let shared = match open {
            Some(shared) => shared,
            None => {
                let found = match self.find(uuid, host, content) {
                    Err(StoreError::Full { .. } | StoreError::HostFull { .. }) => {
                        self.forget_idle();
                        self.find(uuid, host, content)?
                    }
                    found => found?,
                };
                let found = Arc::new(Mutex::new(found));
                Figures::add(&self.context.figures.sessions_total, 1);
                let mut open = lock(&self.open);
                open.insert(uuid, found.clone());
                self.context.open_sessions(open.len());
                drop(open);
                found
            }
        };
        lock(&shared).announced(host, content)?;
        Ok(shared)
    }

    /// Whether a session of another host is only in memory: nothing is stored of it, and no connection
    /// uses it but the one that has `session`.
    fn is_given_up(&self, session: &SharedSession, host: &str) -> bool {
        // This reference and that of the map.
        let is_unused = Arc::strong_count(session) == 2;
        let session = lock(session);
        is_unused && !session.is_stored() && !session.is_of(host)
    }

    /// Forgets a session whose sync failed, so that it is found again with what is durable of it.
    fn give_up(&self, uuid: Uuid, session: &SharedSession) -> Result<(), StoreError> {
        let mut session = lock(session);
        session.segments.give_up()?;
        lock(&self.directories).insert(uuid, session.segments.directory());
        drop(lock(&self.open).remove(&uuid));
        Ok(())
    }

    /// Finds a session in its files, or makes a new one.
    fn find(&self, uuid: Uuid, host: &str, content: &[u8]) -> Result<StoredSession, StoreError> {
        check_content(uuid, content)?;
        let place = self.directory_of(uuid);
        if let Some(directory) = place
            && let Some(found) = recover::session(uuid, &directory, content, &self.context)?
        {
            return Ok(found);
        }
        let directory =
            session_directories::directory(host, content).map_err(|long| StoreError::Protocol {
                session: uuid,
                source: long.into(),
            })?;
        let directory = self.context.options.root.join(directory);
        StoredSession::new(uuid, host, directory, content, &self.context)
    }

    /// The directory in which segments of a session lie, if there are any.
    fn directory_of(&self, uuid: Uuid) -> Option<Arc<Path>> {
        let directory = lock(&self.directories).of(uuid)?;
        if session_directories::has_segments(&directory, uuid) {
            return Some(directory);
        }
        lock(&self.directories).remove(uuid);
        None
    }

    /// Cares for the store at that moment: closes old segments, makes indexes, and removes what retention
    /// does not keep. Returns what failed.
    pub fn tidy(&self, now: Now) -> Vec<StoreError> {
        self.care(now, Occasion::Regular)
    }

    /// As [`Store::tidy`], but removes only as much as came: between two regular cares.
    pub(crate) fn tidy_what_came(&self) -> Vec<StoreError> {
        self.care(Now::read(), Occasion::TooMuchCame)
    }

    /// Keeps this from now on.
    pub(crate) fn keep(&self, retention: Retention) {
        self.context.keep(retention);
    }

    /// Waits until more came than may be kept.
    pub(crate) async fn too_much(&self) {
        self.context.too_much.notified().await;
    }

    fn care(&self, now: Now, occasion: Occasion) -> Vec<StoreError> {
        let sessions: Vec<SharedSession> = lock(&self.open).values().cloned().collect();
        for session in sessions {
            // A session that waits for the disk is left to the next care.
            if let Some(mut session) = try_lock(&session) {
                session.segments.rotate_if_old();
            }
        }
        self.forget_idle();
        // Before retention, which reads the times of events from them.
        let mut errors = self.make_indexes();
        self.context.open_sessions(lock(&self.open).len());
        let options = self.context.options_now();
        let free = FreeSpace::of(&options.root).ok();
        let enforced = lock(&self.retention).enforce(&options, now, occasion, free, self);
        let figures = &self.context.figures;
        Figures::add(&figures.removed_segments_total, enforced.removed);
        Figures::add(&figures.removed_bytes_total, enforced.removed_bytes);
        Figures::set(&figures.store_bytes, enforced.bytes);
        for ((host, _), removed) in &enforced.removed_of {
            figures
                .hosts
                .removed(host, (removed.segments, removed.bytes));
        }
        lock(&self.notices).extend(enforced.notices);
        errors.extend(enforced.errors);
        errors
    }

    /// Notices for the operator since the last call.
    pub fn take_notices(&self) -> Vec<String> {
        std::mem::take(&mut lock(&self.notices))
    }

    /// Whether a segment is being written, or holds what was not acknowledged.
    fn is_used(&self, segment: &Path) -> bool {
        files::parse(segment).is_some_and(|name| self.has_use_for(name.session, segment))
    }

    /// The session in memory that a segment is of.
    fn session_of(&self, segment: &Path) -> Option<SharedSession> {
        let name = files::parse(segment)?;
        lock(&self.open).get(&name.session).cloned()
    }

    /// Whether a session in memory writes a segment, or did so lately; true of one that waits for
    /// the disk.
    fn has_use_for(&self, session: Uuid, segment: &Path) -> bool {
        let has_use = self.ask(session, |session| session.segments.has_use_for(segment));
        has_use.unwrap_or(true)
    }

    fn remove_unused(&self, uuid: Uuid, segment: &Path) -> Result<bool, StoreError> {
        if self.has_use_for(uuid, segment) {
            return Ok(false);
        }
        fs::remove_file(segment).map_err(io_at("remove", segment))?;
        // Next to it lie its index, and perhaps copies of what was cut off.
        let _ = fs::remove_file(files::index_of(segment));
        let copies = damaged::remove_copies(segment);
        Figures::add(&self.context.figures.damaged_removed_total, copies);
        lock(&self.context.damaged).remove(segment);
        if self.directory_of(uuid).is_none() {
            session_directories::remove_empty(segment, &self.context.options.root);
        }
        Ok(true)
    }

    /// What a session in memory answers; `false` for any other. `None`: it waits for the disk.
    fn ask(&self, uuid: Uuid, ask: impl FnOnce(&StoredSession) -> bool) -> Option<bool> {
        let open = lock(&self.open).get(&uuid).cloned();
        let Some(session) = open else {
            return Some(false);
        };
        try_lock(&session).map(|session| ask(&session))
    }

    /// Makes indexes of closed segments, for [`INDEX_FOR`] at most.
    fn make_indexes(&self) -> Vec<StoreError> {
        let (begun, mut errors, mut later) = (Instant::now(), Vec::new(), Vec::new());
        while begun.elapsed() < INDEX_FOR {
            let Some(segment) = lock(&self.context.unindexed).pop() else {
                break;
            };
            // A segment that is written again will come again when it is closed.
            let of = files::parse(&segment).map(|name| name.session);
            let writes = |session: &StoredSession| session.segments.current() == Some(&segment);
            let is_written = of.map_or(Some(false), |of| self.ask(of, writes));
            match is_written {
                Some(true) => continue,
                None => {
                    later.push(segment);
                    continue;
                }
                Some(false) => {}
            }
            if session_directories::unnamed(&segment).exists() {
                later.push(segment);
            } else if segment.exists() {
                match index::make(&segment) {
                    Ok(Some(damage)) => self.context.damaged(&segment, &damage.to_string()),
                    Ok(None) => {}
                    Err(error) => errors.push(io_at("index", &segment)(error)),
                }
            }
        }
        // Segments without their names, or whose sessions wait, are left to the next call.
        lock(&self.context.unindexed).extend(later);
        errors
    }

    /// Forgets the sessions that no connection uses: they can be found again in their files.
    fn forget_idle(&self) {
        let mut open = lock(&self.open);
        open.retain(|uuid, session| !self.can_forget(*uuid, session));
    }

    /// Forgets a session that has ended, unless a connection uses it or something of it is not
    /// durable.
    pub(crate) fn forget(&self, uuid: Uuid) {
        let mut open = lock(&self.open);
        let session = open.get(&uuid);
        let is_durable = |session: &&SharedSession| {
            Arc::strong_count(session) == 1 && !lock(session).segments.have_unsynced()
        };
        let session = session.filter(is_durable);
        if session.is_some_and(|session| self.can_forget(uuid, session)) {
            let _ = open.remove(&uuid);
        }
    }

    /// Whether no connection uses a session; then it is noted where it can be found again.
    fn can_forget(&self, uuid: Uuid, session: &SharedSession) -> bool {
        if Arc::strong_count(session) > 1 {
            return false;
        }
        let mut session = lock(session);
        if session.segments.have_failed() && session.segments.give_up().is_err() {
            return false;
        }
        if session.is_stored() {
            lock(&self.directories).insert(uuid, session.segments.directory());
            lock(&self.context.unindexed).extend(session.current());
        }
        true
    }
}

impl Sessions for Store {
    fn is_written(&self, segment: &Path) -> bool {
        let unindexed = lock(&self.context.unindexed);
        let is_pending = unindexed.iter().any(|pending| pending == segment);
        drop(unindexed);
        is_pending || self.is_used(segment)
    }

    fn is_open(&self, segment: &Path) -> bool {
        let writes = |session: &StoredSession| session.segments.current() == Some(segment);
        let name = files::parse(segment);
        name.is_some_and(|name| self.ask(name.session, writes).unwrap_or(true))
    }

    /// A session that waits for the disk is left to the next care.
    fn close(&self, segment: &Path) {
        if let Some(session) = self.session_of(segment)
            && let Some(mut session) = try_lock(&session)
        {
            session.segments.close_if_current(segment);
        }
    }

    /// A connection may ask for the session at any time, so it cannot be found while this runs.
    fn remove(&self, segment: &Path) -> Result<bool, StoreError> {
        let Some(SegmentName { session: uuid, .. }) = files::parse(segment) else {
            return Ok(false);
        };
        self.turns.alone(uuid, || self.remove_unused(uuid, segment))
    }
}
