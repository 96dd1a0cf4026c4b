//! Recordings of sessions that are there already, and of those that come.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::Context;
use ringmark_reader::record::{RecordOptions, Recorder};
use ringmark_reader::{Dump, Selection, SessionInfo};

use super::outcome::Outcome;
use super::watches::{ThreadOptions, Watches};
use ringmark_console::descriptors;
use ringmark_console::note;
use ringmark_console::progress::ProgressLine;
use ringmark_console::signals::Signals;
use ringmark_console::units::{count, counted, overwritten, size};

/// Records a selection until its sessions end, `time` has passed, or Ctrl-C.
///
/// # Errors
/// The sessions are not there, or the trace file cannot be written.
pub(crate) fn record(
    selection: Selection,
    file: Dump,
    options: RecordOptions,
    time: Option<Duration>,
    threads: ThreadOptions,
) -> anyhow::Result<Outcome> {
    descriptors::take_all();
    let signals = Signals::watch().context("watching signals")?;
    let mut recorder = Recorder::new(selection, file, options)?;
    let watches = threads.watches_of(&mut recorder);
    let mut display = Display::new(true);
    let begun = Instant::now();
    let ended = recorder.run_with(&signals.stop, |recorder| {
        display.show(recorder);
        if time.is_some_and(|time| begun.elapsed() >= time) {
            signals.stop.store(true, Ordering::Relaxed);
        }
    });
    display.clear();
    watches.iter().for_each(Watches::tell);
    Outcome::of(&mut recorder, ended)
}

/// The progress of a recording on the terminal: rings, size, rate, lost.
pub(super) struct Display {
    line: ProgressLine,
    /// Size of the trace file when the line was shown last.
    bytes: u64,
}

impl Display {
    /// A display that is shown if `wanted`.
    pub(super) fn new(wanted: bool) -> Self {
        Self {
            line: ProgressLine::new(wanted),
            bytes: 0,
        }
    }

    /// Shows the progress, if it is time to.
    pub(super) fn show(&mut self, recorder: &mut Recorder) {
        let Some(since) = self.line.due() else {
            return;
        };
        let progress = recorder.progress();
        let rate = (progress.bytes - self.bytes.min(progress.bytes)) as f64 / since.as_secs_f64();
        let rings = |session| SessionInfo::of(session).rings.len() as u64;
        let rings: u64 = recorder.sessions().map(rings).sum();
        let text = format!(
            "{}, {} {} % full; {}, {}/s; {} lost{}; Ctrl-C ends",
            counted(progress.sessions_open as u64, "session"),
            counted(rings, "ring"),
            progress.fill_percent,
            size(progress.bytes),
            size(rate as u64),
            count(progress.lost),
            overwritten(progress.overwritten)
        );
        self.bytes = progress.bytes;
        self.clear();
        recorder.take_notices().iter().for_each(|text| note(text));
        self.line.show(&text);
    }

    /// Takes the line away.
    pub(super) fn clear(&mut self) {
        self.line.clear();
    }
}
