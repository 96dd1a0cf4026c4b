//! `list`: sessions, living and dead, and why a process is not traced.

use std::collections::HashMap;
use std::io::Write;
use std::path::PathBuf;

use ringmark_console::extension::place_parser;
use ringmark_console::json::{Head, JsonOption, Line};
use ringmark_console::units::{count, size};
use ringmark_console::wide::WideOption;
use ringmark_console::{Exit, Sink, Style, Table, json, note, printable};
use ringmark_format::Uuid;
use ringmark_format::attribute::tag;
use ringmark_format::counters::Cause;
use ringmark_format::session::ProcessId;
use ringmark_reader::{
    Access, DirectoryRemovals, ReaderError, Session, SessionInfo, clean, find, notes,
};
use serde_json::json;

use crate::input::notices::SCHEMA_INCOMPLETE;
use crate::input::{rings, trace_files};
use crate::options::rows::LinesOption;
use crate::options::sessions::SessionOptions;
use crate::output::last_words::Show;
use crate::output::{endings, last_words};
use crate::tables::session_table;

/// List sessions, living and dead, and why processes are not traced
#[derive(Debug, clap::Args)]
#[command(after_help = "\
PID is the number of the process here. If it has another number in its own pid
namespace, that follows in parentheses; '?' is a number that is not known.
Below the table is what was removed, to make room, before it was read.

With FILE, the sessions that are in trace files or in a store.

Examples:
  ringmark list
  ringmark list /var/lib/ringmark --host 'web-*'")]
pub(crate) struct Args {
    /// List the sessions in these trace files and stores instead; '-' is standard input
    #[arg(value_name = "FILE", value_parser = place_parser())]
    files: Vec<PathBuf>,
    #[command(flatten)]
    chosen: SessionOptions,
    #[command(flatten)]
    json: JsonOption,
    #[command(flatten)]
    lines: LinesOption,
    #[command(flatten)]
    wide: WideOption,
    /// Say below the table how each session ended, and what its threads did last and have open
    #[arg(short, long)]
    verbose: bool,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        if !self.files.is_empty() {
            return self.of_files();
        }
        self.chosen.require_none()?;
        let (sessions, errors) = sessions(self.verbose && !self.json.is_on());
        let notes = notes::off_notes();
        let removals = clean::removals();
        let columns = self.wide.columns().filter(|_| !self.json.is_on());
        let mut out = match self.json.is_on() {
            true => Sink::direct(),
            false => Sink::paged().within(columns),
        };
        if self.json.is_on() {
            let objects = sessions.iter().map(as_json);
            let objects = objects.chain(notes.iter().map(off_as_json));
            for object in objects.chain(removals.iter().map(removals_as_json)) {
                writeln!(out, "{}", Line(object))?;
            }
        } else {
            write_table(&mut out, &sessions, &notes, (columns, &self))?;
            removals
                .iter()
                .try_for_each(|directory| writeln!(out, "{}", printable(&directory.to_string())))?;
        }
        out.finish()?;
        let refused = find::refused();
        for error in errors.iter().chain(&refused) {
            note(&printable(&error.to_string()));
        }
        if sessions.is_empty() && !refused.is_empty() {
            return Ok(Exit::NO_TARGET);
        }
        Ok(Exit::FINE)
    }
}

impl Args {
    /// Lists the sessions in trace files.
    fn of_files(&self) -> anyhow::Result<Exit> {
        let dump = trace_files::read_sessions(&self.files, &self.chosen.choice(None))?;
        let columns = self.wide.columns().filter(|_| !self.json.is_on());
        let mut out = match self.json.is_on() {
            true => Sink::direct(),
            false => Sink::paged().within(columns),
        };
        if self.json.is_on() {
            for session in &dump.sessions[..self.lines.of(dump.sessions.len())] {
                let object = session_table::as_json(session);
                writeln!(out, "{}", Line(object))?;
            }
        } else {
            let mut table = session_table::table(&dump);
            self.lines.cut(&mut table);
            table.fit(columns);
            table.write(&mut out, Style::detect())?;
        }
        out.finish()?;
        Ok(Exit::lost_if(!dump.damage.is_empty()))
    }
}

/// A session, and the number of its process here.
struct Listed {
    info: SessionInfo,
    /// Its process; `None`: not to be told from a later one of the same pid.
    process: Option<ProcessId>,
    pid_here: Option<u32>,
    /// What its threads did last and have open, if that is wanted and there is any.
    last_words: String,
}

/// All sessions that can be opened, those that are alive first, and the errors of the others.
/// `verbose`: with their last words.
fn sessions(verbose: bool) -> (Vec<Listed>, Vec<ReaderError>) {
    let (mut sessions, mut errors) = (Vec::new(), Vec::new());
    for found in find::all() {
        match Session::open_found(&found, Access::Observe) {
            Ok(session) => sessions.push(Listed {
                pid_here: session.pid_here(),
                info: SessionInfo::of(&session),
                process: session.header().process(),
                last_words: last_words_of(session, verbose),
            }),
            Err(error) if error.is_starting() => {}
            Err(error) => errors.push(error),
        }
    }
    sessions.sort_by_key(|listed| (!listed.info.alive, listed.info.started_real_ns));
    (sessions, errors)
}

/// What the threads of a session did last and have open. A session that cannot be read has its line
/// in the table all the same.
fn last_words_of(session: Session, is_wanted: bool) -> String {
    let dump = is_wanted
        .then(|| rings::of_sessions([session]).ok())
        .flatten();
    dump.map_or_else(String::new, |dump| last_words::text(&dump, Show::Short))
}

fn write_table(
    out: &mut Sink,
    sessions: &[Listed],
    notes: &[notes::OffNote],
    (columns, options): (Option<usize>, &Args),
) -> anyhow::Result<()> {
    if sessions.is_empty() && notes.is_empty() {
        for directory in find::directories() {
            writeln!(out, "no sessions in {}{}", directory.display(), whose())?;
            if let Some(obstacle) = notes::obstacle(&directory) {
                let obstacle = printable(&obstacle);
                writeln!(out, "programs cannot be traced there: {obstacle}")?;
            }
        }
        return Ok(());
    }
    let style = Style::detect();
    let mut table = Table::new(&[
        "PID", "STATE", "MODE", ">RINGS", ">FILL", ">MEMORY", ">LOST", "NAME",
    ]);
    sessions.iter().for_each(|listed| table.row(row(listed)));
    for off in notes {
        let dash = || "-".to_owned();
        let mut reason = printable(&off.reason);
        if columns.is_some() {
            // A reason is a sentence, and below the table it may be as long as it is.
            table.foot([format!("{}: {reason}", off.pid)]);
            reason = "not traced, see below".to_owned();
        }
        table.row(vec![
            off.pid.to_string(),
            "off".into(),
            dash(),
            dash(),
            dash(),
            dash(),
            dash(),
            reason,
        ]);
    }
    options.lines.cut(&mut table);
    table.fit(columns);
    table.write(out, style)?;
    for line in groups(sessions) {
        writeln!(out, "{line}")?;
    }
    for listed in sessions {
        if let Some(ending) = listed.info.ending.filter(|_| options.verbose) {
            writeln!(out, "{}: {ending}", pids(listed))?;
        }
        for text in notices(&listed.info) {
            writeln!(out, "{}: {}", pids(listed), printable(&text))?;
        }
        if !listed.last_words.is_empty() {
            write!(out, "{}: {}", pids(listed), listed.last_words)?;
        }
    }
    Ok(())
}

/// A line for each process that has several sessions: how many, and what they take together.
fn groups(sessions: &[Listed]) -> Vec<String> {
    let mut places = HashMap::new();
    let mut groups: Vec<(&Listed, u64, u64)> = Vec::new();
    for listed in sessions {
        let Some(process) = listed.process else {
            continue;
        };
        let place = *places.entry(process).or_insert(groups.len());
        if place == groups.len() {
            groups.push((listed, 0, 0));
        }
        let (_, number, bytes) = &mut groups[place];
        *number += 1;
        *bytes = bytes.saturating_add(listed.info.allocated_bytes);
    }
    let several = groups.iter().filter(|(_, number, _)| *number > 1);
    let line = |(listed, number, bytes): &(&Listed, u64, u64)| {
        format!("{}: {number} sessions, {}", pids(listed), size(*bytes))
    };
    several.map(line).collect()
}

/// Text that says whose sessions are listed: root sees those of all users.
fn whose() -> &'static str {
    if rustix::process::geteuid().is_root() {
        ""
    } else {
        "; these are yours alone, root sees those of all users"
    }
}

fn row(listed: &Listed) -> Vec<String> {
    let info = &listed.info;
    vec![
        pids(listed),
        state(info).to_owned(),
        info.mode.name().to_owned(),
        info.rings.len().to_string(),
        format!("{} %", info.fill_percent()),
        size(info.allocated_bytes),
        count(info.lost_total()),
        printable(&info.name),
    ]
}

/// The number of the process here, and the one in its own pid namespace if that differs.
fn pids(Listed { info, pid_here, .. }: &Listed) -> String {
    match *pid_here {
        Some(here) if here == info.pid => here.to_string(),
        Some(here) => format!("{here} ({})", info.pid),
        None => format!("? ({})", info.pid),
    }
}

fn state(info: &SessionInfo) -> &'static str {
    match (info.alive, info.closed) {
        (_, true) => "closed",
        (true, false) => "alive",
        (false, false) => "dead",
    }
}

fn attributes(info: &SessionInfo, tag: u16) -> impl Iterator<Item = String> {
    let found = info.attributes.iter().filter(move |a| a.tag == tag);
    found.map(|a| String::from_utf8_lossy(&a.value).into_owned())
}

/// Notices that the session carries, and its losses by cause.
fn notices(info: &SessionInfo) -> Vec<String> {
    let mut texts: Vec<_> = attributes(info, tag::NOTICE).collect();
    for (cause, lost) in Cause::ALL.iter().zip(lost_by_cause(info)) {
        if lost > 0 {
            texts.push(format!("{} events lost: {}", count(lost), cause.name()));
        }
    }
    if info.schema_incomplete {
        texts.push(SCHEMA_INCOMPLETE.to_owned());
    }
    texts
}

fn lost_by_cause(info: &SessionInfo) -> Vec<u64> {
    let mut lost = info.lost.to_vec();
    for ring in &info.rings {
        lost.iter_mut()
            .zip(ring.lost)
            .for_each(|(sum, n)| *sum = sum.saturating_add(n));
    }
    lost
}

/// A process that is not traced, with its reason.
fn off_as_json(off: &notes::OffNote) -> serde_json::Value {
    let head = Head {
        pid: Some(off.pid),
        ..Head::default()
    };
    json::object(
        "process",
        &head,
        json!({"state": "off", "reason": off.reason}),
    )
}

/// What was removed in a directory before it was read.
fn removals_as_json(directory: &DirectoryRemovals) -> serde_json::Value {
    let last = directory.last.iter().map(|removed| {
        json!({
            "session": Uuid(removed.session).to_string(),
            "pid_in_namespace": removed.pid,
            "events": removed.events,
            "at_least": removed.inexact != 0,
            "removed_ts_ns": json::ts_ns(Some(removed.removed_ns)),
        })
    });
    let fields = json!({
        "state": "removed",
        "directory": directory.directory.display().to_string(),
        "sessions": directory.removals.sessions,
        "events": directory.removals.events,
        "at_least": directory.removals.at_least,
        "starts_refused": directory.removals.starts_refused,
        "changed_ts_ns": json::ts_ns(Some(directory.changed_ns)),
        "last": last.collect::<Vec<_>>(),
    });
    json::object("removals", &Head::default(), fields)
}

fn as_json(Listed { info, pid_here, .. }: &Listed) -> serde_json::Value {
    let names = Cause::ALL.iter().map(|cause| cause.name());
    let fields = json!({
        "path": info.path.display().to_string(),
        "pid_in_namespace": info.pid,
        "state": state(info),
        "ending": info.ending.map(endings::as_json),
        "mode": info.mode.name(),
        "clock": info.clock.name(),
        "rings": info.rings.len(),
        "fill_percent": info.fill_percent(),
        "allocated_bytes": info.allocated_bytes,
        "lost": info.lost_total(),
        "lost_by_cause": json::by_cause(names.zip(lost_by_cause(info))),
        "name": info.name,
        "started_ts_ns": json::ts_ns(Some(info.started_real_ns)),
        "schema_incomplete": info.schema_incomplete,
        "notices": attributes(info, tag::NOTICE).collect::<Vec<_>>(),
        "tags": attributes(info, tag::TAG).collect::<Vec<_>>(),
    });
    json::object("session", &Head::of_info(info, *pid_here), fields)
}
