//! The lines above a table or graph: what part of the time it covers, and what is not there.

use std::collections::BTreeMap;

use ringmark_decoder::{Cover, Dump, unordered_notice};

use super::host_table::moment;
use ringmark_console::printable;
use ringmark_console::units::{count, counted, duration};

/// Processes whose cover is shown one by one.
const PROCESSES_SHOWN: usize = 8;

/// A line for each session: its part of the time. Sessions of one process may hold different parts. Another one, where
/// their records have no order.
pub(crate) fn lines(dump: &Dump) -> Vec<String> {
    let mut processes: BTreeMap<usize, Vec<Cover<'_>>> = BTreeMap::new();
    for cover in dump.covers() {
        let process = processes.entry(cover.session.process).or_default();
        process.push(cover);
    }
    let several = processes.len() > 1;
    let mut lines = Vec::new();
    for covers in processes.values().take(PROCESSES_SHOWN) {
        let name = match (several, covers.first()) {
            (true, Some(cover)) => name(cover, !dump.has_several_hosts()),
            _ => String::new(),
        };
        lines.extend(
            of_process(covers)
                .iter()
                .map(|line| format!("{name}{line}")),
        );
    }
    if processes.len() > PROCESSES_SHOWN {
        let others = processes.len() - PROCESSES_SHOWN;
        lines.push(format!(
            "and others: {} processes more",
            count(others as u64)
        ));
    }
    lines.extend(unordered_notice(dump));
    lines
}

/// The line that says what a trace is of: its program, when it began, where it is read from. `None`: several
/// processes, which the lines above name.
pub(crate) fn origin(dump: &Dump, read_from: &str) -> Option<String> {
    let first = dump
        .sessions
        .iter()
        .find(|session| session.header.is_some())?;
    if dump
        .sessions
        .iter()
        .any(|other| other.process != first.process)
    {
        return None;
    }
    let name = String::from_utf8_lossy(first.process_name());
    let host = match first.host() {
        [] => String::new(),
        host => format!(" on {}", ringmark_console::host_name(host)),
    };
    let begun = moment(Some(first.clock.real_zero_ns));
    let (name, pid) = (printable(&name), first.pid());
    Some(format!(
        "of {name} [{pid}]{host}, which began at {begun}: {read_from}"
    ))
}

/// `is_one`: all processes ran on one host.
fn name(cover: &Cover<'_>, is_one: bool) -> String {
    let name = String::from_utf8_lossy(cover.session.process_name());
    let host = match is_one {
        true => String::new(),
        false => format!("{}: ", ringmark_console::host_name(cover.session.host())),
    };
    format!("{host}{} [{}]: ", printable(&name), cover.session.pid())
}

fn of_process(covers: &[Cover<'_>]) -> Vec<String> {
    let from = covers.iter().map(|cover| cover.from_ns).min().unwrap_or(0);
    let to = covers.iter().map(|cover| cover.to_ns).max().unwrap_or(0);
    // Differences that no one sees in the figures are not told.
    let slack = to.saturating_sub(from) / 50;
    let line = |cover: &Cover<'_>| {
        let what = match (covers.len(), cover.has_functions()) {
            (1, _) => "covers",
            (_, true) => "functions cover",
            (_, false) => "events cover",
        };
        // A ring in overwrite mode holds the end of a session, another session may have begun later.
        let is_later = cover.from_ns > from + slack && cover.overwritten == 0;
        let is_late = cover.from_ns > from + slack && !is_later;
        let is_early = cover.to_ns + slack < to;
        let part = match (is_late, is_early) {
            (true, false) => "only the last ",
            (false, true) => "only the first ",
            (true, true) => "only ",
            (false, false) if cover.overwritten > 0 => "the last ",
            (false, false) => "",
        };
        let length = match cover.session.has_times() {
            true => duration(cover.length_ns()),
            false => "a time that is not known".to_owned(),
        };
        let mut line = format!("{what} {part}{length}");
        if is_later {
            line += &format!(", {} later", duration(cover.from_ns - from));
        }
        if cover.overwritten > 0 {
            let events = counted(cover.overwritten, "event");
            line += &format!("; {events} before were overwritten");
        }
        if cover.lost > 0 {
            line += &format!("; {} lost", count(cover.lost));
        }
        line
    };
    covers.iter().map(line).collect()
}
