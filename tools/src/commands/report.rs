//! `report`: how often, and how long.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use ringmark_decoder::{Dump, Filter, FunctionTimes, Gathered, JSON_VERSION, Stats, TypeCount};

use crate::input::{rings, trace_files};
use crate::output::file::DEFAULT_FILE;
use crate::output::units::{count, duration, size};
use crate::output::{Exit, Failure, Sink, Style, Table, columns, note, printable};
use crate::profile_table::{self, Profile};
use crate::tables::calls::CallOptions;
use crate::tables::function_table;
use crate::tracing::tracer_session::TracerSession;

/// Count events and calls, and sum up their durations
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Functions are listed with the most time of their own (SELF) first. A tracer of kind 'profile' counts
in the process and writes no records: -p asks for what it has gathered, a dump holds that as of its
last stop and of the program's exit (a process that was killed left nothing). Its percentiles, marked
with ~, are taken from a histogram by powers of two and may be wrong by a factor of up to two.

Examples:
  ringmark report run.rmk --diff before.rmk
  ringmark report /var/lib/ringmark --from 2026-01-31T12:00:00Z --to 2026-01-31T13:00:00Z
  ringmark report -p 812 --tracer profile")]
pub(crate) struct Args {
    /// Dumps to read together; '-' is standard input
    #[arg(value_name = "FILE", default_value = DEFAULT_FILE, conflicts_with = "pid")]
    files: Vec<PathBuf>,
    /// Report what is in the rings of a process now, and what its profile tracers have gathered
    #[arg(short, long, value_parser = clap::value_parser!(u32).range(1..), conflicts_with = "diff")]
    pid: Option<u32>,
    #[command(flatten)]
    calls: CallOptions,
    /// Compare the functions of FILE with those of this dump, at the same times
    #[arg(long, value_name = "FILE")]
    diff: Option<PathBuf>,
    /// One JSON object per function and per event type
    #[arg(long)]
    json: bool,
    /// Names at full length, also where the terminal is narrower
    #[arg(long)]
    wide: bool,
}

/// What is reported.
struct Found {
    /// `None`: only profiles are.
    dump: Option<Dump>,
    profiles: Vec<Profile>,
    is_whole: bool,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        let found = match self.pid {
            Some(pid) => self.ask(pid)?,
            None => self.read()?,
        };
        let functions = match &found.dump {
            Some(dump) => function_table::times(dump, &self.calls)?,
            None => Vec::new(),
        };
        let mut out = if self.json {
            Sink::direct()
        } else {
            Sink::paged()
        };
        match &self.diff {
            Some(other) => self.compare(&functions, other, &mut out)?,
            None => self.show(&functions, &found, &mut out)?,
        }
        out.finish()?;
        Ok(Exit::lost_if(!found.is_whole))
    }

    fn read(&self) -> anyhow::Result<Found> {
        let dump = trace_files::read_for(&self.files, &self.calls.filter()?)?;
        Ok(Found {
            profiles: profile_table::in_dump(&dump, &self.calls)?,
            is_whole: dump.verify().is_clean(),
            dump: Some(dump),
        })
    }

    /// Pages of living rings that a recorder has taken already are not missing.
    fn ask(&self, pid: u32) -> anyhow::Result<Found> {
        // Whom we may only watch, we do not ask.
        let target = TracerSession::of(pid).ok().flatten();
        let ask = |target| profile_table::of_process(&target, &self.calls);
        let profiles = target.map_or(Ok(Vec::new()), ask)?;
        let uncounted = profiles.iter().map(|profile| profile.uncounted).max();
        if let Some(calls) = uncounted.filter(|calls| *calls > 0) {
            note(&format!("no memory to count {calls} calls"));
        }
        let mut is_whole = uncounted.unwrap_or(0) == 0;
        if self.calls.tracer().is_some() && !profiles.is_empty() {
            self.calls.require_all()?;
            return Ok(Found {
                dump: None,
                profiles,
                is_whole,
            });
        }
        let dump = rings::snapshot(pid)?;
        let verified = dump.verify();
        is_whole &= verified.lost == 0 && verified.damage.is_empty();
        Ok(Found {
            dump: Some(dump),
            profiles,
            is_whole,
        })
    }

    fn compare(
        &self,
        before: &[FunctionTimes],
        other: &Path,
        out: &mut Sink,
    ) -> anyhow::Result<()> {
        let other = trace_files::read_for(&[other.to_owned()], &self.calls.filter()?)?;
        let after = function_table::times(&other, &self.calls)?;
        let changes = function_table::changes(before, &after);
        if changes.is_empty() {
            return Err(Failure::unreadable("--diff: neither dump has function records").into());
        }
        if self.json {
            let mut lines = changes.iter().map(function_table::change_json);
            return Ok(lines.try_for_each(|line| writeln!(out, "{line}"))?);
        }
        let mut table = function_table::changes_table(&changes);
        table.fit(self.columns());
        Ok(table.write(out, Style::detect())?)
    }

    fn columns(&self) -> Option<usize> {
        columns(io::stdout()).filter(|_| !self.wide)
    }

    fn show(
        &self,
        functions: &[FunctionTimes],
        found: &Found,
        out: &mut Sink,
    ) -> anyhow::Result<()> {
        let filter = self.calls.filter()?;
        let rows = found.dump.as_ref().map(|dump| rows(dump, &filter));
        let rows = rows.unwrap_or_default();
        if self.json {
            let lines = functions.iter().map(function_table::json);
            let profiles = found.profiles.iter().flat_map(Profile::json);
            let mut lines = lines.chain(profiles).chain(rows.iter().map(Row::json));
            return Ok(lines.try_for_each(|line| writeln!(out, "{line}"))?);
        }
        let mut tables = Vec::new();
        if !functions.is_empty() {
            tables.push(function_table::table(functions));
        }
        tables.extend(found.profiles.iter().map(Profile::table));
        if tables.is_empty() || !rows.is_empty() {
            tables.push(table(&rows));
        }
        for (place, table) in tables.iter_mut().enumerate() {
            if place > 0 {
                writeln!(out)?;
            }
            table.fit(self.columns());
            table.write(out, Style::detect())?;
        }
        Ok(())
    }
}

/// Events of one name, target and kind, over all sessions.
#[derive(Debug, Default)]
pub(crate) struct Row {
    name: String,
    target: String,
    kind: &'static str,
    events: u64,
    payload_bytes: u64,
    /// Of finished spans only.
    took: Option<(u64, u64)>,
}

/// One row per type of the events that pass, functions and their profiles left out: those that took
/// longest first, then the most frequent.
pub(crate) fn rows(dump: &Dump, filter: &Filter) -> Vec<Row> {
    let mut rows: BTreeMap<_, Row> = BTreeMap::new();
    let events = dump.events().filter(|item| filter.passes_item(item));
    let types = Stats::collect(events).types.into_iter();
    for of_type in types.filter(|of_type| {
        let ty = of_type.ty;
        ty.function.is_none() && !Gathered::is_told_by(&ty.name, &ty.target)
    }) {
        let key = (&of_type.ty.name, &of_type.ty.target, of_type.ty.kind());
        rows.entry(key).or_default().add(&of_type);
    }
    let mut rows: Vec<_> = rows.into_values().collect();
    rows.sort_by_key(|row| std::cmp::Reverse((row.took, row.events)));
    rows
}

impl Row {
    fn add(&mut self, more: &TypeCount<'_>) {
        self.name = String::from_utf8_lossy(&more.ty.name).into_owned();
        self.target = String::from_utf8_lossy(&more.ty.target).into_owned();
        self.kind = more.ty.kind();
        self.events += more.events;
        self.payload_bytes += more.payload_bytes;
        if self.kind == "span" {
            let (total, max) = self.took.unwrap_or_default();
            let max = max.max(more.duration_ns_max);
            self.took = Some((total.saturating_add(more.duration_ns), max));
        }
    }

    fn json(&self) -> serde_json::Value {
        serde_json::json!({
            "v": JSON_VERSION,
            "name": self.name,
            "target": self.target,
            "kind": self.kind,
            "events": self.events,
            "payload_bytes": self.payload_bytes,
            "total_ns": self.took.map(|(total, _)| total),
            "mean_ns": self.took.map(|(total, _)| total / self.events.max(1)),
            "max_ns": self.took.map(|(_, max)| max),
        })
    }
}

/// The rows for people.
pub(crate) fn table(rows: &[Row]) -> Table {
    let mut table = Table::new(&[
        ">EVENTS", ">PAYLOAD", ">TOTAL", ">MEAN", ">MAX", "KIND", "NAME",
    ]);
    for row in rows {
        let mut cells = vec![count(row.events), size(row.payload_bytes)];
        match row.took {
            Some((total, max)) => {
                cells.extend([total, total / row.events.max(1), max].map(duration))
            }
            None => cells.extend(["-"; 3].map(str::to_owned)),
        }
        cells.push(row.kind.to_owned());
        cells.push(printable(&row.name));
        table.row(cells);
    }
    table
}
