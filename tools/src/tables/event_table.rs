//! The table of event types that `report` and `run` print: how often, and how large.

use std::collections::BTreeMap;

use ringmark_decoder::{Stats, TypeCount};

use super::json_row::{self, JsonRow};
use crate::options::rows::SortBy;
use ringmark_console::json::Head;
use ringmark_console::units::{count, size};
use ringmark_console::{Table, printable};

/// Events of one name, target and kind, over all sessions.
#[derive(Debug, Default)]
pub(crate) struct EventRow {
    name: String,
    target: String,
    kind: &'static str,
    events: u64,
    payload_bytes: u64,
}

/// One row per type of these events, the most frequent first if no other order is named.
pub(crate) fn rows(events: &Stats<'_>, by: Option<SortBy>) -> Vec<EventRow> {
    let mut rows: BTreeMap<_, EventRow> = BTreeMap::new();
    for of_type in &events.types {
        let key = (
            &of_type.ty.name,
            &of_type.ty.origin.target,
            of_type.ty.kind(),
        );
        rows.entry(key).or_default().add(of_type);
    }
    let mut rows: Vec<_> = rows.into_values().collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.events));
    if let Some(by) = by {
        by.sort(&mut rows, |row| row.name.clone(), |row| (row.events, None));
    }
    rows
}

impl EventRow {
    fn add(&mut self, more: &TypeCount<'_>) {
        self.name = String::from_utf8_lossy(&more.ty.name).into_owned();
        self.target = String::from_utf8_lossy(&more.ty.origin.target).into_owned();
        self.kind = more.ty.kind();
        self.events += more.events;
        self.payload_bytes += more.payload_bytes;
    }

    /// The row as a line of JSON.
    pub(crate) fn as_json(&self, head: &Head) -> String {
        json_row::line(
            head,
            &JsonRow {
                of: self.kind,
                name: &self.name,
                target: &self.target,
                count: self.events,
                payload_bytes: Some(self.payload_bytes),
                ..JsonRow::default()
            },
        )
    }
}

/// The rows as a table.
pub(crate) fn table(rows: &[EventRow]) -> Table {
    let mut table = Table::new(&[">EVENTS", ">PAYLOAD", "KIND", "NAME"]);
    for row in rows {
        table.row(vec![
            count(row.events),
            size(row.payload_bytes),
            row.kind.to_owned(),
            printable(&row.name),
        ]);
    }
    table
}
