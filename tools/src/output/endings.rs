//! How sessions ended, as lines for a person and as JSON.

use std::fs::File;
use std::path::Path;

use ringmark_decoder::{Dump, DumpBuilder, SessionEnd};
use ringmark_format::ending::{Ending, signal_name};
use ringmark_reader::record;
use serde_json::{Value, json};

use super::file::is_standard;
use super::units::count;
use super::{note, printable};

/// Most ends that are told one by one.
const ENDS_SHOWN: usize = 10;
/// Most bytes of a trace file that is read again only to name a panic.
const READ_AGAIN_MAX: u64 = 64 << 20;

/// Prints each end that was not clean: a signal, a status, an end that is not known.
pub(crate) fn tell(dump: &Dump) {
    let ends = dump.endings();
    let unclean = ends.iter().filter(|end| !end.ending.is_clean());
    tell_lines(unclean.map(SessionEnd::to_string).collect());
}

/// The same of sessions that were recorded just now into `output`, which may hold the panic that
/// ended one of them. `command` is the program that was started, with its pid.
pub(crate) fn tell_recorded(
    ends: &[record::SessionEnd],
    command: Option<&(String, u32, Ending)>,
    output: &Path,
) {
    let mut lines: Vec<String> = match panics_in(ends, output) {
        Some(dump) => {
            let ends = dump.endings().into_iter();
            let unclean = ends.filter(|end| !end.ending.is_clean());
            unclean.map(|end| end.to_string()).collect()
        }
        None => ends
            .iter()
            .filter(|end| !end.ending.is_clean())
            .map(line)
            .collect(),
    };
    if let Some((name, pid, ending)) = command
        && !ending.is_clean()
        && !ends.iter().any(|end| end.pid == *pid)
    {
        lines.push(format!("{name}[{pid}]: {ending}"));
    }
    tell_lines(lines);
}

/// The end of the session in a trace file of one process, with the panic that is in it.
pub(crate) fn words_in(file: &Path, ending: Ending) -> String {
    let dump = SessionEnd::is_like_panic(ending).then(|| read_again(file));
    let ends = dump.flatten().map(|dump| dump.endings());
    let with_panic = ends.into_iter().flatten().find(|end| end.panic.is_some());
    with_panic.map_or_else(|| ending.to_string(), |end| end.words())
}

/// The trace file, if one of these sessions may have ended by a panic that is in it.
fn panics_in(ends: &[record::SessionEnd], output: &Path) -> Option<Dump> {
    let may_be = ends.iter().any(|end| SessionEnd::is_like_panic(end.ending));
    if !may_be || is_standard(output) {
        return None;
    }
    read_again(output)
}

fn read_again(path: &Path) -> Option<Dump> {
    let file = File::open(path).ok()?;
    if file.metadata().ok()?.len() > READ_AGAIN_MAX {
        return None;
    }
    let mut builder = DumpBuilder::new();
    builder.read(&path.display().to_string(), file).ok()?;
    Some(builder.finish())
}

/// The line of a session that ended: its name, its pid, its end.
pub(crate) fn line(end: &record::SessionEnd) -> String {
    format!("{}[{}]: {}", end.name, end.pid, end.ending)
}

fn tell_lines(mut lines: Vec<String>) {
    lines.dedup();
    lines
        .iter()
        .take(ENDS_SHOWN)
        .for_each(|line| note(&printable(line)));
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
