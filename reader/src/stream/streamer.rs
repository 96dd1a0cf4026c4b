//! Follows sessions and sends their pages to a collector, connecting anew whenever it must.

mod finish;
mod exchange;

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use ringmark_format::Uuid;

use super::address::Address;
use super::connection::{Connection, Introduction};
use super::credentials::Credentials;
use super::in_flight::Flights;
use super::spill::{Place, Spill, SpillOptions};
use super::status::{self, StreamStatus};
use super::streamed_session::{Held, Stage, Track};
use crate::error::ReaderError;
use crate::pages::batch::Batch;
use crate::recording::dump::Codec;
use crate::sessions::leases::Gone;
use crate::sessions::pace::Pace;
use crate::sessions::selection::{Finder, Selection};
use crate::sessions::session::Session;
use crate::sessions::uuid_owners::Owners;

/// How often new sessions are looked for.
const SCAN_EVERY: Duration = Duration::from_millis(10);
/// How often each session's stream says how it stands.
const STATUS_EVERY: Duration = Duration::from_secs(1);
/// How often a collector that is slow is looked at.
const STALLED: Duration = Duration::from_millis(2);

/// What is streamed, and where to.
#[derive(Debug, Clone)]
pub struct StreamOptions {
    /// Which sessions.
    pub selection: Selection,
    /// The collector.
    pub to: Address,
    /// What proves it, over TLS.
    pub credentials: Option<Credentials>,
    /// Who we say we are.
    pub introduction: Introduction,
    /// How pages are packed.
    pub codec: Codec,
    /// How long to wait before a collector is tried again; doubled each time, up to 5 s.
    pub retry: Duration,
    /// How often what is committed in pages that are still open is sent. A page that is filled
    /// sooner goes when it is sealed.
    pub open_every: Duration,
    /// Where pages wait while the collector is away or slow.
    pub spill: Option<SpillOptions>,
    /// Sends pages of discard sessions without copying them. Not together with a spill: it
    /// releases pages that are under way.
    pub zero_copy: bool,
}

/// Figures of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StreamFigures {
    /// Whether there is a connection now.
    pub connected: bool,
    /// Connections that came about.
    pub connections: u64,
    /// Bytes sent, all connections.
    pub sent: u64,
    /// Bytes that are under way: sent, and not known to be durable.
    pub in_flight: u64,
    /// Bytes that wait on disk.
    pub spilled: u64,
    /// How long the oldest page that is not durable has waited since it was taken, or since there
    /// is no collector.
    pub lag: Duration,
    /// Page blocks sent; those that were sent again count again.
    pub pages: u64,
    /// Sessions being streamed.
    pub sessions_open: usize,
    /// Sessions whose every page is durable.
    pub sessions_done: usize,
    /// Sessions that are there and could not be opened, because descriptors or memory were short.
    pub sessions_left_out: usize,
    /// Events that the sessions' producers lost since the sessions started, and those of `gone`.
    pub lost: u64,
    /// Sessions that were removed before they could be read.
    pub gone: Gone,
    /// Pages that were overwritten, or gone, before they could be sent.
    pub pages_skipped: u64,
}

/// Streams sessions to a collector.
pub struct Streamer {
    options: StreamOptions,
    finder: Finder,
    open_ended: bool,
    owners: Owners,
    tracks: Vec<Track>,
    place: Option<Arc<Place>>,
    /// What an earlier process left on disk, of sessions that were not found yet.
    left: HashMap<Uuid, Spill>,
    /// Told that the spill is full.
    is_full: bool,
    connection: Option<Connection>,
    /// A connection that comes about, or does not.
    coming: Option<Receiver<io::Result<Connection>>>,
    away_since: Instant,
    /// The collector takes less than there is.
    stalled: bool,
    flights: Flights,
    batch: Batch,
    scratch: Vec<u8>,
    pace: Pace,
    done: StreamFigures,
    notices: Vec<String>,
    scanned_at: Option<Instant>,
    status_at: Option<Instant>,
    counted_at: Instant,
    retry: Duration,
    retry_at: Instant,
    /// Why there is no collector, and when that was told.
    told: Option<(String, Instant)>,
    leaving: bool,
    /// The collector asked us to go; since when we wait for its last word.
    parting: Option<Instant>,
}

impl Streamer {
    /// A streamer of the selected sessions. Selected by pid or path, they must be there now; the
    /// collector need not.
    ///
    /// # Errors
    /// They are not there, may not be read, or are recorded by another process; or the directory
    /// for the spill cannot be used.
    pub fn new(options: StreamOptions) -> Result<Self, ReaderError> {
        let mut finder = Finder::new(options.selection.clone());
        let first = finder.first()?;
        let (place, left) = match options.spill.clone().map(Place::open).transpose()? {
            Some((place, left)) => (Some(place), left),
            None => (None, HashMap::new()),
        };
        let notices = place.as_ref().map_or_else(Vec::new, |p| p.notices.clone());
        let now = Instant::now();
        let mut streamer = Self {
            open_ended: options.selection.is_open_ended(),
            retry: options.retry,
            finder,
            owners: Owners::default(),
            tracks: Vec::new(),
            place,
            left,
            is_full: false,
            options,
            connection: None,
            coming: None,
            away_since: now,
            stalled: false,
            flights: Flights::default(),
            batch: Batch::new(),
            scratch: Vec::new(),
            pace: Pace::new(),
            done: StreamFigures::default(),
            notices,
            scanned_at: None,
            status_at: None,
            counted_at: now,
            retry_at: now,
            told: None,
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
    /// Told to stop, and not everything could be made durable: nothing that is not was released.
    pub fn run(
        &mut self,
        stop: &AtomicBool,
        mut each: impl FnMut(&mut Self),
    ) -> Result<(), ReaderError> {
        while !stop.load(Ordering::Relaxed) {
            self.step();
            each(self);
            if self.tracks.is_empty() && !self.open_ended {
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
        let drains = || self.tracks.iter().filter_map(Track::drain);
        let (sent, durable) = self
            .connection
            .as_ref()
            .map_or((0, 0), |c| (c.sent(), c.durable()));
        let gone = self.finder.gone();
        let lags = self.tracks.iter().map(|track| self.lag(track));
        StreamFigures {
            connected: self.connection.is_some(),
            sent: self.done.sent + sent,
            in_flight: sent - durable,
            spilled: self.place.as_ref().map_or(0, |place| place.used()),
            lag: lags.max().unwrap_or_default(),
            sessions_open: self.tracks.len(),
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

    fn lag(&self, track: &Track) -> Duration {
        let spilled = track.spill.as_ref().map_or(Duration::ZERO, Spill::age);
        let away = self.away().unwrap_or_default();
        self.flights.age(track.uuid).max(spilled).max(away)
    }

    /// Since when there is no collector.
    fn away(&self) -> Option<Duration> {
        let is_away = self.connection.is_none();
        is_away.then(|| self.away_since.elapsed())
    }

    /// What a person should know and has not been told yet.
    pub fn take_notices(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notices)
    }

    fn step(&mut self) {
        self.scan();
        self.connect();
        self.say_status();
        if let Err(error) = self.exchange() {
            self.hang_up(&error);
        }
        if let Some(away) = self.away() {
            let mut index = 0;
            while index < self.tracks.len() {
                index += usize::from(self.hold(index, Some(away)));
            }
        }
    }

    fn say_status(&mut self) {
        if self.status_at.is_some_and(|at| at.elapsed() < STATUS_EVERY) {
            return;
        }
        self.status_at = Some(Instant::now());
        for track in &self.tracks {
            let Some(drain) = track.drain() else { continue };
            let status = StreamStatus {
                to: self.options.to.to_string(),
                connected: self.connection.is_some(),
                in_flight: self.flights.bytes(track.uuid),
                spilled: track.spill.as_ref().map_or(0, Spill::bytes),
                lag_ms: self.lag(track).as_millis() as u64,
                lost: drain.lost(),
            };
            // Where it cannot be said (a directory that is only read) the stream goes on.
            let _ = status.say(drain.session());
        }
    }

    fn scan(&mut self) {
        if self.scanned_at.is_some_and(|at| at.elapsed() < SCAN_EVERY) {
            return;
        }
        let is_first = self.scanned_at.replace(Instant::now()).is_none();
        let (sessions, errors) = self.finder.news();
        self.notices.extend(errors.iter().map(ToString::to_string));
        self.notices.extend(self.finder.notices());
        sessions
            .into_iter()
            .for_each(|session| self.follow(session));
        if is_first {
            let left = std::mem::take(&mut self.left).into_iter();
            let tracks = left.map(|(uuid, spill)| Track::left(uuid, Some(spill)));
            self.tracks.extend(tracks);
        }
    }

    fn follow(&mut self, mut session: Session) {
        self.notices.extend(self.owners.keep_apart(&mut session));
        let uuid = session.uuid();
        if self.tracks.iter().any(|track| track.uuid == uuid) {
            // What an earlier process left of it goes first.
            self.finder.forget(session.path());
            return;
        }
        let new = || Some(Spill::new(self.place.clone()?, uuid));
        let spill = self.left.remove(&uuid).or_else(new);
        let mut track = Track::new(session, spill);
        track.send_by_reference(self.options.zero_copy && self.place.is_none());
        self.tracks.push(track);
    }

    /// Has a track move pages to the spill, if it should. `false`: its file was truncated, it is
    /// gone.
    fn hold(&mut self, index: usize, away: Option<Duration>) -> bool {
        let Some(track) = self.tracks.get_mut(index) else {
            return false;
        };
        match track.hold(away, &mut self.batch) {
            Ok(held) => {
                if !held.full {
                    self.pace.saw(held.fill);
                }
                self.tell_if_full(&held);
                true
            }
            Err(error) => {
                self.drop_track(index, &error);
                false
            }
        }
    }

    /// Told once, until it has become half empty.
    fn tell_if_full(&mut self, held: &Held) {
        let (Some(place), Some(options)) = (&self.place, &self.options.spill) else {
            return;
        };
        let was_full = self.is_full && place.used() > options.bytes_max / 2;
        self.is_full = was_full || held.full;
        if was_full || !held.full {
            return;
        }
        let why = match &held.error {
            Some(error) => error.to_string(),
            None => format!("{}: the spill is full", options.directory.display()),
        };
        let text = format!("{why}; pages stay in their rings, what these cannot hold is counted");
        self.notices.push(text);
    }

    fn drop_track(&mut self, index: usize, error: &ReaderError) {
        self.notices.push(error.to_string());
        let track = self.tracks.remove(index);
        if let Some(drain) = track.drain() {
            status::forget(drain.session());
        }
        self.done.sessions_done += 1;
    }

    fn wait(&mut self) {
        let streams = |t: &Track| matches!(t.stage, Stage::Streaming | Stage::Ending);
        let is_idle = !self.tracks.iter().any(streams);
        if let Some(connection) = &self.connection
            && (is_idle || self.stalled)
        {
            // Nothing to look at but the collector.
            let most = if self.stalled { STALLED } else { SCAN_EVERY };
            let _ = connection.wait(most);
            return;
        }
        let drains = self.tracks.iter().filter_map(Track::drain);
        self.pace.wait(drains.map(|drain| drain.session()));
    }
}

impl Drop for Streamer {
    fn drop(&mut self) {
        let drains = self.tracks.iter().filter_map(Track::drain);
        drains.for_each(|drain| status::forget(drain.session()));
    }
}
