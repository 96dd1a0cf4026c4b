//! `list`: sessions, living and dead, what they do, and why a process is not traced.

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use ringmark_console::extension::place_parser;
use ringmark_console::json::{Head, JsonOption, Line};
use ringmark_console::units::{count, duration, parse_duration, size};
use ringmark_console::wide::WideOption;
use ringmark_console::{Exit, Sink, Style, Table, json, note, printable};
use ringmark_format::Uuid;
use ringmark_format::attribute::tag;
use ringmark_format::counters::Cause;
use ringmark_format::open_span::RING_WAIT_NS;
use ringmark_reader::{DirectoryRemovals, ReaderError, SessionInfo, clean, find, notes};
use serde_json::json;

use crate::commands::listed;
use crate::commands::listed::{Listed, by_process};
use crate::input::notices::SCHEMA_INCOMPLETE;
use crate::input::trace_files;
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

-v adds the rings of each session: how full they are, how many events come, how
far back they reach (WINDOW), how long they last at the present rate (LASTS),
what was lost, and which ring= keeps the last minute. It says where they are
streamed to, how the session ended, and what its threads did last and have open.

With FILE, the sessions that are in trace files or in a store. -v adds where
they come from and what their threads did last.

Examples:
  ringmark list
  ringmark list -v -p 812 --interval 5s
  ringmark list /var/lib/ringmark --host 'web-*'")]
pub(crate) struct Args {
    /// List the sessions in these trace files and stores instead; '-' is standard input
    #[arg(value_name = "FILE", value_parser = place_parser())]
    files: Vec<PathBuf>,
    /// Only the sessions of this process
    #[arg(short, long, value_parser = crate::options::process::parse_process)]
    pid: Option<u32>,
    #[command(flatten)]
    chosen: SessionOptions,
    #[command(flatten)]
    json: JsonOption,
    #[command(flatten)]
    lines: LinesOption,
    #[command(flatten)]
    wide: WideOption,
    /// Say more of each session below the table
    #[arg(short, long)]
    verbose: bool,
    /// With -v: how long events are counted for their rates
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = parse_duration)]
    interval: Duration,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        if !self.files.is_empty() {
            return self.of_files();
        }
        self.chosen.require_none()?;
        let interval = self.verbose.then_some(self.interval);
        let (sessions, errors) = listed::sessions(self.pid, interval)?;
        let others = self.others();
        let mut out = self.sink();
        if self.json.is_on() {
            let objects = sessions.iter().map(as_json);
            let objects = objects.chain(others.notes.iter().map(off_as_json));
            for object in objects.chain(others.removals.iter().map(removals_as_json)) {
                writeln!(out, "{}", Line(object))?;
            }
        } else {
            let shown = (self.columns(), self.lines);
            write_table(&mut out, &sessions, &others.notes, shown)?;
            for listed in &sessions {
                for text in notices(&listed.info) {
                    writeln!(out, "{}: {}", listed.pids(), printable(&text))?;
                }
                listed.write_details(&mut out, self.columns())?;
            }
            // What a person removed, `clean` has told.
            let removals = others.removals.iter();
            for directory in removals.filter(|directory| !directory.removals.is_by_hand()) {
                writeln!(out, "{}", printable(&directory.to_string()))?;
            }
        }
        out.finish()?;
        for error in errors.iter().chain(&others.refused) {
            note(&printable(&error.to_string()));
        }
        if sessions.is_empty() && !others.refused.is_empty() {
            return Ok(Exit::NO_TARGET);
        }
        Ok(Exit::FINE)
    }

    fn columns(&self) -> Option<usize> {
        self.wide.columns().filter(|_| !self.json.is_on())
    }

    fn sink(&self) -> Sink {
        match self.json.is_on() {
            true => Sink::direct(),
            false => Sink::paged().within(self.columns()),
        }
    }

    /// What is there beside sessions; nothing where one process is asked for.
    fn others(&self) -> Others {
        match self.pid {
            Some(_) => Others::default(),
            None => Others {
                notes: notes::off_notes(),
                removals: clean::removals(),
                refused: find::refused(),
            },
        }
    }

    /// Lists the sessions in trace files.
    fn of_files(&self) -> anyhow::Result<Exit> {
        let dump = trace_files::read_sessions(&self.files, &self.chosen.choice(self.pid))?;
        let mut out = self.sink();
        if self.json.is_on() {
            for session in &dump.sessions[..self.lines.of(dump.sessions.len())] {
                let object = session_table::as_json(session);
                writeln!(out, "{}", Line(object))?;
            }
        } else {
            let mut table = session_table::table(&dump);
            self.lines.cut(&mut table);
            table.fit(self.columns());
            table.write(&mut out, Style::detect())?;
            for session in dump.sessions.iter().filter(|_| self.verbose) {
                writeln!(out)?;
                session_table::write_facts(&mut out, session)?;
            }
            if self.verbose {
                out.write_all(last_words::text(&dump, Show::Short).as_bytes())?;
            }
        }
        out.finish()?;
        Ok(Exit::lost_if(!dump.damage.is_empty()))
    }
}

/// What is listed beside sessions.
#[derive(Debug, Default)]
struct Others {
    /// Processes that are not traced.
    notes: Vec<notes::OffNote>,
    removals: Vec<DirectoryRemovals>,
    /// Directories that are not read.
    refused: Vec<ReaderError>,
}

fn write_table(
    out: &mut Sink,
    sessions: &[Listed],
    notes: &[notes::OffNote],
    (columns, lines): (Option<usize>, LinesOption),
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
    lines.cut(&mut table);
    table.fit(columns);
    table.write(out, style)?;
    for line in groups(sessions) {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

/// A line for each process that has several sessions: how many, and what they take together.
fn groups(sessions: &[Listed]) -> Vec<String> {
    let groups = by_process(sessions).into_iter();
    let several = groups.filter(|places| places.len() > 1);
    let line = |places: Vec<usize>| {
        let bytes = places
            .iter()
            .map(|place| sessions[*place].info.allocated_bytes);
        let bytes = bytes.fold(0, u64::saturating_add);
        let pids = sessions[places[0]].pids();
        format!("{pids}: {} sessions, {}", places.len(), size(bytes))
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
        listed.pids(),
        state(info).to_owned(),
        info.mode.name().to_owned(),
        info.rings.len().to_string(),
        format!("{} %", info.fill_percent()),
        size(info.allocated_bytes),
        count(info.lost_total()),
        printable(&info.name),
    ]
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

/// Notices that the session carries, its losses by cause, and the longest wait for a ring.
fn notices(info: &SessionInfo) -> Vec<String> {
    let mut texts: Vec<_> = attributes(info, tag::NOTICE).collect();
    for (cause, lost) in Cause::ALL.iter().zip(lost_by_cause(info)) {
        if lost > 0 {
            texts.push(format!("{} events lost: {}", count(lost), cause.name()));
        }
    }
    let wait_ns = info.rings.iter().map(|ring| ring.wait_ns).max();
    if let Some(ns) = wait_ns.filter(|ns| *ns >= RING_WAIT_NS) {
        texts.push(format!(
            "a thread waited {} for its ring, at its first event",
            duration(ns)
        ));
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
        "by_hand": directory.removals.by_hand,
        "events": directory.removals.events,
        "at_least": directory.removals.at_least,
        "starts_refused": directory.removals.starts_refused,
        "changed_ts_ns": json::ts_ns(Some(directory.changed_ns)),
        "last": last.collect::<Vec<_>>(),
    });
    json::object("removals", &Head::default(), fields)
}

fn as_json(listed: &Listed) -> serde_json::Value {
    let info = &listed.info;
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
        "stream": listed.stream.as_ref().map(listed::stream_as_json),
        "threads": listed.threads_as_json(),
    });
    json::object("session", &Head::of_info(info, listed.pid_here), fields)
}
