//! What a person should know of the trace files that a command has read, on standard error.

use std::collections::HashSet;

use ringmark_decoder::{Dump, Session, SessionChoice, Verification};
use ringmark_reader::lives_here;

use ringmark_console::units::{counted, duration};
use ringmark_console::{note, printable};

/// Most damages that are told one by one.
const DAMAGES_SHOWN: usize = 10;

/// Notice about a session whose schema is incomplete.
pub(crate) const SCHEMA_INCOMPLETE: &str = "the session had no room to describe all its event types; events of the others are shown as raw bytes. A larger session has room: session_bytes, or session= in RINGMARK";

/// Prints all notices about what was read.
pub(super) fn tell_all(dump: &Dump) {
    tell_damage(dump);
    tell_unknown(dump);
    let found = dump.verify();
    tell_steps(&found);
    tell_clocks(dump, &found);
    tell_schema(dump);
    tell_newer(dump);
    tell_unfinished(dump, &found);
}

/// Prints which processes are still recorded into this trace file, as far as events are not in it yet.
fn tell_unfinished(dump: &Dump, found: &Verification) {
    let goes_on = |session: &&Session| {
        let process = session.header.and_then(|header| header.process());
        session.ending.is_none() && process.is_some_and(|process| lives_here(&process))
    };
    let mut told = HashSet::new();
    let running = dump.sessions.iter().filter(|_| found.missing > 0);
    for session in running.filter(goes_on) {
        if told.insert(session.process) {
            let (name, pid) = (session.process_name(), session.pid());
            note(&format!(
                "{}[{pid}] still runs: its latest events come into the trace file when their page is \
                 full, or it ends; '-p {pid}' shows them now",
                printable(&String::from_utf8_lossy(name))
            ));
        }
    }
}

/// Prints what was there when the input was read first, and not when its events were shown.
pub(crate) fn tell_gone(dump: &Dump) {
    dump.gone().iter().for_each(|gone| note(&gone.to_string()));
}

/// Prints that no session was chosen, and which hosts and services there would be.
pub(super) fn tell_choice(dump: &Dump, choice: &SessionChoice) {
    if dump.sessions.is_empty() && !choice.is_all() {
        note("--host, --service and --pid choose no process; 'ringmark list FILE' shows all");
    }
}

/// Prints how much a newer version wrote that this one does not show.
fn tell_newer(dump: &Dump) {
    if dump.unknown_blocks > 0 {
        let blocks = counted(dump.unknown_blocks, "block");
        note(&format!(
            "{blocks} of kinds that this version does not know: use a newer ringmark"
        ));
    }
}

/// Prints which sessions do not describe all their event types, and what to do.
pub(crate) fn tell_schema(dump: &Dump) {
    for session in dump.sessions.iter().filter(|s| s.schema_incomplete()) {
        let name = String::from_utf8_lossy(session.process_name());
        note(&format!(
            "{} [{}]: {SCHEMA_INCOMPLETE}",
            printable(&name),
            session.pid()
        ));
    }
}

/// Prints what could not be used, and how much was read.
fn tell_damage(dump: &Dump) {
    if dump.damage.is_empty() {
        return;
    }
    for damage in dump.damage.iter().take(DAMAGES_SHOWN) {
        note(&damage.to_string());
    }
    let more = dump.damage.len().saturating_sub(DAMAGES_SHOWN);
    if more > 0 {
        note(&format!("{more} more of this kind"));
    }
    let whole = pages(dump);
    let were = if whole == 1 { "was" } else { "were" };
    note(&format!("{} {were} read", counted(whole, "complete page")));
}

/// Prints which sessions have no times.
fn tell_unknown(dump: &Dump) {
    for session in dump
        .sessions
        .iter()
        .filter(|s| !s.has_times() && !s.slots.is_empty())
    {
        let why = match session.header {
            None => "its header is damaged or missing",
            Some(_) => "its clock is 'none'",
        };
        note(&format!(
            "session {}: {why}, so dates and durations of its events are not known",
            session.uuid
        ));
    }
}

/// Prints that clocks went back, so that the order by time may be wrong. Events of one thread that
/// go back do not count: a signal handler's event may stand before the one that it interrupted;
/// `verify` counts those.
fn tell_steps(found: &Verification) {
    if found.clock_steps > 0 {
        note(&format!(
            "{} go back in time; events are shown in the order of their times, which may not be that in which they happened",
            counted(found.clock_steps, "clock sample"),
        ));
    }
}

/// Prints whose clock the times of several hosts are on, and how exact that is.
fn tell_clocks(dump: &Dump, found: &Verification) {
    let is_measured = |s: &Session| s.clock.is_measured();
    if dump.sessions.len() < 2 || !dump.sessions.iter().any(is_measured) {
        return;
    }
    let mut text = match found.clock_error_ns {
        Some(error_ns) => format!(
            "times are on the collector's clock, each at most {} wrong",
            duration(error_ns)
        ),
        None => "times are on collectors' clocks".to_owned(),
    };
    let is_unknown = |s: &&Session| is_measured(s) && s.clock.error_ns(0).is_none();
    let of = |is: &dyn Fn(&&Session) -> bool| {
        let count = dump.sessions.iter().filter(is).count() as u64;
        (count > 0).then(|| counted(count, "session"))
    };
    if let Some(sessions) = of(&|s| !is_measured(s)) {
        text += &format!("; the clock of {sessions} was not measured");
    }
    if let Some(sessions) = of(&is_unknown) {
        text += &format!("; of {sessions} by a collector whose own clock nothing keeps right");
    }
    note(&text);
}

/// Number of pages that were read.
fn pages(dump: &Dump) -> u64 {
    let slots = dump.sessions.iter().flat_map(|s| &s.slots);
    slots.map(|slot| slot.pages.len() as u64).sum()
}
