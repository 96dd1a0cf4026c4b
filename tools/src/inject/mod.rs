//! Loading the function tracer into a process that runs without it.

use std::thread;
use std::time::{Duration, Instant};

use ringmark_attach::{LoadError, Loaded, Options};
use ringmark_reader::{Access, Session, control, find};

use crate::output::{Failure, note, printable};
use crate::tracing::preload;

/// How long the loaded library has to start.
const START_WITHIN: Duration = Duration::from_secs(10);
const GLANCE: Duration = Duration::from_millis(2);

/// Loads the shared object into the process, which then has a session that answers `trace`.
///
/// # Errors
/// Why it was not loaded; the process is as it was then.
pub(crate) fn load(pid: u32) -> Result<(), Failure> {
    let library = preload::library()?;
    let options = Options {
        call: Some((c"ringmark_functions_start", c"")),
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
        if Instant::now() >= end {
            let text =
                "the function tracer was loaded and does not start; 'ringmark list' says why";
            return Err(Failure::no_target(format!("pid {pid}: {text}")));
        }
        thread::sleep(GLANCE);
    }
    Ok(())
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

/// Whether a session of the process has tracers.
fn answers(pid: u32) -> bool {
    let knows = |place: &find::Found| {
        let session = Session::open_found(place, Access::Control).ok()?;
        let answer = control::request(&session, "trace renew\ntracer=", START_WITHIN).ok()?;
        Some(!answer.text.starts_with("unknown request"))
    };
    let places = find::by_pid(pid).unwrap_or_default();
    places.iter().any(|place| knows(place) == Some(true))
}
