//! Loads the function tracer into a process that runs without it.

use std::ffi::CStr;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use ringmark_attach::{LoadError, Loaded, Options};
use ringmark_function_tracer::sites::{Headers, in_file};
use ringmark_reader::notes::OffNote;
use ringmark_reader::{Access, ReaderError, Session, find, notes};

use super::library;
use super::requests::knows_tracers;
use super::untraceable::{NO_SITES, no_sites};
use ringmark_console::{Failure, note, printable};

/// How long the loaded shared object has to start.
const START_WITHIN: Duration = Duration::from_secs(10);
/// Times of files can be a tick of the kernel's clock older than the clock.
const CLOCK_STEP: Duration = Duration::from_millis(20);
/// How often that is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// Loads the shared object into the process, which then has a session that answers `trace`, with these
/// settings: see `ringmark_functions_start`. `needs_memfd`: the settings have it make memfds.
///
/// # Errors
/// Why it was not loaded; the process is then as it was.
pub(crate) fn load(pid: u32, settings: &CStr, needs_memfd: bool) -> Result<(), Failure> {
    if let Some(obstacle) = obstacle(pid) {
        return Err(obstacle);
    }
    let begun = SystemTime::now() - CLOCK_STEP;
    let library = library::library()?;
    let options = Options {
        call: Some((c"ringmark_functions_start", settings)),
        needs_memfd,
        ..Options::default()
    };
    let failed = |error: LoadError| Failure::no_target(printable(&error.to_string()));
    let loaded = ringmark_attach::load(pid.cast_signed(), &library, &options).map_err(failed)?;
    if loaded.result.is_some_and(|result| result != 0) {
        let text = format!("pid {pid}: the function tracer has no thread to start on");
        return Err(Failure::no_target(text));
    }
    note(&about(pid, &loaded));
    let end = Instant::now() + START_WITHIN;
    while !answers(pid) {
        // Not the note of another copy of the library, from before.
        if let Some(note) = notes::own_note(pid).filter(|note| note.written >= begun) {
            return Err(is_off(pid, &note));
        }
        if has_ended(pid) {
            let text = "ended before the function tracer that was loaded into it had started";
            return Err(Failure::no_target(format!("pid {pid}: {text}")));
        }
        if Instant::now() >= end {
            let text =
                "the function tracer was loaded and has not started; is the process stopped?";
            return Err(Failure::no_target(format!("pid {pid}: {text}")));
        }
        thread::sleep(LOOK_EVERY);
    }
    Ok(())
}

/// Why the function tracer cannot run in this process, if it is loaded and has said why it is off.
pub(crate) fn obstacle(pid: u32) -> Option<Failure> {
    let note = is_loaded(pid).then(|| notes::own_note(pid))??;
    Some(is_off(pid, &note))
}

fn is_off(pid: u32, note: &OffNote) -> Failure {
    let reason = printable(&note.reason);
    Failure::no_target(format!(
        "pid {pid}: the function tracer is loaded and off: {reason}"
    ))
}

/// Whether the function tracer is loaded and has not said that it is off.
pub(crate) fn is_starting(pid: u32) -> bool {
    is_loaded(pid) && notes::own_note(pid).is_none()
}

/// Whether the function tracer is loaded.
pub(crate) fn is_loaded(pid: u32) -> bool {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps"));
    maps.is_ok_and(|maps| maps.contains(library::LIBRARY))
}

/// Checks that the process has loaded an object whose functions can be traced. A process without
/// one is left alone.
pub(crate) fn require_sites(pid: u32) -> Result<(), Failure> {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    let mut files: Vec<_> = maps
        .lines()
        .filter_map(|line| mapped_code(pid, line))
        .collect();
    files.dedup();
    // A file that cannot be read may have some.
    if files.is_empty()
        || files
            .iter()
            .any(|file| Headers::of(file).map_or(true, |found| found.names_sites))
    {
        return Ok(());
    }
    let program = PathBuf::from(format!("/proc/{pid}/exe"));
    let why = in_file(&program).map_or_else(|_| NO_SITES.to_owned(), |found| no_sites(&found));
    Err(Failure::no_target(format!(
        "pid {pid}: neither its program nor an object that it has loaded can be traced: {why}; \
         'ringmark profile -p {pid}' shows where its time goes as it is"
    )))
}

/// The file of executable memory, from a line of `/proc/PID/maps`.
fn mapped_code(pid: u32, line: &str) -> Option<PathBuf> {
    let mut fields = line.split_ascii_whitespace();
    let is_code = fields.nth(1)?.contains('x');
    let path = line.get(line.find('/')?..)?;
    is_code.then(|| PathBuf::from(format!("/proc/{pid}/root{path}")))
}

fn about(pid: u32, loaded: &Loaded) -> String {
    format!(
        "pid {pid}: function tracer loaded by thread {} in {} us; no thread was stopped for longer \
         than {} us",
        loaded.tid,
        loaded.held.as_micros(),
        loaded.stopped.as_micros()
    )
}

/// Whether the process is gone, or a zombie: its state follows its name, which may hold anything.
fn has_ended(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    let state = |stat: &String| {
        stat.rsplit_once(')')
            .map(|(_, rest)| rest.trim_start().to_owned())
    };
    let state = stat.as_ref().ok().and_then(state);
    state.is_none_or(|state| state.starts_with(['Z', 'X']))
}

/// Whether a session of the process has tracers.
fn answers(pid: u32) -> bool {
    let knows = |place: &find::FoundSession| -> Result<bool, ReaderError> {
        let session = Session::open_found(place, Access::Control)?;
        knows_tracers(&session, START_WITHIN)
    };
    let places = find::by_pid(pid).unwrap_or_default();
    places.iter().any(|place| knows(place).unwrap_or(false))
}
