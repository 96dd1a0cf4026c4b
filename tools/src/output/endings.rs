//! How sessions ended, as lines for a person and as JSON.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::Path;

use ringmark_decoder::escape::Printable;
use ringmark_decoder::{Dump, DumpBuilder, SessionEnd};
use ringmark_format::ending::{Ending, signal_name};
use ringmark_reader::record;
use serde_json::{Value, json};

use super::last_words::{self, Show};
use ringmark_console::file::is_standard;
use ringmark_console::units::count;
use ringmark_console::{note, note_lines, printable};

/// Most ends that are told one by one.
const ENDS_SHOWN: usize = 10;
/// Signals that faults and `abort` send to the thread that made them: SIGILL, SIGTRAP, SIGABRT, SIGBUS,
/// SIGFPE, SIGSEGV, SIGSYS.
const OF_A_THREAD: [u8; 7] = [4, 5, 6, 7, 8, 11, 31];
/// Most bytes of a trace file that is read again to say how it ends.
const READ_AGAIN_MAX: u64 = 64 << 20;

/// Prints each end that was not clean: a signal, a status, an end that is not known.
pub(crate) fn tell(dump: &Dump) {
    tell_lines(unclean_ends(dump));
}

/// The same of sessions that were recorded just now into `output`, with what their threads did last
/// and the panic that ended one of them, if that is there. `command` is the program that was
/// started, with its pid.
pub(crate) fn tell_recorded(
    ends: &[record::SessionEnd],
    command: Option<&(String, u32, Ending)>,
    output: &Path,
) {
    let is_unclean = ends.iter().any(|end| !end.ending.is_clean());
    let found = match is_unclean {
        true => read_again(output),
        false => ReadAgain::Not,
    };
    let mut lines: Vec<String> = match &found {
        ReadAgain::Read(dump) => unclean_ends(dump),
        _ => ends
            .iter()
            .filter(|end| !end.ending.is_clean())
            .map(|end| printable(&line(end)))
            .collect(),
    };
    if let Some((name, pid, ending)) = command
        && !ending.is_clean()
        && !ends.iter().any(|end| end.pid == *pid)
    {
        lines.push(printable(&format!("{name}[{pid}]: {ending}")));
    }
    tell_lines(lines);
    found.tell_last_words(output);
}

/// Prints each end, clean or not.
pub(crate) fn tell_all(dump: &Dump) {
    let ends = dump.endings().into_iter();
    tell_lines(ends.map(|end| end.to_string()).collect());
}

/// The end of the session in a trace file of one process, with the panic that is in it.
pub(crate) fn words_in(found: &ReadAgain, ending: Ending) -> String {
    let ends = match found {
        ReadAgain::Read(dump) => dump.endings(),
        _ => Vec::new(),
    };
    let with_panic = ends.iter().find(|end| end.panic.is_some());
    with_panic.map_or_else(|| ending.to_string(), SessionEnd::words)
}

/// A trace file that was written just now, and read again to say what is in it.
pub(crate) enum ReadAgain {
    /// What is in it.
    Read(Dump),
    /// It is too large.
    Large,
    /// It was not written to a file of its own, cannot be read, or need not be.
    Not,
}

/// Reads a trace file that was written just now.
pub(crate) fn read_again(path: &Path) -> ReadAgain {
    let read = || {
        let file = File::open(path).ok().filter(|_| !is_standard(path))?;
        if file.metadata().ok()?.len() > READ_AGAIN_MAX {
            return Some(ReadAgain::Large);
        }
        let mut builder = DumpBuilder::new();
        builder.read(&path.display().to_string(), file).ok()?;
        Some(ReadAgain::Read(builder.finish()))
    };
    read().unwrap_or(ReadAgain::Not)
}

impl ReadAgain {
    /// Prints what threads did last and have open, or how to see it.
    pub(crate) fn tell_last_words(&self, path: &Path) {
        match self {
            Self::Read(dump) => note_lines(&last_words::text(dump, Show::Short)),
            Self::Large => note(&format!(
                "'ringmark list -v {}' shows what its threads did last",
                printable(&path.display().to_string())
            )),
            Self::Not => {}
        }
    }
}

/// Numbers of the threads whose panic ended their process.
pub(crate) fn panicked(dump: &Dump) -> Vec<u32> {
    let ends = dump.endings().into_iter();
    let panics = ends.filter_map(|end| end.panic);
    panics.map(|panic| panic.number).collect()
}

/// A sentence for each end by a signal that one thread gets: that the trace does not name the thread,
/// and which one did something last.
pub(crate) fn unnamed_threads(dump: &Dump) -> Vec<String> {
    let words = dump.last_words();
    let mut processes = BTreeSet::new();
    let ends = dump.endings().into_iter();
    let sentence = |end: SessionEnd| {
        let signal = end.ending.signal().filter(|s| OF_A_THREAD.contains(s))?;
        let process = dump.sessions.get(end.session)?.process;
        let is_new = end.panic.is_none() && processes.insert(process);
        let last = words.iter().find(|last| last.session.process == process);
        let last = last.filter(|_| is_new)?;
        let (name, tid) = (Printable(last.name()), last.tid);
        let signal = signal_name(signal)?;
        Some(format!(
            "Which thread got {signal} is not recorded; {name}[{tid}] did something last."
        ))
    };
    ends.filter_map(sentence).collect()
}

/// A line for each session that did not end well, with its host where there are several.
pub(crate) fn unclean_ends(dump: &Dump) -> Vec<String> {
    let ends = dump.endings().into_iter();
    let unclean = ends.filter(|end| !end.ending.is_clean());
    let of_several = dump.has_several_hosts();
    let host = |end: &SessionEnd| {
        let session = dump.sessions.get(end.session).filter(|_| of_several);
        session.map(|session| Printable(session.host()))
    };
    let line = |end: SessionEnd| match host(&end) {
        Some(host) => format!("{host}: {end}"),
        None => end.to_string(),
    };
    unclean.map(line).collect()
}

/// The line of a session that ended: its name as found, its pid, its end.
pub(crate) fn line(end: &record::SessionEnd) -> String {
    format!("{}[{}]: {}", end.name, end.pid, end.ending)
}

fn tell_lines(mut lines: Vec<String>) {
    lines.dedup();
    lines.iter().take(ENDS_SHOWN).for_each(|line| note(line));
    let more = lines.len().saturating_sub(ENDS_SHOWN);
    if more > 0 {
        note(&format!("{} more ended in such ways", count(more as u64)));
    }
}

/// An end as JSON: the keys that `verify --json` has for each session, without name and panic.
pub(crate) fn as_json(ending: Ending) -> Value {
    let signal = ending.signal().map(|signal| match signal_name(signal) {
        Some(name) => name.to_owned(),
        None => signal.to_string(),
    });
    let (core, memory) = match ending {
        Ending::Killed { core, memory, .. } => (core, memory),
        _ => (false, false),
    };
    json!({
        "how": ending.word(),
        "status": ending.status(),
        "signal": signal,
        "core": core,
        "out_of_memory": memory,
        "text": ending.to_string(),
    })
}
