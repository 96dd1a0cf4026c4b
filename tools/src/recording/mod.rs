//! A recording from start to end: progress on a terminal, Ctrl-C, the traced program's life, and
//! what is told afterwards.

pub(crate) mod child;
pub(crate) mod descriptors;
pub(crate) mod signals;

use std::fs::DirBuilder;
use std::io::{self, IsTerminal, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use ringmark_decoder::JSON_VERSION;
use ringmark_reader::record::{Ended, Progress, RecordOptions, Recorder};
use ringmark_reader::{Codec, DeathWatch, Dump, Selection, SessionInfo, on_death};

use crate::output::units::{count, counted, size};
use crate::output::{Exit, Failure, note, printable, text};
use child::{NotStarted, Traced, exit_code};
use signals::Signals;

/// A program may leave a session behind that is found only at the next look.
const LOOK_AFTER_EXIT: Duration = Duration::from_millis(20);
/// How often the progress line changes.
const PROGRESS_EVERY: Duration = Duration::from_millis(200);

/// What came of a recording.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// Figures at the end.
    pub(crate) progress: Progress,
    /// What a person should know, one line each.
    pub(crate) trouble: Vec<String>,
    /// The dump is not whole although nothing was lost in the rings: full disk, size limit.
    pub(crate) incomplete: bool,
    /// A part of what was to be recorded was not, whatever the dump says.
    pub(crate) not_recorded: bool,
    /// The traced program's exit code, if one was started.
    pub(crate) command: Option<Exit>,
}

impl Outcome {
    /// That of the program, if one was started. One that ended well is no reason to hide that a
    /// part of what it did was not recorded.
    pub(crate) fn exit(&self) -> Exit {
        match self.command {
            Some(exit) if exit != Exit::FINE || !self.not_recorded => exit,
            Some(_) => Exit::LOST,
            None => Exit::lost_if(self.incomplete || self.progress.lost > 0),
        }
    }
}

/// Records a selection until its sessions end, or Ctrl-C.
///
/// # Errors
/// The sessions are not there, or the dump cannot be written.
pub(crate) fn record(
    selection: Selection,
    dump: Dump,
    options: RecordOptions,
) -> anyhow::Result<Outcome> {
    descriptors::take_all();
    let signals = Signals::watch().context("watching signals")?;
    let mut recorder = Recorder::new(selection, dump, options)?;
    let mut display = Display::new(true);
    let ended = recorder.run_with(&signals.stop, |recorder| display.show(recorder));
    display.clear();
    outcome(&mut recorder, ended)
}

/// Starts a program and records it and its descendants until they end.
///
/// # Errors
/// The program cannot be started. Trouble with the recording is part of the outcome.
pub(crate) fn record_command(
    mut traced: Traced,
    signals: &Signals,
    dump: Dump,
    options: RecordOptions,
) -> anyhow::Result<Outcome> {
    let selection = Selection::Tag(traced.tag.clone());
    let mut recorder = Recorder::new(selection, dump, options)?;
    let mut watch = Watch::new(&mut traced, signals);
    let mut display = Display::new(!io::stdout().is_terminal());
    let stop = AtomicBool::new(false);
    let ended = recorder.run_with(&stop, |recorder| {
        display.show(recorder);
        if watch.is_over(recorder) {
            stop.store(true, Ordering::Relaxed);
        }
    });
    display.clear();
    let mut outcome = outcome(&mut recorder, ended).unwrap_or_else(|error| failed(&error));
    outcome.command = Some(wait(&mut traced, signals)?);
    Ok(outcome)
}

/// Holds all sessions and writes a dump of each one whose process dies into `directory`, until
/// Ctrl-C.
///
/// # Errors
/// The directory is not there.
pub(crate) fn watch_deaths(directory: &Path, codec: Codec) -> anyhow::Result<Exit> {
    make_directory(directory)?;
    let signals = Signals::watch().context("watching signals")?;
    let mut failed = false;
    DeathWatch::new(directory, codec).run(&signals.stop, |event| {
        failed |= matches!(event, on_death::Event::Failed(_));
        if let Some(text) = death_text(&event) {
            note(&printable(&text));
        }
    });
    Ok(Exit::lost_if(failed))
}

/// Dumps hold what programs did: a new directory is for its owner alone.
fn make_directory(directory: &Path) -> anyhow::Result<()> {
    if directory.is_dir() {
        return Ok(());
    }
    let shown = directory.display();
    if directory.exists() {
        let text = format!("{shown}: is no directory, expected one for dumps");
        return Err(Failure::usage(text).into());
    }
    let made = DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory);
    made.map_err(|error| Failure::usage(format!("{shown}: cannot be made: {error}")))?;
    note(&format!("{shown}: made, for dumps"));
    Ok(())
}

fn death_text(event: &on_death::Event) -> Option<String> {
    match event {
        on_death::Event::Holding(path) => Some(format!("holding {}", path.display())),
        on_death::Event::Dumped { dump, pid, pages } => Some(format!(
            "pid {pid} died: {}, {} pages",
            dump.display(),
            count(*pages)
        )),
        on_death::Event::Closed(_) => None,
        on_death::Event::Failed(error) => Some(error.to_string()),
    }
}

/// Waits for a program that goes on although its recording has ended.
fn wait(traced: &mut Traced, signals: &Signals) -> anyhow::Result<Exit> {
    loop {
        if let Some(status) = traced.try_wait().context("waiting for the program")? {
            return Ok(exit_code(status));
        }
        if let Some(signal) = signals.received() {
            traced.forward(signal);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The recording failed, the program goes on: that is trouble, and the dump is not whole.
fn failed(error: &anyhow::Error) -> Outcome {
    Outcome {
        trouble: vec![text(error)],
        incomplete: true,
        ..Outcome::default()
    }
}

fn outcome(
    recorder: &mut Recorder,
    ended: Result<Ended, ringmark_reader::ReaderError>,
) -> anyhow::Result<Outcome> {
    let is_full = ended? == Ended::DumpFull;
    let progress = recorder.progress();
    let left_out = progress.sessions_left_out;
    let is_cut = progress.files_removed > 0 || progress.sessions_cut > 0;
    let incomplete = is_full || is_cut || left_out > 0 || !progress.gone.is_nothing();
    let mut trouble = recorder.take_notices();
    trouble.extend(descriptors::left_out(left_out));
    if progress.lost > 0 {
        trouble.push(format!("{} lost", counted(progress.lost, "event")));
    }
    Ok(Outcome {
        progress,
        trouble,
        incomplete,
        not_recorded: false,
        command: None,
    })
}

/// Watches the program beside the recording.
struct Watch<'a> {
    traced: &'a mut Traced,
    signals: &'a Signals,
    ended_at: Option<Instant>,
    told: bool,
}

impl<'a> Watch<'a> {
    fn new(traced: &'a mut Traced, signals: &'a Signals) -> Self {
        Self {
            traced,
            signals,
            ended_at: None,
            told: false,
        }
    }

    /// Whether the program and all its traced descendants have ended.
    fn is_over(&mut self, recorder: &Recorder) -> bool {
        if let Some(signal) = self.signals.received() {
            self.traced.forward(signal);
        }
        if self.ended_at.is_none() && !matches!(self.traced.try_wait(), Ok(None)) {
            self.ended_at = Some(Instant::now());
        }
        let Some(ended_at) = self.ended_at else {
            return false;
        };
        if recorder.sessions().next().is_none() || self.signals.received().is_some() {
            return ended_at.elapsed() >= LOOK_AFTER_EXIT;
        }
        self.tell_of_descendants(ended_at);
        false
    }

    fn tell_of_descendants(&mut self, ended_at: Instant) {
        if !self.told && ended_at.elapsed() > Duration::from_secs(1) {
            self.told = true;
            let name = self.traced.name();
            note(&format!(
                "{name} has ended, processes that it started go on; Ctrl-C ends the recording"
            ));
        }
    }
}

/// One line on a terminal: rings, size, rate, lost.
struct Display {
    is_on: bool,
    shown_at: Instant,
    bytes: u64,
}

impl Display {
    fn new(wanted: bool) -> Self {
        Self {
            is_on: wanted && io::stderr().is_terminal(),
            shown_at: Instant::now(),
            bytes: 0,
        }
    }

    fn show(&mut self, recorder: &mut Recorder) {
        let since = self.shown_at.elapsed();
        if since < PROGRESS_EVERY || !self.is_on {
            return;
        }
        let progress = recorder.progress();
        let rate = (progress.bytes - self.bytes.min(progress.bytes)) as f64 / since.as_secs_f64();
        let rings = |session| SessionInfo::of(session).rings.len() as u64;
        let rings: u64 = recorder.sessions().map(rings).sum();
        let text = format!(
            "{}, {} {} % full; {}, {}/s; {} lost; Ctrl-C ends",
            counted(progress.sessions_open as u64, "session"),
            counted(rings, "ring"),
            progress.fill_percent,
            size(progress.bytes),
            size(rate as u64),
            count(progress.lost)
        );
        self.shown_at = Instant::now();
        self.bytes = progress.bytes;
        self.clear();
        recorder.take_notices().iter().for_each(|text| note(text));
        put(&text.chars().take(columns()).collect::<String>());
    }

    fn clear(&self) {
        if self.is_on {
            put("\r\x1b[2K");
        }
    }
}

/// Shows text on the terminal. One that is gone is no reason to fail.
fn put(text: &str) {
    let mut terminal = io::stderr();
    let _ = terminal.write_all(text.as_bytes());
    let _ = terminal.flush();
}

/// Columns for a text and the terminal's `^C`: a line that wraps is not cleared.
fn columns() -> usize {
    let size = rustix::termios::tcgetwinsize(io::stderr());
    let columns = size.map_or(80, |size| usize::from(size.ws_col));
    columns.saturating_sub(3)
}

/// Where a recording's status goes besides standard error.
///
/// # Errors
/// The file cannot be written.
pub(crate) fn write_status(
    path: Option<&PathBuf>,
    result: &anyhow::Result<Result<Outcome, NotStarted>>,
) -> anyhow::Result<()> {
    let Some(path) = path else {
        return Ok(());
    };
    let nothing = Outcome::default();
    let (outcome, trouble) = match result {
        Ok(Ok(outcome)) => (outcome, outcome.trouble.clone()),
        Ok(Err(not_started)) => (&nothing, vec![not_started.text.clone()]),
        Err(error) => (&nothing, vec![text(error)]),
    };
    let progress = &outcome.progress;
    let status = serde_json::json!({
        "v": JSON_VERSION,
        "complete": trouble.is_empty(),
        "command": outcome.command.map(|exit| exit.0),
        "sessions": progress.sessions_done,
        "pages": progress.pages,
        "bytes": progress.bytes,
        "lost": progress.lost,
        "trouble": trouble,
    });
    let written = std::fs::write(path, format!("{status}\n"));
    match written.with_context(|| path.display().to_string()) {
        // The exit code is the program's.
        Err(error) if outcome.command.is_some() => note(&text(&error)),
        written => written?,
    }
    Ok(())
}
