//! Prints what the main job found, as its trace tells it.

use std::env;
use std::io::{self, Write};
use std::path::Path;

use ringmark_decoder::escape::Printable;
use ringmark_decoder::{Event, Output, Value, Verification};

use super::index::Totals;
use super::main_job::MainJob;
use ringmark_console::shell::quoted;
use ringmark_console::units::{count, duration, size};
use ringmark_console::{Style, Table};

/// Number of the slowest files that are shown.
const SLOWEST: usize = 10;
/// Most unreadable files that are shown.
const UNREADABLE: usize = 3;
/// Columns that a path may take, so that a line has no more than 80.
const PATH_COLUMNS: usize = 44;
/// Columns that the name of the trace file may take.
const FILE_COLUMNS: usize = 34;
/// Columns that the name of the directory may take in the first line.
pub(super) const DIR_COLUMNS: usize = 30;

/// Totals of the job, taken from the events of its trace.
#[derive(Debug, Default)]
struct Seen {
    totals: Totals,
    slowest: Vec<Slow>,
    unreadable: Vec<String>,
}

#[derive(Debug)]
struct Slow {
    took_ns: u64,
    bytes: u64,
    lines: u64,
    path: String,
}

/// Prints summary and slowest files; returns whether nothing was lost and every sum is right.
///
/// # Errors
/// Those of writing.
pub(super) fn main(
    out: &mut impl Write,
    style: Style,
    main: &MainJob,
    file: &Path,
) -> io::Result<bool> {
    let seen = Seen::collect(main.dump.events());
    let found = main.dump.verify();
    summary(out, main, &found, file)?;
    let is_right = check(out, style, main, &found, &seen)?;
    for line in seen.unreadable.iter().take(UNREADABLE) {
        writeln!(out, "  not read     {line}")?;
    }
    slowest(out, style, &seen)?;
    Ok(is_right)
}

fn summary(
    out: &mut impl Write,
    main: &MainJob,
    found: &Verification,
    file: &Path,
) -> io::Result<()> {
    let totals = &main.report.totals;
    let mut line = |name: &str, value: String, remark: String| {
        let text = format!("  {name:<11}  {value:>15}  {remark}");
        writeln!(out, "{}", text.trim_end())
    };
    let unreadable = match totals.unreadable {
        0 => String::new(),
        n => format!("{} files or directories could not be read", count(n)),
    };
    line("files", count(totals.files), unreadable)?;
    line("bytes", count(totals.bytes), size(totals.bytes))?;
    line("lines", count(totals.lines), String::new())?;
    line("directories", count(totals.directories), String::new())?;
    line(
        "workers",
        main.report.workers.to_string(),
        "threads, each with a ring of its own".to_owned(),
    )?;
    line("time", duration(main.report.took_ns), String::new())?;
    let name = Printable(file.as_os_str().as_encoded_bytes()).to_string();
    let written = format!(
        "{} in {}",
        size(main.outcome.progress.bytes),
        shortened(&name, FILE_COLUMNS)
    );
    line("events", count(found.events), written)?;
    let lost = if found.lost == 0 {
        ""
    } else {
        "the recorder could not keep up"
    };
    line("lost", count(found.lost), lost.to_owned())
}

/// Compares the trace with what the job itself counted, and prints the verdict.
fn check(
    out: &mut impl Write,
    style: Style,
    main: &MainJob,
    found: &Verification,
    seen: &Seen,
) -> io::Result<bool> {
    let totals = &main.report.totals;
    let adds_up = found.events + found.lost == totals.events && found.missing == 0;
    let is_same = seen.totals
        == Totals {
            events: found.events,
            ..*totals
        };
    let is_whole = found.is_clean() && found.complete && is_same;
    let (verdict, colour) = match (adds_up, is_whole) {
        (true, true) => (
            "whole: the job counted the same events, files, bytes and lines",
            "",
        ),
        (true, false) if found.lost == 0 => ("not what the job counted", style.alarm()),
        (true, false) => ("not whole, but each lost event is counted", style.alarm()),
        _ => ("WRONG", style.alarm()),
    };
    writeln!(
        out,
        "  {:<11}  {colour}{verdict}{}",
        "verified",
        if colour.is_empty() { "" } else { style.plain() }
    )?;
    if !adds_up {
        let (events, lost, emitted) =
            (count(found.events), count(found.lost), count(totals.events));
        writeln!(
            out,
            "  the job emitted {emitted} events, found {events} and {lost} lost"
        )?;
    } else if found.lost == 0 && !is_same {
        writeln!(
            out,
            "  the job counted {totals:?}, its trace says {:?}",
            seen.totals
        )?;
    }
    found
        .damage
        .iter()
        .take(SLOWEST)
        .try_for_each(|damage| writeln!(out, "  {damage}"))?;
    Ok(adds_up && is_whole)
}

fn slowest(out: &mut impl Write, style: Style, seen: &Seen) -> io::Result<()> {
    if seen.slowest.is_empty() {
        return Ok(());
    }
    writeln!(out)?;
    let mut table = Table::new(&[">slowest", ">bytes", ">lines", "file"]);
    for slow in &seen.slowest {
        let path = shortened(&slow.path, PATH_COLUMNS);
        table.row(vec![
            duration(slow.took_ns),
            count(slow.bytes),
            count(slow.lines),
            path,
        ]);
    }
    table.write(out, style)
}

/// Prints commands to try next, as they can be typed here.
///
/// # Errors
/// Those of writing.
pub(super) fn next(out: &mut impl Write, style: Style, file: &Path, dir: &Path) -> io::Result<()> {
    let own = env::args_os().next().unwrap_or_else(|| "ringmark".into());
    let own = quoted(Path::new(&own));
    let (file, dir) = (quoted(file), quoted(dir));
    writeln!(out, "\n{}Try next{}", style.heading(), style.plain())?;
    writeln!(out, "  {own} cat {file} -n 20")?;
    writeln!(out, "  {own} report {file}")?;
    writeln!(out, "  {own} record -- {own} demo --index {dir}")
}

/// The end of a text: of a path, it says more than the start.
pub(super) fn shortened(text: &str, columns: usize) -> String {
    let length = text.chars().count();
    if length <= columns {
        return text.to_owned();
    }
    let end: String = text.chars().skip(length + 1 - columns).collect();
    format!("…{end}")
}

impl Seen {
    fn collect<'a>(items: impl Iterator<Item = Output<'a>>) -> Self {
        let mut seen = Self::default();
        for item in items {
            if let Output::Event(event) = item {
                seen.add(&event);
            }
        }
        seen.keep_slowest();
        seen
    }

    fn add(&mut self, event: &Event<'_>) {
        self.totals.events += 1;
        match event.name() {
            b"index.file" => self.add_file(event),
            b"index.directory" => self.totals.directories += 1,
            b"index.unreadable" => {
                self.totals.unreadable += 1;
                if self.unreadable.len() < UNREADABLE {
                    let path = shortened(&text(event, "path"), PATH_COLUMNS);
                    self.unreadable
                        .push(format!("{path}: {}", text(event, "error")));
                }
            }
            _ => {}
        }
    }

    fn add_file(&mut self, event: &Event<'_>) {
        let (bytes, lines) = (number(event, "bytes"), number(event, "lines"));
        self.totals.files += 1;
        self.totals.bytes += bytes;
        self.totals.lines += lines;
        let took_ns = event.duration_ns().unwrap_or(0);
        self.slowest.push(Slow {
            took_ns,
            bytes,
            lines,
            path: text(event, "path"),
        });
        if self.slowest.len() >= 100 * SLOWEST {
            self.keep_slowest();
        }
    }

    fn keep_slowest(&mut self) {
        self.slowest
            .sort_by(|a, b| b.took_ns.cmp(&a.took_ns).then(a.path.cmp(&b.path)));
        self.slowest.truncate(SLOWEST);
    }
}

fn value<'e>(event: &'e Event<'_>, field: &str) -> Option<Value<'e>> {
    let mut args = event.args();
    args.find(|(f, _)| f.name == field.as_bytes())
        .map(|(_, value)| value)
}

fn number(event: &Event<'_>, field: &str) -> u64 {
    match value(event, field) {
        Some(Value::U64(number)) => number,
        _ => 0,
    }
}

/// The text of a field, made safe for a terminal.
fn text(event: &Event<'_>, field: &str) -> String {
    match value(event, field) {
        Some(Value::Str(bytes)) => Printable(bytes).to_string(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use ringmark_decoder::Dump;

    use super::super::parent::Report;
    use super::*;
    use crate::recording::outcome::Outcome;

    /// The verdict on a trace with these events and losses, of a job that emitted 10.
    fn verdict(events: u64, lost: u64, seen: &Seen) -> (bool, String) {
        let totals = Totals {
            files: 2,
            events: 10,
            ..Totals::default()
        };
        let report = Report {
            totals,
            took_ns: 1,
            workers: 1,
        };
        let found = Verification {
            events,
            lost,
            complete: true,
            ..Verification::default()
        };
        let main = MainJob {
            report,
            outcome: Outcome::default(),
            dump: Dump::default(),
        };
        let mut out = Vec::new();
        let is_right = check(&mut out, Style::none(), &main, &found, seen).unwrap();
        (is_right, String::from_utf8(out).unwrap())
    }

    #[test]
    fn a_wrong_sum_is_not_right() {
        let seen = |files, events| Seen {
            totals: Totals {
                files,
                events,
                ..Totals::default()
            },
            ..Seen::default()
        };
        assert!(verdict(10, 0, &seen(2, 10)).0);
        for (events, lost, files, text) in [
            (9, 0, 2, "WRONG"),
            (11, 0, 2, "WRONG"),
            (9, 2, 2, "WRONG"),
            (9, 1, 2, "each lost event is counted"),
            (10, 0, 1, "its trace says"),
        ] {
            let (is_right, told) = verdict(events, lost, &seen(files, events));
            assert!(!is_right && told.contains(text), "{told}");
        }
    }

    #[test]
    fn long_paths_keep_their_end() {
        assert_eq!(shortened("short", 5), "short");
        assert_eq!(shortened("longer", 5), "…nger");
    }
}
