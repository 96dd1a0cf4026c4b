//! `report`: how often, and how long.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use ringmark_decoder::{Dump, FunctionTimes, Stats, TypeCount};

use crate::calls::CallOptions;
use crate::function_table;
use crate::input::{self, Files};
use crate::output::units::{count, duration, size};
use crate::output::{Exit, Failure, Sink, Style, Table, printable};

/// Count events and calls, and sum up their durations
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    files: Files,
    #[command(flatten)]
    calls: CallOptions,
    /// Compare the functions of FILE with those of this dump
    #[arg(long, value_name = "FILE")]
    diff: Option<PathBuf>,
    /// One JSON object per function and per event type
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        let dump = self.files.read()?;
        let functions = function_table::times(&dump, &self.calls)?;
        let mut out = if self.json {
            Sink::direct()
        } else {
            Sink::paged()
        };
        match &self.diff {
            Some(other) => self.compare(&functions, other, &mut out)?,
            None => self.show(&functions, &dump, &mut out)?,
        }
        out.finish()?;
        Ok(Exit::lost_if(!dump.verify().is_clean()))
    }

    fn compare(
        &self,
        before: &[FunctionTimes],
        other: &Path,
        out: &mut Sink,
    ) -> anyhow::Result<()> {
        let other = input::read(&[other.to_owned()])?;
        let after = function_table::times(&other, &self.calls)?;
        let changes = function_table::changes(before, &after);
        if changes.is_empty() {
            return Err(Failure::unreadable("--diff: neither dump has function records").into());
        }
        if self.json {
            let mut lines = changes.iter().map(function_table::change_json);
            return Ok(lines.try_for_each(|line| writeln!(out, "{line}"))?);
        }
        Ok(function_table::changes_table(&changes).write(out, Style::detect())?)
    }

    fn show(&self, functions: &[FunctionTimes], dump: &Dump, out: &mut Sink) -> anyhow::Result<()> {
        let rows = rows(dump);
        if self.json {
            let lines = functions.iter().map(function_table::json);
            let mut lines = lines.chain(rows.iter().map(Row::json));
            return Ok(lines.try_for_each(|line| writeln!(out, "{line}"))?);
        }
        if !functions.is_empty() {
            function_table::table(functions).write(out, Style::detect())?;
        }
        if !functions.is_empty() && !rows.is_empty() {
            writeln!(out)?;
        }
        if functions.is_empty() || !rows.is_empty() {
            table(&rows).write(out, Style::detect())?;
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

/// One row per event type, functions left out: those that took longest first, then the most frequent.
pub(crate) fn rows(dump: &Dump) -> Vec<Row> {
    let mut rows: BTreeMap<_, Row> = BTreeMap::new();
    let types = Stats::collect(dump.events()).types.into_iter();
    for of_type in types.filter(|of_type| of_type.ty.function.is_none()) {
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
            "v": ringmark_decoder::JSON_VERSION,
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
