//! Follows sessions and sends their pages to a collector, over a new connection whenever one is
//! lost.
//!
//! One thread does everything in steps: look for new sessions, connect if there is no connection,
//! exchange (`exchange.rs`), move pages to disk while there is no collector, wait. Only connecting
//! has a thread of its own (`dialer.rs`): the rings must be looked after while a collector does not
//! answer.

pub(super) mod backoff;
mod dialer;
mod disk;
mod exchange;
mod finish;
mod link;
mod schedule;
mod triggers;
mod uploads;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::address::Address;
use super::connection::Introduction;
use super::credentials::Credentials;
use super::figures::StreamFigures;
use super::rate_limit::RateLimit;
use super::spill::{Spill, SpillOptions};
use super::streamed_session::{Stage, StreamedSession, Waits};
use crate::error::ReaderError;
use crate::interval::SCAN_EVERY;
use crate::pages::batch::Batch;
use crate::pages::codec::{Codec, Packer};
use crate::sessions::pace::Pace;
use crate::sessions::selection::{Finder, Selection};
use crate::sessions::session::Session;
use crate::sessions::stream_status::{self, StreamStatus};
use crate::sessions::uuid_owners::UuidOwners;
use dialer::Dialer;
use disk::Disk;
use link::CollectorLink;
use schedule::{Scan, Schedule};
use triggers::TriggerWatch;
pub use triggers::Upload;

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
    /// How long to wait before a collector is tried again; doubled each time, up to 5 s. After a
    /// refusal for now, such as that of a full store, ten times as long, up to 60 s.
    pub retry: Duration,
    /// How often what is committed in open pages is sent. A page that fills sooner is sent when it
    /// is sealed.
    pub open_every: Duration,
    /// Where pages wait on disk while the collector is away or slow; `None`: in their rings.
    pub spill: Option<SpillOptions>,
    /// Sends pages of discard sessions without copying them. It has no effect with a spill, which
    /// releases pages that are under way.
    pub zero_copy: bool,
    /// When sessions in overwrite mode are sent.
    pub upload: Upload,
    /// Most bytes sent in a second; `None`: as fast as the collector takes them.
    pub bytes_per_second: Option<u64>,
}

/// Streams sessions to a collector.
pub struct Streamer {
    options: StreamOptions,
    finder: Finder,
    owners: UuidOwners,
    sessions: Vec<StreamedSession>,
    disk: Disk,
    link: CollectorLink,
    batch: Batch,
    packer: Packer,
    rate: RateLimit,
    pace: Pace,
    /// Figures of the sessions and connections that have ended.
    done: StreamFigures,
    notices: Vec<String>,
    schedule: Schedule,
    /// Asks function tracers for their triggers, if sessions wait for them.
    triggers: Option<TriggerWatch>,
    /// The end was requested.
    leaving: bool,
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
        let disk = Disk::open(options.spill.clone())?;
        let triggers = TriggerWatch::if_wanted(options.upload)?;
        let mut streamer = Self {
            link: CollectorLink::new(Dialer::new(
                options.to.clone(),
                options.introduction.clone(),
                options.credentials.clone(),
                options.retry,
            )),
            finder,
            owners: UuidOwners::default(),
            sessions: Vec::new(),
            notices: disk.notices(),
            disk,
            packer: Packer::new(options.codec),
            rate: RateLimit::new(options.bytes_per_second),
            options,
            batch: Batch::new(),
            pace: Pace::new(),
            done: StreamFigures::default(),
            schedule: Schedule::new(),
            triggers,
            leaving: false,
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
            if self.sessions.is_empty() && !self.finder.is_open_ended() {
                break;
            }
            self.wait();
        }
        let finished = self.finish();
        self.finder.count_removals();
        self.notices.extend(self.finder.notices());
        finished
    }

    /// Figures now.
    #[must_use]
    pub fn figures(&self) -> StreamFigures {
        let sum = |numbers: &mut dyn Iterator<Item = u64>| numbers.fold(0, u64::saturating_add);
        let drains = || self.sessions.iter().filter_map(StreamedSession::drain);
        let (sent, durable) = (self.link.sent(), self.link.durable());
        let certificate = self.link.certificate_expiry();
        let removals = self.finder.removals();
        let lags = self.sessions.iter().map(|session| self.lag(session));
        StreamFigures {
            connected: self.link.connection.is_some(),
            sent: self.done.sent + sent,
            in_flight: sent - durable,
            spilled: self.disk.used(),
            lag: lags.max().unwrap_or_default(),
            certificate_until: certificate.map(|expiry| expiry.timestamp()),
            certificate_renewal: certificate.map(|expiry| expiry.renewal_timestamp()),
            sessions_open: self.sessions.len(),
            sessions_left_out: self.finder.left_out(),
            lost: sum(&mut drains()
                .map(|d| d.lost())
                .chain([self.done.lost, removals.events])),
            removals,
            pages_skipped: sum(&mut drains().map(|d| d.pages_skipped()))
                .saturating_add(self.done.pages_skipped),
            uploads: self.done.uploads + sum(&mut self.sessions.iter().map(|s| s.uploads)),
            overwritten: sum(&mut drains().map(|d| d.overwritten()))
                .saturating_add(self.done.overwritten),
            ..self.done.clone()
        }
    }

    /// How long the oldest page of a session that is not durable has waited.
    fn lag(&self, session: &StreamedSession) -> Duration {
        let spilled = session.spill.as_ref().map_or(Duration::ZERO, Spill::age);
        let away = self.link.away().unwrap_or_default();
        let in_flight = self.link.in_flight.age(session.uuid);
        in_flight.max(spilled).max(away)
    }

    /// Notices for the user since the last call.
    pub fn take_notices(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notices)
    }

    fn step(&mut self) {
        self.scan();
        self.connect();
        self.write_status();
        self.hear_triggers();
        if let Err(error) = self.exchange() {
            self.hang_up(&error);
        }
        if let Some(away) = self.link.away() {
            let mut index = 0;
            while index < self.sessions.len() {
                index += usize::from(self.spill_pages(index, Waits::Away(away)));
            }
        }
    }

    fn write_status(&mut self) {
        if !self.schedule.is_status_due() {
            return;
        }
        self.link.look_at_certificate(&mut self.notices);
        self.sessions
            .iter_mut()
            .for_each(StreamedSession::keep_acked);
        for session in &self.sessions {
            let Some(drain) = session.drain() else {
                continue;
            };
            let status = StreamStatus {
                to: self.options.to.to_string(),
                connected: self.link.connection.is_some(),
                in_flight: self.link.in_flight.bytes(session.uuid),
                spilled: session.spill.as_ref().map_or(0, Spill::bytes),
                lag_ms: self.lag(session).as_millis() as u64,
                lost: drain.lost(),
                overwritten: drain.overwritten(),
            };
            // Without a status, in a directory that may not be written, the stream goes on.
            let _ = status.write(drain.session());
        }
    }

    /// Begins to stream the sessions that have appeared; the first time also those of which only
    /// the spill is left.
    fn scan(&mut self) {
        let scan = self.schedule.scan();
        if scan == Scan::NotYet {
            return;
        }
        let found = self.finder.look();
        self.notices
            .extend(found.errors.iter().map(ToString::to_string));
        self.notices.extend(self.finder.notices());
        found
            .sessions
            .into_iter()
            .for_each(|session| self.follow(session));
        if scan == Scan::First {
            let left = self.disk.take_left().into_iter();
            let sessions = left.map(|(uuid, spill)| StreamedSession::on_disk(uuid, spill));
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
        let mut session = StreamedSession::new(session, self.disk.spill_of(uuid));
        if self.options.zero_copy && !self.disk.is_there() {
            session.send_by_reference();
        }
        if let Some(triggers) = &self.triggers {
            session.hold();
            triggers.watch(&session);
        }
        self.sessions.push(session);
    }

    /// Has a session move pages to the spill, if it must. Returns whether the session is still
    /// there: one whose ring file was truncated is dropped.
    fn spill_pages(&mut self, index: usize, waits: Waits) -> bool {
        let Some(session) = self.sessions.get_mut(index) else {
            return false;
        };
        match session.spill_pages(waits, &mut self.batch) {
            Ok(spilled) => {
                if !spilled.is_full {
                    self.pace.saw(spilled.fullest);
                }
                let options = self.options.spill.as_ref();
                self.notices
                    .extend(self.disk.notice_if_full(options, &spilled));
                true
            }
            Err(error) => {
                self.drop_session(index, &error);
                false
            }
        }
    }

    /// Drops a session whose ring file failed.
    fn drop_session(&mut self, index: usize, error: &ReaderError) {
        self.notices.push(error.to_string());
        let session = self.sessions.remove(index);
        if let Some(drain) = session.drain() {
            stream_status::remove(drain.session());
        }
        self.done.sessions_done += 1;
    }

    fn wait(&mut self) {
        let streams = |s: &StreamedSession| matches!(s.stage, Stage::Streaming | Stage::Ending);
        let is_idle = !self.sessions.iter().any(streams);
        if let Some(connection) = &self.link.connection
            && (is_idle || self.link.is_stalled)
        {
            // Only the collector can change anything.
            let most = if self.link.is_stalled {
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
        self.sessions
            .iter_mut()
            .for_each(StreamedSession::keep_acked);
        let drains = self.sessions.iter().filter_map(StreamedSession::drain);
        drains.for_each(|drain| stream_status::remove(drain.session()));
    }
}
