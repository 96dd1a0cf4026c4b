//! Follows sessions and sends their pages to a collector, connecting anew whenever it must.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ringmark_format::Uuid;
use ringmark_format::stream::kind;

use super::address::Address;
use super::connection::{Connection, Introduction, Said};
use super::flight::Flights;
use super::track::{Stage, Track, Trouble, Way};
use super::wire::Wire;
use crate::batch::Batch;
use crate::dump::Codec;
use crate::error::ReaderError;
use crate::pace::Pace;
use crate::selection::{Finder, Selection};

/// How often new sessions are looked for.
const SCAN_EVERY: Duration = Duration::from_millis(10);
/// How often counters are sent.
const COUNTERS_EVERY: Duration = Duration::from_secs(1);
/// Longest wait before a collector is tried again.
const RETRY_MAX: Duration = Duration::from_secs(5);
/// How long the end of a stream may take: until all is durable.
const END_WITHIN: Duration = Duration::from_secs(10);

/// What is streamed, and where to.
#[derive(Debug, Clone)]
pub struct StreamOptions {
    /// Which sessions.
    pub selection: Selection,
    /// The collector.
    pub to: Address,
    /// Who we say we are.
    pub introduction: Introduction,
    /// How pages are packed.
    pub codec: Codec,
    /// How long to wait before a collector is tried again; doubled each time, up to 5 s.
    pub retry: Duration,
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
    /// Page blocks sent; those that were sent again count again.
    pub pages: u64,
    /// Sessions being streamed.
    pub sessions_open: usize,
    /// Sessions whose every page is durable.
    pub sessions_done: usize,
    /// Events that the sessions' producers lost since the sessions started.
    pub lost: u64,
    /// Pages that were overwritten, or gone, before they could be sent.
    pub pages_skipped: u64,
}

/// Streams sessions to a collector.
pub struct Streamer {
    options: StreamOptions,
    finder: Finder,
    open_ended: bool,
    tracks: Vec<Track>,
    connection: Option<Connection>,
    flights: Flights,
    batch: Batch,
    scratch: Vec<u8>,
    pace: Pace,
    done: StreamFigures,
    notices: Vec<String>,
    scanned_at: Option<Instant>,
    counted_at: Instant,
    retry: Duration,
    retry_at: Instant,
    leaving: bool,
}

impl Streamer {
    /// A streamer of the selected sessions. Selected by pid or path, they must be there now; the
    /// collector need not.
    ///
    /// # Errors
    /// They are not there, may not be read, or are recorded by another process.
    pub fn new(options: StreamOptions) -> Result<Self, ReaderError> {
        let mut finder = Finder::new(options.selection.clone());
        let tracks = finder.first()?.into_iter().map(Track::new).collect();
        Ok(Self {
            open_ended: options.selection.is_open_ended(),
            retry: options.retry,
            finder,
            tracks,
            options,
            connection: None,
            flights: Flights::default(),
            batch: Batch::new(),
            scratch: Vec::new(),
            pace: Pace::new(),
            done: StreamFigures::default(),
            notices: Vec::new(),
            scanned_at: None,
            counted_at: Instant::now(),
            retry_at: Instant::now(),
            leaving: false,
        })
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
        self.finish()
    }

    /// Figures now.
    #[must_use]
    pub fn figures(&self) -> StreamFigures {
        let sum = |numbers: &mut dyn Iterator<Item = u64>| numbers.fold(0, u64::saturating_add);
        let drains = || self.tracks.iter().map(|t| &t.drain);
        let (sent, durable) = self
            .connection
            .as_ref()
            .map_or((0, 0), |c| (c.sent(), c.durable()));
        StreamFigures {
            connected: self.connection.is_some(),
            sent: self.done.sent + sent,
            in_flight: sent - durable,
            sessions_open: self.tracks.len(),
            lost: sum(&mut drains().map(|d| d.lost())).saturating_add(self.done.lost),
            pages_skipped: sum(&mut drains().map(|d| d.pages_skipped()))
                .saturating_add(self.done.pages_skipped),
            ..self.done.clone()
        }
    }

    /// What a person should know and has not been told yet.
    pub fn take_notices(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notices)
    }

    fn step(&mut self) {
        self.scan();
        if self.connection.is_none() && Instant::now() >= self.retry_at {
            self.connect();
        }
        if let Err(error) = self.exchange() {
            self.hang_up(&error);
        }
    }

    fn scan(&mut self) {
        if self.scanned_at.is_some_and(|at| at.elapsed() < SCAN_EVERY) {
            return;
        }
        self.scanned_at = Some(Instant::now());
        let (sessions, errors) = self.finder.news();
        self.notices.extend(errors.iter().map(ToString::to_string));
        self.tracks.extend(sessions.into_iter().map(Track::new));
    }

    fn connect(&mut self) {
        let opened = Wire::connect(&self.options.to)
            .and_then(|wire| Connection::open(wire, &self.options.introduction));
        match opened {
            Ok(connection) => {
                self.notices.push(format!("{}: connected", self.options.to));
                self.connection = Some(connection);
                self.done.connections += 1;
                self.retry = self.options.retry;
            }
            Err(error) => self.try_later(&error),
        }
    }

    /// Hears what the collector says, then sends what waits.
    fn exchange(&mut self) -> io::Result<()> {
        if self.connection.is_none() {
            return Ok(());
        }
        self.hear()?;
        let mut index = 0;
        while index < self.tracks.len() {
            let sent = self.with(index, Track::advance)?;
            self.done.pages += sent.unwrap_or(0);
            self.pace
                .saw(self.tracks.get(index).map_or(0, |t| t.drain.fill_1024()));
            index += usize::from(sent.is_some());
            self.hear()?;
        }
        if self.counted_at.elapsed() >= COUNTERS_EVERY {
            self.counted_at = Instant::now();
            let mut index = 0;
            while index < self.tracks.len() {
                index += usize::from(self.with(index, Track::count)?.is_some());
            }
        }
        Ok(())
    }

    /// Has a track act on the connection. `None`: its file was truncated, it is gone.
    fn with<R>(
        &mut self,
        index: usize,
        act: impl FnOnce(&mut Track, &mut Way<'_>) -> Result<R, Trouble>,
    ) -> io::Result<Option<R>> {
        let Some(connection) = &mut self.connection else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        let mut way = Way {
            connection,
            flights: &mut self.flights,
            batch: &mut self.batch,
            scratch: &mut self.scratch,
            codec: self.options.codec,
        };
        match act(&mut self.tracks[index], &mut way) {
            Ok(done) => Ok(Some(done)),
            Err(Trouble::Wire(error)) => Err(error),
            Err(Trouble::Session(error)) => {
                self.notices.push(error.to_string());
                self.tracks.remove(index);
                self.done.sessions_done += 1;
                Ok(None)
            }
        }
    }

    fn hear(&mut self) -> io::Result<()> {
        while let Some(connection) = &mut self.connection
            && let Some(said) = connection.hear()?
        {
            let durable = connection.durable();
            match said {
                Said::Durable => self.release(durable),
                Said::Resume {
                    session,
                    schema_bytes,
                    slots,
                } => {
                    if let Some(track) = self.track(session) {
                        track.resume(&slots, schema_bytes);
                    }
                }
                Said::Drain if !self.leaving => {
                    let text = "the collector asks to come back later";
                    return Err(io::Error::other(text));
                }
                Said::Drain => {}
            }
        }
        Ok(())
    }

    /// What the collector has for good is released, and sessions that it has whole are done.
    fn release(&mut self, durable: u64) {
        while let Some((session, positions)) = self.flights.landed(durable) {
            if let Some(track) = self.track(session) {
                track.drain.release_to(&positions);
            }
        }
        let mut index = 0;
        while let Some(track) = self.tracks.get(index) {
            if track.stage == Stage::Sent && !self.flights.holds(track.uuid()) {
                self.done_with(index);
            } else {
                index += 1;
            }
        }
    }

    fn done_with(&mut self, index: usize) {
        let track = self.tracks.remove(index);
        if let Err(error) = track.remove_if_drained() {
            self.notices.push(error.to_string());
        }
        self.done.sessions_done += 1;
        let skipped = track.drain.pages_skipped();
        self.done.lost = self.done.lost.saturating_add(track.drain.lost());
        self.done.pages_skipped = self.done.pages_skipped.saturating_add(skipped);
    }

    fn track(&mut self, session: Uuid) -> Option<&mut Track> {
        self.tracks.iter_mut().find(|t| t.uuid() == session)
    }

    fn hang_up(&mut self, error: &io::Error) {
        if let Some(connection) = self.connection.take() {
            self.done.sent += connection.sent();
        }
        self.flights = Flights::default();
        self.tracks.iter_mut().for_each(Track::begin_again);
        self.try_later(error);
    }

    fn try_later(&mut self, error: &io::Error) {
        let wait = jittered(self.retry);
        let text = format!(
            "{}: {error}; again in {} ms",
            self.options.to,
            wait.as_millis()
        );
        self.notices.push(text);
        self.retry_at = Instant::now() + wait;
        self.retry = (self.retry * 2).min(RETRY_MAX);
    }

    fn wait(&mut self) {
        if let Some(connection) = &self.connection
            && !self.tracks.iter().any(|t| t.stage == Stage::Streaming)
        {
            // Nothing to look at but the collector.
            let _ = connection.wait(SCAN_EVERY);
            return;
        }
        let watched = self.tracks.iter().filter_map(|t| t.drain.session().pidfd());
        self.pace.wait(watched);
    }

    /// Sends what is there now, open pages included, and waits until it is durable.
    fn finish(&mut self) -> Result<(), ReaderError> {
        let deadline = Instant::now() + END_WITHIN;
        self.leaving = true;
        let mut said_bye = false;
        while !(self.tracks.is_empty() && said_bye) {
            let ended = self.end_tracks().and_then(|()| {
                if self.tracks.is_empty()
                    && let Some(connection) = &mut self.connection
                {
                    said_bye = true;
                    connection.say(kind::BYE)?;
                }
                Ok(())
            });
            if let Err(error) = ended {
                self.hang_up(&error);
            }
            if self.tracks.is_empty() && self.connection.is_none() {
                return Ok(());
            }
            if Instant::now() > deadline {
                return Err(self.not_durable());
            }
            match &self.connection {
                Some(connection) => drop(connection.wait(SCAN_EVERY)),
                None => std::thread::sleep(SCAN_EVERY),
            }
        }
        Ok(())
    }

    fn end_tracks(&mut self) -> io::Result<()> {
        if self.connection.is_none() && Instant::now() >= self.retry_at {
            self.connect();
        }
        if self.connection.is_none() {
            return Ok(());
        }
        self.hear()?;
        let mut index = 0;
        while index < self.tracks.len() {
            let stage = self.tracks[index].stage;
            let sent = match stage {
                Stage::Streaming => {
                    let ended = self.tracks[index].drain.session().ended();
                    self.with(index, |track, way| {
                        let pages = track.advance(way)?;
                        match track.stage {
                            Stage::Streaming => Ok(pages + track.end(ended, way)?),
                            _ => Ok(pages),
                        }
                    })?
                }
                _ => self.with(index, Track::advance)?,
            };
            self.done.pages += sent.unwrap_or(0);
            index += usize::from(sent.is_some());
        }
        self.hear()
    }

    fn not_durable(&self) -> ReaderError {
        let text = format!(
            "{} sessions are not durable after {} s; what is not was not released",
            self.tracks.len(),
            END_WITHIN.as_secs()
        );
        ReaderError::Collector {
            address: self.options.to.to_string(),
            source: io::Error::new(io::ErrorKind::TimedOut, text),
        }
    }
}

/// Half to one and a half of it: streamers that were cut off together come back one by one.
fn jittered(wait: Duration) -> Duration {
    let noise = ringmark_ring::clock::realtime_ns() ^ u64::from(std::process::id()).rotate_left(20);
    let part = noise.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 54;
    wait / 2 + wait * part as u32 / 1024
}
