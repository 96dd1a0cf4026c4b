//! The recorder: follows sessions, writes their pages, and only then releases them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ringmark_format::counters::{CountersHeader, SlotCounters};
use ringmark_format::session::Mode;

use crate::batch::Batch;
use crate::drain::{Fill, SessionDrain};
use crate::dump::{Dump, Limit, block_bytes};
use crate::error::ReaderError;
use crate::pace::Pace;
use crate::selection::{Finder, Selection};
use crate::session::Session;

/// How often counters are written while sessions run, so that a killed recorder leaves fresh ones.
const COUNTERS_EVERY: Duration = Duration::from_secs(1);
/// How often new sessions are looked for.
const SCAN_EVERY: Duration = Duration::from_millis(10);
/// How often a quiet session's process is looked at thoroughly (has it become another program?).
const LIVENESS_EVERY: Duration = Duration::from_millis(200);
/// How long a closed session must be quiet before it counts as read to its end.
const QUIET_AFTER_CLOSE: Duration = Duration::from_millis(5);
/// How long to wait before a full disk is tried again.
const RETRY_AFTER: Duration = Duration::from_millis(100);

/// What a recorder does besides its dump's own settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordOptions {
    /// On a full disk, try again (the producers go on and count what they lose) instead of ending.
    pub wait_for_space: bool,
    /// Remove the ring file of an ended lossless session that was read to its end, unless the
    /// session asked to be kept.
    pub remove_drained: bool,
    /// Remove also those that asked to be kept: whoever started the program asked for it only so
    /// that the session outlives a short run.
    pub remove_kept: bool,
}

impl Default for RecordOptions {
    fn default() -> Self {
        Self {
            wait_for_space: false,
            remove_drained: true,
            remove_kept: false,
        }
    }
}

/// Why a recording ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// All selected sessions ended, and everything was read.
    SessionsEnded,
    /// It was told to stop.
    Stopped,
    /// The dump reached its largest size; what came after is not in it.
    DumpFull,
}

/// Figures of a recording.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Progress {
    /// Bytes written, all files.
    pub bytes: u64,
    /// Files written.
    pub files: u64,
    /// Page blocks written.
    pub pages: u64,
    /// Sessions being recorded.
    pub sessions_open: usize,
    /// Sessions read to their end.
    pub sessions_done: usize,
    /// Events that the sessions' producers lost since the sessions started.
    pub lost: u64,
    /// Pages that were overwritten, or gone, before they could be copied.
    pub pages_skipped: u64,
    /// How full the fullest ring was found lately, in percent.
    pub fill_percent: u32,
}

/// One session being recorded.
#[derive(Debug)]
struct Track {
    drain: SessionDrain,
    closed_at: Option<Instant>,
    looked_at: Instant,
    last_counters: Vec<u8>,
}

/// A pass over a session: of sealed pages, or of what is left.
type FillPass = fn(&mut SessionDrain, &mut Batch) -> Result<Fill, ReaderError>;

/// Records sessions into a dump.
#[derive(Debug)]
pub struct Recorder {
    dump: Dump,
    options: RecordOptions,
    finder: Finder,
    open_ended: bool,
    tracks: Vec<Track>,
    batch: Batch,
    pace: Pace,
    done: Progress,
    notices: Vec<String>,
    scanned_at: Option<Instant>,
    counted_at: Instant,
    retry_at: Option<Instant>,
    full: bool,
}

impl Recorder {
    /// A recorder of the selected sessions. Selected by pid or path, they must be there now.
    ///
    /// # Errors
    /// They are not there, may not be read, or are recorded by another process; or the dump
    /// cannot be written.
    pub fn new(
        selection: Selection,
        dump: Dump,
        options: RecordOptions,
    ) -> Result<Self, ReaderError> {
        let mut recorder = Self {
            open_ended: selection.is_open_ended(),
            finder: Finder::new(selection),
            dump,
            options,
            tracks: Vec::new(),
            batch: Batch::new(),
            pace: Pace::new(),
            done: Progress::default(),
            notices: Vec::new(),
            scanned_at: None,
            counted_at: Instant::now(),
            retry_at: None,
            full: false,
        };
        for session in recorder.finder.first()? {
            recorder.follow(session)?;
        }
        Ok(recorder)
    }

    /// Records until all selected sessions ended or `stop` is set.
    ///
    /// # Errors
    /// The dump could not be written; what is in it is valid, and no page that is not in it was
    /// released.
    pub fn run(&mut self, stop: &AtomicBool) -> Result<Ended, ReaderError> {
        self.run_with(stop, |_| {})
    }

    /// As [`Recorder::run`]; `each` is called after every pass over all sessions.
    ///
    /// # Errors
    /// As [`Recorder::run`].
    pub fn run_with(
        &mut self,
        stop: &AtomicBool,
        mut each: impl FnMut(&mut Self),
    ) -> Result<Ended, ReaderError> {
        loop {
            if stop.load(Ordering::Relaxed) {
                self.finish()?;
                return Ok(Ended::Stopped);
            }
            self.step()?;
            each(self);
            if self.full {
                self.finish()?;
                return Ok(Ended::DumpFull);
            }
            if self.tracks.is_empty() && !self.open_ended {
                self.finish()?;
                return Ok(Ended::SessionsEnded);
            }
            let watched = self.tracks.iter().filter_map(|t| t.drain.session().pidfd());
            self.pace.wait(watched);
        }
    }

    /// One pass over all sessions.
    ///
    /// # Errors
    /// As [`Recorder::run`].
    pub fn step(&mut self) -> Result<(), ReaderError> {
        self.scan(false)?;
        if self.retry_at.is_some_and(|at| Instant::now() < at) {
            return Ok(());
        }
        let mut index = 0;
        while index < self.tracks.len() && !self.full {
            let before = self.tracks.len();
            if let Err(error) = self.advance(index) {
                self.survive(index, error)?;
            }
            index += usize::from(self.tracks.len() == before);
        }
        self.count_if_due()
    }

    /// Takes what is there now, open pages included, and ends the dump.
    ///
    /// # Errors
    /// As [`Recorder::run`].
    pub fn finish(&mut self) -> Result<(), ReaderError> {
        self.scan(true)?;
        while !self.tracks.is_empty() {
            let ended = self.has_ended(0);
            if !self.full {
                self.pass(0)?;
            }
            self.end_session(0, ended)?;
        }
        self.dump.finish()
    }

    /// Figures now.
    #[must_use]
    pub fn progress(&self) -> Progress {
        let drains = || self.tracks.iter().map(|t| &t.drain);
        Progress {
            bytes: self.dump.bytes(),
            files: self.dump.files(),
            sessions_open: self.tracks.len(),
            lost: self.done.lost + drains().map(SessionDrain::lost).sum::<u64>(),
            pages_skipped: self.done.pages_skipped
                + drains().map(SessionDrain::pages_skipped).sum::<u64>(),
            fill_percent: drains()
                .map(|d| d.fill_1024() * 100 / 1024)
                .max()
                .unwrap_or(0),
            ..self.done.clone()
        }
    }

    /// Sessions being recorded.
    pub fn sessions(&self) -> impl Iterator<Item = &Session> {
        self.tracks.iter().map(|t| t.drain.session())
    }

    /// What a person should know and has not been told yet.
    pub fn take_notices(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notices)
    }

    fn scan(&mut self, now: bool) -> Result<(), ReaderError> {
        let due = self.scanned_at.is_none_or(|at| at.elapsed() >= SCAN_EVERY);
        if !(due || now) {
            return Ok(());
        }
        self.scanned_at = Some(Instant::now());
        let (sessions, errors) = self.finder.news();
        self.notices.extend(errors.iter().map(ToString::to_string));
        sessions.into_iter().try_for_each(|s| self.follow(s))
    }

    fn follow(&mut self, session: Session) -> Result<(), ReaderError> {
        let drain = SessionDrain::new(session);
        let uuid = drain.session().uuid();
        self.dump.add_session(uuid, &drain.session_content())?;
        self.tracks.push(Track {
            drain,
            closed_at: None,
            looked_at: Instant::now(),
            last_counters: Vec::new(),
        });
        Ok(())
    }

    /// One pass over a session; its last one, if it has ended.
    fn advance(&mut self, index: usize) -> Result<(), ReaderError> {
        self.tracks[index].drain.session().check_size()?;
        let ended = self.has_ended(index);
        let pages = self.pass(index)?;
        if ended && !self.full && self.is_quiet(index, pages) {
            self.end_session(index, true)?;
        }
        Ok(())
    }

    /// Whether no more events will come. Asked before a pass, so that the pass sees all of them.
    fn has_ended(&mut self, index: usize) -> bool {
        let track = &mut self.tracks[index];
        let session = track.drain.session();
        if session.ring().closed() && track.closed_at.is_none() {
            track.closed_at = Some(Instant::now());
        }
        if track.looked_at.elapsed() >= LIVENESS_EVERY {
            track.looked_at = Instant::now();
            session.look_thoroughly();
        }
        session.ended()
    }

    /// Whether an ended session was read to its end by the pass that moved `pages`: threads of a
    /// closed session may still be inside an event.
    fn is_quiet(&self, index: usize, pages: u64) -> bool {
        let track = &self.tracks[index];
        let settled = track
            .closed_at
            .is_some_and(|at| at.elapsed() >= QUIET_AFTER_CLOSE);
        track.drain.session().process_ended() || (pages == 0 && settled)
    }

    /// Moves everything that is sealed; returns the pages moved.
    fn pass(&mut self, index: usize) -> Result<u64, ReaderError> {
        let moved = self.move_pages(index, SessionDrain::fill)?;
        self.pace.saw(self.tracks[index].drain.fill_1024());
        Ok(moved)
    }

    /// Fills and writes batches until a pass is done or the dump is full.
    fn move_pages(&mut self, index: usize, fill: FillPass) -> Result<u64, ReaderError> {
        let mut moved = 0;
        let mut exceed = false;
        while !self.full {
            let (room, limit) = self.dump.room(self.ending_bytes());
            self.batch.clear(if exceed { u64::MAX } else { room });
            let filled = fill(&mut self.tracks[index].drain, &mut self.batch)?;
            moved += self.batch.pages();
            exceed = false;
            if filled == Fill::BatchFull && self.batch.is_empty() {
                match limit {
                    Limit::File => self.rotate()?,
                    Limit::EmptyFile => exceed = true,
                    Limit::Dump => self.stop_full(index),
                }
                continue;
            }
            self.write_batch(index)?;
            if filled == Fill::PassDone {
                break;
            }
        }
        Ok(moved)
    }

    fn stop_full(&mut self, index: usize) {
        self.full = true;
        self.tracks[index].drain.rewind();
        let (name, bytes) = (self.dump.name(), self.dump.bytes());
        self.notices
            .push(format!("{name}: stopped at {bytes} bytes, the limit"));
    }

    /// Writes the batch behind the schema that it needs, then releases its pages.
    fn write_batch(&mut self, index: usize) -> Result<(), ReaderError> {
        self.write_schema(index)?;
        let uuid = self.tracks[index].drain.session().uuid();
        self.dump.add_pages(uuid, &self.batch)?;
        self.done.pages += self.batch.pages();
        self.retry_at = None;
        self.tracks[index].drain.release();
        Ok(())
    }

    fn write_schema(&mut self, index: usize) -> Result<(), ReaderError> {
        let drain = &mut self.tracks[index].drain;
        let uuid = drain.session().uuid();
        while let Some((offset, bytes)) = drain.peek_schema() {
            self.dump.add_schema(uuid, offset, &bytes)?;
            drain.schema_written(bytes.len());
        }
        Ok(())
    }

    fn ending_bytes(&self) -> u64 {
        let bytes = |slots: usize| block_bytes(CountersHeader::BYTES + slots * SlotCounters::BYTES);
        let tracks = self.tracks.iter();
        tracks.map(|t| bytes(t.drain.slots()) as u64).sum()
    }

    fn rotate(&mut self) -> Result<(), ReaderError> {
        for track in &mut self.tracks {
            let content = track.drain.counters(false, None);
            let uuid = track.drain.session().uuid();
            self.dump.add_counters(uuid, &content)?;
        }
        self.dump.rotate()
    }

    /// A full disk is survived if that was asked for: nothing was released, the batch is taken
    /// again. Other errors end the recording.
    fn survive(&mut self, index: usize, error: ReaderError) -> Result<(), ReaderError> {
        self.tracks[index].drain.rewind();
        if let ReaderError::Truncated { .. } = error {
            // Its figures are not read any more: touching the mapping would be fatal.
            self.notices.push(error.to_string());
            self.tracks.remove(index);
            self.done.sessions_done += 1;
            return Ok(());
        }
        if !self.dump.can_resume() {
            return Err(error);
        }
        if error.is_no_space() && self.dump.drop_oldest() {
            self.notices
                .push(format!("{error}; removed the oldest file"));
            return Ok(());
        }
        if !(error.is_no_space() && self.options.wait_for_space) {
            return Err(error);
        }
        if self.retry_at.is_none() {
            self.notices.push(format!("{error}; waiting for space"));
        }
        self.retry_at = Some(Instant::now() + RETRY_AFTER);
        Ok(())
    }

    /// Takes open pages, writes the last counters, and lets the session go.
    fn end_session(&mut self, index: usize, ended: bool) -> Result<(), ReaderError> {
        self.move_pages(index, SessionDrain::fill_open)?;
        let track = &mut self.tracks[index];
        let drained = track.drain.is_drained() && !self.full;
        self.batch.clear(u64::MAX);
        let recount = self.full.then_some(&mut self.batch);
        let content = track.drain.counters(ended && drained, recount);
        let uuid = track.drain.session().uuid();
        self.dump.add_counters(uuid, &content)?;
        if ended && drained {
            self.remove_if_wanted(index);
        }
        self.drop_track(index);
        Ok(())
    }

    fn remove_if_wanted(&mut self, index: usize) {
        const KEEP_ALWAYS: u32 = 1;
        let session = self.tracks[index].drain.session();
        let lossless = session.ring().geometry().mode == Mode::Lossless;
        let kept = session.header().keep == KEEP_ALWAYS && !self.options.remove_kept;
        if !lossless || !self.options.remove_drained || kept {
            return;
        }
        if let Err(error) = session.remove_file() {
            self.notices.push(error.to_string());
        }
    }

    fn drop_track(&mut self, index: usize) {
        let track = self.tracks.remove(index);
        self.done.sessions_done += 1;
        self.done.lost += track.drain.lost();
        self.done.pages_skipped += track.drain.pages_skipped();
        self.dump.forget_session(track.drain.session().uuid());
    }

    fn count_if_due(&mut self) -> Result<(), ReaderError> {
        if self.counted_at.elapsed() < COUNTERS_EVERY || self.retry_at.is_some() {
            return Ok(());
        }
        self.counted_at = Instant::now();
        self.batch.clear(u64::MAX);
        for track in &mut self.tracks {
            let content = track.drain.counters(false, Some(&mut self.batch));
            if track.is_news(&content) {
                let uuid = track.drain.session().uuid();
                self.dump.add_counters(uuid, &content)?;
            }
        }
        Ok(())
    }
}

impl Track {
    /// Whether the counters differ from the last ones in more than their clock sample.
    fn is_news(&mut self, content: &[u8]) -> bool {
        let after_sample = content.get(24..).unwrap_or_default();
        if self.last_counters == after_sample {
            return false;
        }
        after_sample.clone_into(&mut self.last_counters);
        true
    }
}
