//! Recordings of a program from its start: the program's life, and why it is not traced if it is
//! not.

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::path::Path;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use anyhow::Context;
use ringmark_reader::record::{RecordOptions, Recorder};
use ringmark_reader::{Destination, Dump, Selection, notes};

use super::left_processes;
use super::outcome::Outcome;
use super::passed_signals::PassedSignals;
use super::sessions::Display;
use super::settings::{self, ProgramOptions};
use super::trace_file::FileOptions;
use super::traced_program::{TracedProgram, check_program, ending, exit_code};
use super::watches::{ThreadOptions, Watches};
use crate::tracing::moved_sites::MovedSites;
use crate::tracing::preload::Preload;
use ringmark_console::file::destination;
use ringmark_console::signals::Signals;
use ringmark_console::{Exit, note, printable};

/// How long sessions are recorded after the end of a program that a signal has ended.
const LOOK_AFTER_SIGNAL: Duration = Duration::from_millis(20);
/// How long processes that the program left may run without any session. On a loaded machine one
/// that becomes another program takes its time to begin one.
const WITHOUT_SESSION: Duration = Duration::from_secs(1);
/// How often the end of a program is looked for after its recording has ended.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// How long the descendants of a program may run on before a person is told.
const TELL_AFTER: Duration = Duration::from_secs(1);
/// Times of files can be a tick of the kernel's clock older than the clock.
const CLOCK_STEP: Duration = Duration::from_millis(20);

/// Starts a program and records it and its descendants until they end.
///
/// # Errors
/// The program cannot be started, the trace file cannot be created, or `RINGMARK` cannot be used.
/// Trouble with the recording is part of the outcome.
pub(crate) fn record(
    command: &[OsString],
    output: &Path,
    file: &FileOptions,
    program: &ProgramOptions,
    preload: Option<&Preload>,
    threads: ThreadOptions,
) -> anyhow::Result<Outcome> {
    program.check()?;
    check_program(command)?;
    let untraceable = match (preload, command.first()) {
        (Some(_), Some(program)) => Preload::tell_of(program),
        _ => false,
    };
    let to = destination(output)?;
    let options = RecordOptions {
        remove_kept: settings::kept_by_us(),
        ..file.record_options()
    };
    let file = file.create(&to)?;
    let signals = PassedSignals::take()?;
    let begun = SystemTime::now() - CLOCK_STEP;
    let traced = TracedProgram::start(command, to == Destination::Stdout, program, preload)?;
    let signals = signals.pass_to(traced.running())?;
    let pid = traced.pid();
    let watches = threads.watches();
    watches.iter().for_each(|watches| watches.begin(pid));
    let program_name = command.first().map(OsString::as_os_str).unwrap_or_default();
    let moved = preload.and_then(|preload| preload.moved_sites(program_name, pid));
    let outcome = with_sites(moved, || {
        record_until_end(traced, &signals, (file, options), watches.as_ref())
    });
    let mut outcome = outcome?;
    let settings = program.for_program(preload.is_some());
    outcome.settings = Some(printable(&settings.to_string_lossy()));
    if let (Some(_), Some(program), 0) = (preload, command.first(), outcome.progress.pages) {
        // Neither its functions nor those of a program that it started.
        outcome.not_recorded = untraceable || Preload::tell_of_refused(program);
    }
    // Not one that an earlier process of this number left.
    let off = notes::off_note(pid).filter(|note| note.written >= begun);
    let off = off.map(|note| printable(&note.reason));
    if outcome.progress.sessions_done > 0 {
        outcome.not_recorded |= off.is_some();
        let what = match preload {
            Some(_) => "the program's own events were NOT recorded, only its functions",
            None => "a part of the program was NOT recorded",
        };
        let trouble = off.map(|reason| format!("{what}: {reason}"));
        outcome.trouble.extend(trouble);
    } else if outcome.trouble.is_empty() {
        let why = match off {
            // Why was printed before it was started, or just now.
            None if outcome.not_recorded => {
                "nothing recorded: none of its functions can be traced".to_owned()
            }
            off => why_not_traced(pid, off, outcome.command),
        };
        outcome.trouble.push(why);
    }
    Ok(outcome)
}

/// Runs `work` while a program is handed the patch sites that it waits for.
fn with_sites<R>(moved: Option<MovedSites>, work: impl FnOnce() -> R) -> R {
    let Some(mut moved) = moved else {
        return work();
    };
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| moved.serve(|| is_over.load(Ordering::Relaxed)));
        let result = work();
        is_over.store(true, Ordering::Relaxed);
        result
    })
}

/// Records until the program and its descendants have ended.
fn record_until_end(
    mut traced: TracedProgram,
    signals: &Signals,
    (file, options): (Dump, RecordOptions),
    watches: Option<&Watches>,
) -> anyhow::Result<Outcome> {
    let selection = Selection::Tag(traced.tag.clone());
    let mut recorder = Recorder::new(selection, file, options)?;
    watches.inspect(|watches| watches.beside(&mut recorder));
    let mut watch = Watch::new(&mut traced, signals);
    let mut display = Display::new(!io::stdout().is_terminal());
    let stop = AtomicBool::new(false);
    let ended = recorder.run_with(&stop, |recorder| {
        display.show(recorder);
        watches.inspect(|watches| watches.keep_up());
        if watch.is_over(recorder) {
            stop.store(true, Ordering::Relaxed);
        }
    });
    display.clear();
    watches.inspect(|watches| watches.tell());
    traced.announce_no_more();
    let outcome = Outcome::of(&mut recorder, ended);
    let mut outcome = outcome.unwrap_or_else(|error| Outcome::failed(&error));
    let status = wait(&mut traced)?;
    outcome.command = Some(exit_code(status));
    outcome.command_end =
        ending(status).map(|ending| (traced.name().to_owned(), traced.pid(), ending));
    Ok(outcome)
}

/// Waits for a program that goes on although its recording has ended.
fn wait(traced: &mut TracedProgram) -> anyhow::Result<ExitStatus> {
    loop {
        traced.look(|_, _| ()).context("waiting for the program")?;
        if let Some(status) = traced.status {
            return Ok(status);
        }
        thread::sleep(LOOK_EVERY);
    }
}

/// Why no session appeared: the process's own reason, else what its exit code says.
fn why_not_traced(pid: u32, off: Option<String>, exit: Option<Exit>) -> String {
    match (off, exit) {
        (Some(reason), _) => format!("tracing is off in pid {pid}: {reason}"),
        (None, Some(Exit(code @ (126 | 127)))) => format!(
            "nothing recorded: pid {pid} ended with {code}, as what cannot be loaded or executed does"
        ),
        _ if settings::is_off() => "nothing recorded: RINGMARK=0 switches tracing off".to_owned(),
        _ => format!(
            "no session appeared in pid {pid}: recorded are sessions that a program starts as \
             RINGMARK says, with ringmark::start_from_env() or ringmark_start_from_env(); one that it \
             starts with a builder is recorded while it runs: 'ringmark record -p PID'; \
             'ringmark profile -- CMD' shows where the time of any program goes. \
             RINGMARK_VERBOSE=1 has a program say what went wrong"
        ),
    }
}

/// The life of the program while it is recorded.
struct Watch<'a> {
    traced: &'a mut TracedProgram,
    signals: &'a Signals,
    ended_at: Option<Instant>,
    /// When a session was recorded last, or the program's end was seen.
    session_at: Instant,
    /// A person was told that descendants go on.
    is_told: bool,
}

impl<'a> Watch<'a> {
    fn new(traced: &'a mut TracedProgram, signals: &'a Signals) -> Self {
        Self {
            traced,
            signals,
            ended_at: None,
            session_at: Instant::now(),
            is_told: false,
        }
    }

    /// Whether the program and all its traced descendants have ended.
    fn is_over(&mut self, recorder: &mut Recorder) -> bool {
        // What waiting cannot tell is found out once more when the recording has ended.
        let looked = self
            .traced
            .look(|pid, ending| recorder.know_ending(pid, ending));
        let has_ended = looked.is_err() || self.traced.status.is_some();
        let has_session = recorder.sessions().next().is_some();
        if !has_ended || has_session {
            self.session_at = Instant::now();
        }
        if !has_ended {
            return false;
        }
        let ended_at = *self.ended_at.get_or_insert_with(Instant::now);
        if self.signals.received().is_some() {
            return ended_at.elapsed() >= LOOK_AFTER_SIGNAL;
        }
        if has_session {
            self.tell_of_descendants(ended_at);
            return false;
        }
        if !self.traced.is_running() {
            return true;
        }
        let is_late = self.session_at.elapsed() >= WITHOUT_SESSION;
        if is_late {
            left_processes::tell(self.traced.name(), &self.traced.left());
        }
        is_late
    }

    fn tell_of_descendants(&mut self, ended_at: Instant) {
        if !self.is_told && ended_at.elapsed() > TELL_AFTER {
            self.is_told = true;
            let name = self.traced.name();
            note(&format!(
                "{name} has ended, processes that it started go on; Ctrl-C ends the recording"
            ));
        }
    }
}
