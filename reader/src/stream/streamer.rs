//! Follows sessions and sends their pages to a collector, over a new connection whenever one is
//! lost.
//!
//! One thread does everything in steps: look for new sessions, connect if there is no connection,
//! exchange (`exchange.rs`), move pages to disk while there is no collector, wait. Only connecting
//! has a thread of its own (`dialer.rs`): the rings must be looked after while a collector does not
//! answer.

mod dialer;
mod exchange;
mod finish;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ringmark_format::Uuid;

use super::address::Address;
use super::connection::{Connection, Introduction};
use super::credentials::Credentials;
use super::in_flight::InFlight;
use super::spill::{self, Spill, SpillDirectory, SpillOptions};
use super::status::{self, StreamStatus};
use super::streamed_session::{Spilled, Stage, StreamedSession};
use crate::error::ReaderError;
use crate::pages::batch::Batch;
use crate::recording::dump::Codec;
use crate::sessions::leases::Gone;
use crate::sessions::pace::Pace;
use crate::sessions::selection::{Finder, Selection};
use crate::sessions::session::Session;
use crate::sessions::uuid_owners::UuidOwners;
use dialer::Dialer;

/// How often the streamer looks for new sessions.
const SCAN_EVERY: Duration = Duration::from_millis(10);
/// How often the status of each session's stream is written.
const STATUS_EVERY: Duration = Duration::from_secs(1);
/// How long to wait for a collector that gave too little credit.
const STALLED_WAIT: Duration = Duration::from_millis(2);

/// What is streamed, and where to.
#[derive(Debug, Clone)]
pub struct StreamOptions {
    /// Which sessions.
    pub selection: Selection,
    /// The collector.
    pub to: Address,
    /// Our certificate and the CA that we trust, for TLS.
    pub credentials: Option<Credentials>,
    /// What the collector is told about us.
    pub introduction: Introduction,
    /// How pages are packed on the wire.
    pub codec: Codec,
    /// How long to wait before a collector is tried again; doubled each time, up to 5 s.
    pub retry: Duration,
    /// How often what is committed in open pages is sent. A page that fills sooner is sent when it
    /// is sealed.
    pub open_every: Duration,
    /// Where pages wait on disk while the collector is away or slow; `None`: in their rings.
    pub spill: Option<SpillOptions>,
    /// Sends pages of discard sessions without copying them. It has no effect with a spill, which
    /// releases pages that are under way.
    pub zero_copy: bool,
}

/// Figures of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StreamFigures {
    /// Whether there is a connection now.
    pub connected: bool,
    /// Number of connections that were greeted.
    pub connections: u64,
    /// Bytes sent on all connections.
    pub sent: u64,
    /// Bytes that are in flight: sent, and not known to be durable.
    pub in_flight: u64,
    /// Bytes that wait on disk.
    pub spilled: u64,
    /// How long the oldest page that is not durable has waited since it was taken, or for how long
    /// there has been no collector.
    pub lag: Duration,
    /// Page blocks sent. A page that is sent again counts again.
    pub pages: u64,
    /// Sessions being streamed.
    pub sessions_open: usize,
    /// Sessions whose every page is durable.
    pub sessions_done: usize,
    /// Sessions that could not be opened because descriptors or memory were short.
    pub sessions_left_out: usize,
    /// Events that the programs lost since their sessions started, and those of `gone`.
    pub lost: u64,
    /// Sessions that were removed before they could be read.
    pub gone: Gone,
    /// Pages that were overwritten before they could be sent.
    pub pages_skipped: u64,
}

/// Streams sessions to a collector.
pub struct Streamer {
    options: StreamOptions,
    finder: Finder,
    /// Sessions that do not exist yet are selected, too.
    open_ended: bool,
    owners: UuidOwners,
    sessions: Vec<StreamedSession>,
    spill: Option<Arc<SpillDirectory>>,
    /// What an earlier process left on disk, of sessions that were not found yet.
    left_on_disk: HashMap<Uuid, Spill>,
    /// The notice about a full spill was made.
    is_spill_full: bool,
    dialer: Dialer,
    connection: Option<Connection>,
    away_since: Instant,
    /// The collector gave too little credit in the last round.
    stalled: bool,
    in_flight: InFlight,
    batch: Batch,
    /// Buffer for packed pages.
    scratch: Vec<u8>,
    pace: Pace,
    /// Figures of the sessions and connections that have ended.
    done: StreamFigures,
    notices: Vec<String>,
    scanned_at: Option<Instant>,
    status_at: Option<Instant>,
    counted_at: Instant,
    /// The end was requested.
    leaving: bool,
    /// When the collector announced that it will close.
    parting: Option<Instant>,
}

impl Streamer {
    /// A streamer of the selected sessions. Those selected by pid or path must be there now; the
    /// collector need not.
    ///
    /// # Errors
    /// A session is not there, may not be read, or is recorded by another process; or the directory
    /// of the spill cannot be used.
    pub fn new(options: StreamOptions) -> Result<Self, ReaderError> {
        let mut finder = Finder::new(options.selection.clone());
        let first = finder.first()?;
        let opened = options.spill.clone().map(spill::open).transpose()?;
        let (spill, left_on_disk) = match opened {
            Some(opened) => (Some(opened.directory), opened.sessions),
            None => (None, HashMap::new()),
        };
        let notices = spill.as_ref().map_or_else(Vec::new, |s| s.notices.clone());
        let now = Instant::now();
        let mut streamer = Self {
            open_ended: options.selection.is_open_ended(),
            dialer: Dialer::new(
                options.to.clone(),
                options.introduction.clone(),
                options.credentials.clone(),
                options.retry,
            ),
            finder,
            owners: UuidOwners::default(),
            sessions: Vec::new(),
            spill,
            left_on_disk,
            is_spill_full: false,
            options,
            connection: None,
            away_since: now,
            stalled: false,
            in_flight: InFlight::default(),
            batch: Batch::new(),
            scratch: Vec::new(),
            pace: Pace::new(),
            done: StreamFigures::default(),
            notices,
            scanned_at: None,
            status_at: None,
            counted_at: now,
            leaving: false,
            parting: None,
        };
        first
            .into_iter()
            .for_each(|session| streamer.follow(session));
        Ok(streamer)
    }

    /// Streams until all selected sessions ended and are durable, or `stop` is set. `each` is
    /// called after every pass.
    ///
    /// # Errors
    /// The stop was requested, and not everything became durable in time. What is not durable was
    /// not released.
    pub fn run(
        &mut self,
        stop: &AtomicBool,
        mut each: impl FnMut(&mut Self),
    ) -> Result<(), ReaderError> {
        while !stop.load(Ordering::Relaxed) {
            self.step();
            each(self);
            if self.sessions.is_empty() && !self.open_ended {
                break;
            }
            self.wait();
        }
        let finished = self.finish();
        self.finder.count_gone();
        self.notices.extend(self.finder.notices());
        finished
    }

    /// Figures now.
    #[must_use]
    pub fn figures(&self) -> StreamFigures {
        let sum = |numbers: &mut dyn Iterator<Item = u64>| numbers.fold(0, u64::saturating_add);
        let drains = || self.sessions.iter().filter_map(StreamedSession::drain);
        let (sent, durable) = self
            .connection
            .as_ref()
            .map_or((0, 0), |c| (c.sent(), c.durable()));
        let gone = self.finder.gone();
        let lags = self.sessions.iter().map(|session| self.lag(session));
        StreamFigures {
            connected: self.connection.is_some(),
            sent: self.done.sent + sent,
            in_flight: sent - durable,
            spilled: self.spill.as_ref().map_or(0, |spill| spill.used()),
            lag: lags.max().unwrap_or_default(),
            sessions_open: self.sessions.len(),
            sessions_left_out: self.finder.left_out(),
            lost: sum(&mut drains()
                .map(|d| d.lost())
                .chain([self.done.lost, gone.events])),
            gone,
            pages_skipped: sum(&mut drains().map(|d| d.pages_skipped()))
                .saturating_add(self.done.pages_skipped),
            ..self.done.clone()
        }
    }

    /// How long the oldest page of a session that is not durable has waited.
    fn lag(&self, session: &StreamedSession) -> Duration {
        let spilled = session.spill.as_ref().map_or(Duration::ZERO, Spill::age);
        let away = self.away().unwrap_or_default();
        let in_flight = self.in_flight.age(session.uuid);
        in_flight.max(spilled).max(away)
    }

    /// For how long there has been no collector; `None`: there is one.
    fn away(&self) -> Option<Duration> {
        let is_away = self.connection.is_none();
        is_away.then(|| self.away_since.elapsed())
    }

    /// Notices for the user since the last call.
    pub fn take_notices(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notices)
    }

    fn step(&mut self) {
        self.scan();
        self.connect();
        self.write_status();
        if let Err(error) = self.exchange() {
            self.hang_up(&error);
        }
        if let Some(away) = self.away() {
            let mut index = 0;
            while index < self.sessions.len() {
                index += usize::from(self.spill_pages(index, Some(away)));
            }
        }
    }

    fn write_status(&mut self) {
        if self.status_at.is_some_and(|at| at.elapsed() < STATUS_EVERY) {
            return;
        }
        self.status_at = Some(Instant::now());
        for session in &self.sessions {
            let Some(drain) = session.drain() else {
                continue;
            };
            let status = StreamStatus {
                to: self.options.to.to_string(),
                connected: self.connection.is_some(),
                in_flight: self.in_flight.bytes(session.uuid),
                spilled: session.spill.as_ref().map_or(0, Spill::bytes),
                lag_ms: self.lag(session).as_millis() as u64,
                lost: drain.lost(),
            };
            // Without a status, in a directory that may not be written, the stream goes on.
            let _ = status.write(drain.session());
        }
    }

    /// Begins to stream the sessions that have appeared; the first time also those of which only
    /// the spill is left.
    fn scan(&mut self) {
        if self.scanned_at.is_some_and(|at| at.elapsed() < SCAN_EVERY) {
            return;
        }
        let is_first = self.scanned_at.replace(Instant::now()).is_none();
        let found = self.finder.look();
        self.notices
            .extend(found.errors.iter().map(ToString::to_string));
        self.notices.extend(self.finder.notices());
        found
            .sessions
            .into_iter()
            .for_each(|session| self.follow(session));
        if is_first {
            let left = std::mem::take(&mut self.left_on_disk).into_iter();
            let sessions = left.map(|(uuid, spill)| StreamedSession::on_disk(uuid, Some(spill)));
            self.sessions.extend(sessions);
        }
    }

    fn follow(&mut self, mut session: Session) {
        self.notices.extend(self.owners.keep_apart(&mut session));
        let uuid = session.uuid();
        if self.sessions.iter().any(|other| other.uuid == uuid) {
            // What an earlier process left of it on disk is sent first; then it is found again.
            self.finder.forget(session.path());
            return;
        }
        let new = || Some(Spill::new(self.spill.clone()?, uuid));
        let spill = self.left_on_disk.remove(&uuid).or_else(new);
        let mut session = StreamedSession::new(session, spill);
        if self.options.zero_copy && self.spill.is_none() {
            session.send_by_reference();
        }
        self.sessions.push(session);
    }

    /// Has a session move pages to the spill, if it must. Returns whether the session is still
    /// there: one whose ring file was truncated is dropped.
    fn spill_pages(&mut self, index: usize, away: Option<Duration>) -> bool {
        let Some(session) = self.sessions.get_mut(index) else {
            return false;
        };
        match session.spill_pages(away, &mut self.batch) {
            Ok(spilled) => {
                if !spilled.is_full {
                    self.pace.saw(spilled.fullest);
                }
                self.notice_full_spill(&spilled);
                true
            }
            Err(error) => {
                self.drop_session(index, &error);
                false
            }
        }
    }

    /// Makes a notice of a full spill, and no other before it was half empty again.
    fn notice_full_spill(&mut self, spilled: &Spilled) {
        let (Some(spill), Some(options)) = (&self.spill, &self.options.spill) else {
            return;
        };
        let was_full = self.is_spill_full && spill.used() > options.bytes_max / 2;
        self.is_spill_full = was_full || spilled.is_full;
        if was_full || !spilled.is_full {
            return;
        }
        let why = match &spilled.error {
            Some(error) => error.to_string(),
            None => format!("{}: the spill is full", options.directory.display()),
        };
        let text = format!("{why}; pages stay in their rings, what these cannot hold is counted");
        self.notices.push(text);
    }

    /// Drops a session whose ring file failed.
    fn drop_session(&mut self, index: usize, error: &ReaderError) {
        self.notices.push(error.to_string());
        let session = self.sessions.remove(index);
        if let Some(drain) = session.drain() {
            status::remove(drain.session());
        }
        self.done.sessions_done += 1;
    }

    fn wait(&mut self) {
        let streams = |s: &StreamedSession| matches!(s.stage, Stage::Streaming | Stage::Ending);
        let is_idle = !self.sessions.iter().any(streams);
        if let Some(connection) = &self.connection
            && (is_idle || self.stalled)
        {
            // Only the collector can change anything.
            let most = if self.stalled {
                STALLED_WAIT
            } else {
                SCAN_EVERY
            };
            let _ = connection.wait(most);
            return;
        }
        let drains = self.sessions.iter().filter_map(StreamedSession::drain);
        self.pace.wait(drains.map(|drain| drain.session()));
    }
}

impl Drop for Streamer {
    fn drop(&mut self) {
        let drains = self.sessions.iter().filter_map(StreamedSession::drain);
        drains.for_each(|drain| status::remove(drain.session()));
    }
}
