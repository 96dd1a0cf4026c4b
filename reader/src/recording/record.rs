//! The recorder: follows sessions, writes their pages, and only then releases them.
//!
//! One thread does everything in passes: look for new sessions, move what is sealed in each, write
//! counters when due, wait. How long it waits follows from how full the rings were found.
//! `pages.rs` has the moving of pages, `write_beside.rs` what stands beside them, `ending.rs` the ends of sessions and of the
//! recording.

mod beside;
mod ending;
mod full_disk;
mod pages;
mod session_ends;
mod write_beside;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ringmark_format::session::Clock;
use ringmark_ring::slot::WaitCounts;

use crate::error::ReaderError;
use crate::interval::{Interval, SCAN_EVERY};
use crate::pages::batch::Batch;
use crate::pages::counters::LastCounters;
use crate::pages::drain::{Finality, SessionDrain};
use crate::pages::open_spans;
use crate::recording::dump::Dump;
use crate::sessions::leases::Removals;
use crate::sessions::lifetime::Lifetime;
use crate::sessions::pace::Pace;
use crate::sessions::selection::{Finder, Selection};
use crate::sessions::session::{Session, wait_for_end};
pub use beside::Beside;
use full_disk::FullDisk;
pub use session_ends::SessionEnd;
use session_ends::SessionEnds;

/// How often the recorder looks for sessions while a program that was just started is expected to
/// open its own.
const SCAN_EXPECTING: Duration = Duration::from_millis(1);

/// What a recorder does, beyond the settings of its dump.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordOptions {
    /// On a full disk, try again instead of ending. The programs go on and count what they lose.
    pub wait_for_space: bool,
    /// Remove the ring file of an ended discard session that was read to its end, unless the
    /// session requests to be kept. It goes when no session of its process is recorded any more.
    pub remove_drained: bool,
    /// Remove also sessions that request to be kept, whatever their mode. The command that started
    /// the program sets that request only so that the session outlives a short run.
    pub remove_kept: bool,
    /// Events that are older than the recorder are not shown, of processes that live. A page may hold both,
    /// so they are in the dump, which says from when on it is meant.
    pub from_now: bool,
}

impl Default for RecordOptions {
    fn default() -> Self {
        Self {
            wait_for_space: false,
            remove_drained: true,
            remove_kept: false,
            from_now: false,
        }
    }
}

/// Why a recording ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// All selected sessions have ended and were read to their end.
    SessionsEnded,
    /// The caller requested it.
    Stopped,
    /// The dump reached its largest size; later events are not in it.
    DumpFull,
}

/// Figures of a recording.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Progress {
    /// Bytes written to all files.
    pub bytes: u64,
    /// Files written, removed ones included.
    pub files: u64,
    /// Closed files of a rotating dump that were removed because the disk was full.
    pub files_removed: u64,
    /// Page blocks written.
    pub pages: u64,
    /// Sessions being recorded.
    pub sessions_open: usize,
    /// Sessions read to their end.
    pub sessions_done: usize,
    /// Those of them whose ring file was truncated.
    pub sessions_cut: usize,
    /// Sessions that could not be opened because descriptors or memory were short.
    pub sessions_left_out: usize,
    /// Sessions of the selected processes that another recorder has.
    pub sessions_refused: usize,
    /// Events that the programs lost since their sessions started, and those of `removals`.
    pub lost: u64,
    /// Those that larger or more rings would have had room for.
    pub lost_for_room: u64,
    /// Waits of the programs' threads for room in their rings, as far as their sessions have ended.
    pub waits: WaitCounts,
    /// Sessions that were removed before they could be read.
    pub removals: Removals,
    /// Pages that were overwritten before they could be copied.
    pub pages_skipped: u64,
    /// Events that were overwritten before they could be copied, those from before the recording
    /// included.
    pub overwritten: u64,
    /// The part of the fullest ring that the last pass found sealed, in percent.
    pub fill_percent: u32,
}

/// One session being recorded.
#[derive(Debug)]
struct RecordedSession {
    drain: SessionDrain,
    lifetime: Lifetime,
    counters: LastCounters,
}

/// Records sessions into a dump.
#[derive(Debug)]
pub struct Recorder {
    dump: Dump,
    options: RecordOptions,
    finder: Finder,
    recorded: Vec<RecordedSession>,
    /// Sessions that were read to their end, while others of their processes are recorded.
    drained: Vec<SessionDrain>,
    batch: Batch,
    pace: Pace,
    /// Figures of the sessions that have ended.
    done: Progress,
    notices: Vec<String>,
    ends: SessionEnds,
    begun_at: Instant,
    scans: Interval,
    counts: Interval,
    full_disk: FullDisk,
    beside: beside::Blocks,
    /// The dump has its largest size.
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
            finder: Finder::new(selection),
            dump,
            options,
            recorded: Vec::new(),
            drained: Vec::new(),
            batch: Batch::new(),
            pace: Pace::new(),
            done: Progress::default(),
            notices: Vec::new(),
            ends: SessionEnds::default(),
            begun_at: Instant::now(),
            scans: Interval::due(),
            counts: Interval::begun(),
            full_disk: FullDisk::default(),
            beside: beside::Blocks::default(),
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
    /// The dump could not be written. What is in it is valid, and only pages that are in it were
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
            if self.recorded.is_empty() && !self.finder.is_open_ended() {
                self.finish()?;
                return Ok(Ended::SessionsEnded);
            }
            if let Some(left) = self.full_disk.wait_left() {
                // A process that ends does not end this wait: there is no room for its pages.
                std::thread::sleep(left.min(SCAN_EVERY));
                continue;
            }
            if let Some(every) = self.expects_within() {
                std::thread::sleep(every);
                continue;
            }
            self.pace
                .wait(self.recorded.iter().map(|r| r.drain.session()));
        }
    }

    /// One pass over all sessions.
    ///
    /// # Errors
    /// As [`Recorder::run`].
    pub fn step(&mut self) -> Result<(), ReaderError> {
        if !self.full_disk.may_try() {
            return Ok(());
        }
        self.scan_if_due().or_else(|error| self.survive(error))?;
        let mut index = 0;
        while index < self.recorded.len() && !self.full {
            let before = self.recorded.len();
            if let Err(error) = self.advance(index) {
                self.survive(error)?;
            }
            index += usize::from(self.recorded.len() == before);
        }
        self.count_if_due().or_else(|error| self.survive(error))
    }

    /// Takes what is there now, open pages included, and ends the dump.
    ///
    /// # Errors
    /// As [`Recorder::run`].
    pub fn finish(&mut self) -> Result<(), ReaderError> {
        self.finder.look_again();
        self.scan()?;
        wait_for_end(self.sessions(), Duration::ZERO);
        while !self.recorded.is_empty() {
            match self.finish_session(0) {
                Err(error @ ReaderError::Truncated { .. }) => self.survive(error)?,
                finished => finished?,
            }
        }
        self.remove_drained();
        self.finder.count_removals();
        self.notices.extend(self.finder.notices());
        self.dump.finish()
    }

    fn finish_session(&mut self, index: usize) -> Result<(), ReaderError> {
        self.recorded[index].drain.session().check_size()?;
        let ended = self.has_ended(index);
        let open_spans = open_spans::blocks(&mut self.recorded[index].drain, ended);
        if !self.full {
            self.pass(index)?;
        }
        self.end_session(index, Finality::final_if(ended), &open_spans)
    }

    /// Figures now.
    #[must_use]
    pub fn progress(&self) -> Progress {
        let drains = || self.recorded.iter().map(|r| &r.drain);
        // A session may state any number.
        let sum = |numbers: &mut dyn Iterator<Item = u64>| numbers.fold(0, u64::saturating_add);
        let lost = sum(&mut drains().map(SessionDrain::lost));
        let for_room = sum(&mut drains().map(SessionDrain::lost_for_room));
        let skipped = sum(&mut drains().map(SessionDrain::pages_skipped));
        let overwritten = sum(&mut drains().map(SessionDrain::overwritten));
        let removals = self.finder.removals();
        Progress {
            bytes: self.dump.bytes(),
            files: self.dump.files(),
            sessions_open: self.recorded.len(),
            sessions_left_out: self.finder.left_out(),
            sessions_refused: self.finder.refused(),
            lost: (self.done.lost.saturating_add(lost)).saturating_add(removals.events),
            lost_for_room: self.done.lost_for_room.saturating_add(for_room),
            removals,
            pages_skipped: self.done.pages_skipped.saturating_add(skipped),
            overwritten: self.done.overwritten.saturating_add(overwritten),
            fill_percent: drains()
                .map(|drain| drain.fullest().percent())
                .max()
                .unwrap_or(0),
            ..self.done.clone()
        }
    }

    /// Sessions being recorded.
    pub fn sessions(&self) -> impl Iterator<Item = &Session> {
        self.recorded.iter().map(|r| r.drain.session())
    }

    /// Notices for the user since the last call.
    pub fn take_notices(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notices)
    }

    fn scan_if_due(&mut self) -> Result<(), ReaderError> {
        let every = self.expects_within().unwrap_or(SCAN_EVERY);
        match self.scans.is_due(every) {
            true => self.scan(),
            false => Ok(()),
        }
    }

    /// Begins to record the sessions that have appeared. Those after a failure are found again.
    fn scan(&mut self) -> Result<(), ReaderError> {
        self.scans.done();
        let found = self.finder.look();
        self.notices
            .extend(found.errors.iter().map(ToString::to_string));
        self.notices.extend(self.finder.notices());
        let mut result = Ok(());
        for session in found.sessions {
            match result {
                Ok(()) => result = self.follow(session),
                Err(_) => self.finder.forget(session.path()),
            }
        }
        result
    }

    /// How often to look while a program that was just started has yet to open its session: its
    /// rings may fill within the usual wait. The longer it takes, the rarer the looks.
    fn expects_within(&self) -> Option<Duration> {
        let none_yet = self.recorded.is_empty() && self.done.sessions_done == 0;
        let expects = self.finder.is_by_tag() && none_yet;
        let part = self.begun_at.elapsed() / 256;
        expects.then(|| part.clamp(SCAN_EXPECTING, SCAN_EVERY))
    }

    fn follow(&mut self, mut session: Session) -> Result<(), ReaderError> {
        self.notices
            .extend(self.dump.owners().keep_apart(&mut session));
        let drain = SessionDrain::new(session);
        let uuid = drain.session().uuid();
        let from = self.begins_at(drain.session());
        let added = self.dump.add_session(uuid, &drain.session_content());
        let added = added.and_then(|()| match from {
            Some(mono_ns) => self.dump.add_window(uuid, mono_ns),
            None => Ok(()),
        });
        if let Err(error) = added {
            self.finder.forget(drain.session().path());
            return Err(error);
        }
        self.recorded.push(RecordedSession {
            drain,
            lifetime: Lifetime::new(),
            counters: LastCounters::default(),
        });
        Ok(())
    }

    /// `CLOCK_MONOTONIC` of a session in ns from which on its events are meant; `None`: all are.
    fn begins_at(&self, session: &Session) -> Option<u64> {
        let has_clock = session.ring().geometry().clock != Clock::None;
        let is_meant = self.options.from_now && has_clock && !session.has_ended_by_now();
        let now_ns = session.monotonic_ns().filter(|_| is_meant)?;
        let since = u64::try_from(self.begun_at.elapsed().as_nanos());
        Some(now_ns.saturating_sub(since.unwrap_or(u64::MAX)))
    }

    /// One pass over a session. One that has ended and is quiet is read to its end.
    fn advance(&mut self, index: usize) -> Result<(), ReaderError> {
        self.recorded[index].drain.session().check_size()?;
        let ended = self.has_ended(index);
        let pages = self.pass(index)?;
        self.pass_beside(index, false)?;
        if ended && !self.full && self.is_quiet(index, pages) {
            let open_spans = open_spans::blocks(&mut self.recorded[index].drain, true);
            self.end_session(index, Finality::Final, &open_spans)?;
        }
        Ok(())
    }

    fn has_ended(&mut self, index: usize) -> bool {
        let recorded = &mut self.recorded[index];
        recorded.lifetime.has_ended(recorded.drain.session())
    }

    fn is_quiet(&self, index: usize, pages: u64) -> bool {
        let recorded = &self.recorded[index];
        recorded.lifetime.is_quiet(recorded.drain.session(), pages)
    }
}
