//! The recorder: follows sessions, writes their pages, and only then releases them.

mod ending;
mod pages;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::error::ReaderError;
use crate::pages::batch::Batch;
use crate::pages::counters::News;
use crate::pages::drain::SessionDrain;
use crate::recording::dump::Dump;
use crate::sessions::leases::Gone;
use crate::sessions::lifetime::Lifetime;
use crate::sessions::pace::Pace;
use crate::sessions::selection::{Finder, Selection};
use crate::sessions::session::{Session, wait_for_end};

/// How often new sessions are looked for.
const SCAN_EVERY: Duration = Duration::from_millis(10);
/// How often, while the first session of a program that was just started is expected.
const SCAN_EXPECTING: Duration = Duration::from_millis(1);

/// What a recorder does besides its dump's own settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordOptions {
    /// On a full disk, try again (the producers go on and count what they lose) instead of ending.
    pub wait_for_space: bool,
    /// Remove the ring file of an ended discard session that was read to its end, unless the
    /// session asked to be kept.
    pub remove_drained: bool,
    /// Remove also those that asked to be kept, whatever their mode: the command that started
    /// the program asked for it only so that the session outlives a short run.
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
    /// Closed files of a rotating dump that were removed because the disk was full.
    pub files_removed: u64,
    /// Page blocks written.
    pub pages: u64,
    /// Sessions being recorded.
    pub sessions_open: usize,
    /// Sessions read to their end.
    pub sessions_done: usize,
    /// Those of them that ended because the ring file was truncated.
    pub sessions_cut: usize,
    /// Sessions that are there and could not be opened, because descriptors or memory were short.
    pub sessions_left_out: usize,
    /// Events that the sessions' producers lost since the sessions started, and those of `gone`.
    pub lost: u64,
    /// Sessions that were removed before they could be read.
    pub gone: Gone,
    /// Pages that were overwritten, or gone, before they could be copied.
    pub pages_skipped: u64,
    /// How full the fullest ring was found lately, in percent.
    pub fill_percent: u32,
}

/// One session being recorded.
#[derive(Debug)]
struct Track {
    drain: SessionDrain,
    lifetime: Lifetime,
    news: News,
}

/// Records sessions into a dump.
#[derive(Debug)]
pub struct Recorder {
    dump: Dump,
    options: RecordOptions,
    finder: Finder,
    open_ended: bool,
    by_tag: bool,
    begun_at: Instant,
    tracks: Vec<Track>,
    batch: Batch,
    pace: Pace,
    done: Progress,
    notices: Vec<String>,
    scanned_at: Option<Instant>,
    counted_at: Instant,
    retry_at: Option<Instant>,
    waits_for_space: bool,
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
            by_tag: matches!(selection, Selection::Tag(_)),
            begun_at: Instant::now(),
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
            waits_for_space: false,
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
            if let Some(at) = self.retry_at {
                // Not woken by processes that ended: there is no room for what they left.
                std::thread::sleep(at.saturating_duration_since(Instant::now()).min(SCAN_EVERY));
                continue;
            }
            if let Some(every) = self.expects_within() {
                std::thread::sleep(every);
                continue;
            }
            self.pace
                .wait(self.tracks.iter().map(|t| t.drain.session()));
        }
    }

    /// One pass over all sessions.
    ///
    /// # Errors
    /// As [`Recorder::run`].
    pub fn step(&mut self) -> Result<(), ReaderError> {
        if self.retry_at.is_some_and(|at| Instant::now() < at) {
            return Ok(());
        }
        self.retry_at = None;
        self.scan(false).or_else(|error| self.survive(error))?;
        let mut index = 0;
        while index < self.tracks.len() && !self.full {
            let before = self.tracks.len();
            if let Err(error) = self.advance(index) {
                self.survive(error)?;
            }
            index += usize::from(self.tracks.len() == before);
        }
        self.count_if_due().or_else(|error| self.survive(error))
    }

    /// Takes what is there now, open pages included, and ends the dump.
    ///
    /// # Errors
    /// As [`Recorder::run`].
    pub fn finish(&mut self) -> Result<(), ReaderError> {
        self.finder.look_again();
        self.scan(true)?;
        wait_for_end(self.sessions(), Duration::ZERO);
        while !self.tracks.is_empty() {
            match self.finish_session(0) {
                Err(error @ ReaderError::Truncated { .. }) => self.survive(error)?,
                finished => finished?,
            }
        }
        self.finder.count_gone();
        self.notices.extend(self.finder.notices());
        self.dump.finish()
    }

    fn finish_session(&mut self, index: usize) -> Result<(), ReaderError> {
        self.tracks[index].drain.session().check_size()?;
        let ended = self.has_ended(index);
        if !self.full {
            self.pass(index)?;
        }
        self.end_session(index, ended)
    }

    /// Figures now.
    #[must_use]
    pub fn progress(&self) -> Progress {
        let drains = || self.tracks.iter().map(|t| &t.drain);
        // A session may state any number.
        let sum = |numbers: &mut dyn Iterator<Item = u64>| numbers.fold(0, u64::saturating_add);
        let lost = sum(&mut drains().map(SessionDrain::lost));
        let skipped = sum(&mut drains().map(SessionDrain::pages_skipped));
        let gone = self.finder.gone();
        Progress {
            bytes: self.dump.bytes(),
            files: self.dump.files(),
            sessions_open: self.tracks.len(),
            sessions_left_out: self.finder.left_out(),
            lost: (self.done.lost.saturating_add(lost)).saturating_add(gone.events),
            gone,
            pages_skipped: self.done.pages_skipped.saturating_add(skipped),
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
        let every = self.expects_within().unwrap_or(SCAN_EVERY);
        let due = self.scanned_at.is_none_or(|at| at.elapsed() >= every);
        if !(due || now) {
            return Ok(());
        }
        self.scanned_at = Some(Instant::now());
        let (sessions, errors) = self.finder.news();
        self.notices.extend(errors.iter().map(ToString::to_string));
        self.notices.extend(self.finder.notices());
        let mut result = Ok(());
        for session in sessions {
            match result {
                Ok(()) => result = self.follow(session),
                Err(_) => self.finder.forget(session.path()),
            }
        }
        result
    }

    /// How often to look while a program that was just started has yet to open its session: its
    /// rings may fill within the usual wait. One that has not done so for long is in no hurry.
    fn expects_within(&self) -> Option<Duration> {
        let expects = self.by_tag && self.tracks.is_empty() && self.done.sessions_done == 0;
        let part = self.begun_at.elapsed() / 256;
        expects.then(|| part.clamp(SCAN_EXPECTING, SCAN_EVERY))
    }

    fn follow(&mut self, mut session: Session) -> Result<(), ReaderError> {
        self.notices
            .extend(self.dump.owners().keep_apart(&mut session));
        let drain = SessionDrain::new(session);
        let uuid = drain.session().uuid();
        if let Err(error) = self.dump.add_session(uuid, &drain.session_content()) {
            self.finder.forget(drain.session().path());
            return Err(error);
        }
        self.tracks.push(Track {
            drain,
            lifetime: Lifetime::new(),
            news: News::default(),
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

    fn has_ended(&mut self, index: usize) -> bool {
        let track = &mut self.tracks[index];
        track.lifetime.has_ended(track.drain.session())
    }

    fn is_quiet(&self, index: usize, pages: u64) -> bool {
        let track = &self.tracks[index];
        track.lifetime.is_quiet(track.drain.session(), pages)
    }
}
