//! `report`: how often, and how long.

use std::collections::BTreeMap;
use std::io::Write;

use ringmark_decoder::{Dump, Stats, TypeCount};

use crate::input::Files;
use crate::output::units::{count, duration, size};
use crate::output::{Exit, Sink, Style, Table, printable};

/// Count events and sum up durations per event type
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    files: Files,
    /// One JSON object per event type
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        let dump = self.files.read()?;
        let rows = rows(&dump);
        let mut out = if self.json {
            Sink::direct()
        } else {
            Sink::paged()
        };
        if self.json {
            rows.iter()
                .try_for_each(|row| writeln!(out, "{}", row.json()))?;
        } else {
            table(&rows).write(&mut out, Style::detect())?;
        }
        out.finish()?;
        Ok(Exit::lost_if(!dump.verify().is_clean()))
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

/// One row per event type: those that took longest first, then the most frequent.
pub(crate) fn rows(dump: &Dump) -> Vec<Row> {
    let mut rows: BTreeMap<_, Row> = BTreeMap::new();
    for of_type in Stats::collect(dump.events()).types {
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
