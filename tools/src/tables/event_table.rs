//! The table of event types that `report`, `stat` and `run` print: how often, how large, how long.

use std::collections::BTreeMap;

use ringmark_decoder::{Dump, Filter, ProfiledFunction, Stats, TypeCount};

use super::json_row::{self, JsonRow};
use crate::output::json::Head;
use crate::output::units::{count, duration, size};
use crate::output::{Table, printable};

/// Events of one name, target and kind, over all sessions.
#[derive(Debug, Default)]
pub(crate) struct EventRow {
    name: String,
    target: String,
    kind: &'static str,
    events: u64,
    payload_bytes: u64,
    /// Durations; known for finished spans only.
    took: Option<Took>,
}

/// Durations of all spans of a type, in ns. The order of the fields is that of the rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Took {
    total_ns: u64,
    max_ns: u64,
}

/// One row per type of the events that pass, functions and their profiles left out: those that took
/// longest first, then the most frequent.
pub(crate) fn rows(dump: &Dump, filter: &Filter) -> Vec<EventRow> {
    let mut rows: BTreeMap<_, EventRow> = BTreeMap::new();
    let events = dump.events().filter(|item| filter.passes_item(item));
    let types = Stats::collect(events).types.into_iter();
    for of_type in types.filter(|of_type| {
        let ty = of_type.ty;
        ty.function.is_none() && !ProfiledFunction::is_event(&ty.name, &ty.target)
    }) {
        let key = (&of_type.ty.name, &of_type.ty.target, of_type.ty.kind());
        rows.entry(key).or_default().add(&of_type);
    }
    let mut rows: Vec<_> = rows.into_values().collect();
    rows.sort_by_key(|row| std::cmp::Reverse((row.took, row.events)));
    rows
}

impl EventRow {
    fn add(&mut self, more: &TypeCount<'_>) {
        self.name = String::from_utf8_lossy(&more.ty.name).into_owned();
        self.target = String::from_utf8_lossy(&more.ty.target).into_owned();
        self.kind = more.ty.kind();
        self.events += more.events;
        self.payload_bytes += more.payload_bytes;
        if self.kind == "span" {
            let took = self.took.get_or_insert_default();
            took.total_ns = took.total_ns.saturating_add(more.duration_ns);
            took.max_ns = took.max_ns.max(more.duration_ns_max);
        }
    }

    fn mean_ns(&self) -> Option<u64> {
        self.took.map(|took| took.total_ns / self.events.max(1))
    }

    /// The row as a JSON object.
    pub(crate) fn as_json(&self, head: &Head) -> serde_json::Value {
        json_row::object(
            head,
            &JsonRow {
                of: self.kind,
                name: &self.name,
                target: &self.target,
                count: self.events,
                payload_bytes: Some(self.payload_bytes),
                total_ns: self.took.map(|took| took.total_ns),
                mean_ns: self.mean_ns(),
                max_ns: self.took.map(|took| took.max_ns),
                ..JsonRow::default()
            },
        )
    }
}

/// The rows as a table.
pub(crate) fn table(rows: &[EventRow]) -> Table {
    let mut table = Table::new(&[
        ">EVENTS", ">PAYLOAD", ">TOTAL", ">MEAN", ">MAX", "KIND", "NAME",
    ]);
    for row in rows {
        let mut cells = vec![count(row.events), size(row.payload_bytes)];
        match row.took {
            Some(took) => {
                let mean_ns = row.mean_ns().unwrap_or(0);
                cells.extend([took.total_ns, mean_ns, took.max_ns].map(duration));
            }
            None => cells.extend(["-"; 3].map(str::to_owned)),
        }
        cells.push(row.kind.to_owned());
        cells.push(printable(&row.name));
        table.row(cells);
    }
    table
}
