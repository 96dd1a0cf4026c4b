//! The table of hosts that `report` and `verify` print where there are several.

use ringmark_decoder::{Dump, HostFigures, Stamper};
use serde_json::json;

use ringmark_console::json;
use ringmark_console::units::count;
use ringmark_console::{Table, host_name, now_ns};

/// The table; `None`: all sessions ran on one host.
pub(crate) fn table(dump: &Dump) -> Option<Table> {
    if !dump.has_several_hosts() {
        return None;
    }
    let hosts = dump.hosts_at(now_ns());
    let columns = COLUMNS.iter().filter(|column| {
        let is_there = |host| (column.cell)(host).is_some();
        column.is_always || hosts.iter().any(is_there)
    });
    let columns: Vec<_> = columns.collect();
    let headings: Vec<_> = columns.iter().map(|column| column.heading).collect();
    let mut table = Table::new(&headings);
    for host in &hosts {
        let cell = |column: &&Column| (column.cell)(host).unwrap_or_else(|| "-".to_owned());
        table.row(columns.iter().map(cell).collect());
    }
    Some(table)
}

/// A column of the table.
struct Column {
    heading: &'static str,
    /// It is there also if no host has anything to show in it.
    is_always: bool,
    /// The cell of a host; `None`: nothing to show.
    cell: fn(&HostFigures) -> Option<String>,
}

impl Column {
    const fn always(heading: &'static str, cell: fn(&HostFigures) -> Option<String>) -> Self {
        Self {
            heading,
            is_always: true,
            cell,
        }
    }

    const fn if_any(heading: &'static str, cell: fn(&HostFigures) -> Option<String>) -> Self {
        Self {
            is_always: false,
            ..Self::always(heading, cell)
        }
    }
}

/// All columns.
const COLUMNS: [Column; 14] = [
    Column::always("HOST", |host| Some(host_name(&host.host))),
    Column::always(">PROCESSES", |host| Some(count(host.processes))),
    Column::always(">EVENTS", |host| Some(count(host.events))),
    Column::always(">LOST", |host| Some(count(host.lost))),
    Column::if_any(">OVERWRITTEN", |host| some(host.overwritten)),
    Column::if_any(">MISSING", |host| some(host.missing)),
    Column::if_any(">REMOVED", |host| some(host.removed)),
    Column::if_any(">LATE", |host| some(host.late)),
    Column::if_any(">UNKNOWN", |host| some(host.unknown)),
    Column::always("FIRST SEEN", |host| Some(moment(host.first_ns))),
    Column::always("LAST SEEN", |host| Some(moment(host.last_ns))),
    Column::if_any("COMPLETE UNTIL", |host| {
        (host.late > 0 || host.unknown > 0).then(|| moment(host.complete_ns))
    }),
    Column::if_any("LOSSES FROM", |host| Some(moment(Some(host.losses_ns?.0)))),
    Column::if_any("LOSSES UNTIL", |host| Some(moment(Some(host.losses_ns?.1)))),
];

/// A number that is shown if it is not 0.
fn some(number: u64) -> Option<String> {
    (number > 0).then(|| count(number))
}

/// The figures of all hosts as a JSON array.
pub(crate) fn array(dump: &Dump) -> serde_json::Value {
    dump.hosts_at(now_ns()).iter().map(object).collect()
}

fn object(host: &HostFigures) -> serde_json::Value {
    let name = String::from_utf8_lossy(&host.host);
    json!({
        "host": (!name.is_empty()).then_some(name),
        "processes": host.processes,
        "events": host.events,
        "lost": host.lost,
        "overwritten": host.overwritten,
        "missing": host.missing,
        "removed": host.removed,
        "late": host.late,
        "unknown": host.unknown,
        "complete_ts_ns": json::ts_ns(host.complete_ns),
        "first_ts_ns": json::ts_ns(host.first_ns),
        "last_ts_ns": json::ts_ns(host.last_ns),
        "lost_from_ts_ns": json::ts_ns(host.losses_ns.map(|losses| losses.0)),
        "lost_until_ts_ns": json::ts_ns(host.losses_ns.map(|losses| losses.1)),
    })
}

/// A moment for a cell, to the millisecond: `2026-01-31T12:00:00.250Z`.
pub(crate) fn moment(ns: Option<u64>) -> String {
    let Some(ns) = ns else {
        return "-".to_owned();
    };
    let stamp = Stamper::default().stamp(ns)[..23].to_vec();
    format!("{}Z", String::from_utf8_lossy(&stamp))
}
