//! The table of hosts that `report`, `stat` and `verify` print where there are several.

use ringmark_decoder::{Dump, HostFigures, Stamper};
use serde_json::json;

use crate::output::json;
use crate::output::units::count;
use crate::output::{Table, printable};

/// The table; `None`: all sessions ran on one host.
pub(crate) fn table(dump: &Dump) -> Option<Table> {
    if !dump.has_several_hosts() {
        return None;
    }
    let mut table = Table::new(&[
        "HOST",
        ">PROCESSES",
        ">EVENTS",
        ">LOST",
        "FIRST SEEN",
        "LAST SEEN",
    ]);
    for host in dump.hosts() {
        table.row(vec![
            name(&host.host),
            count(host.processes),
            count(host.events),
            count(host.lost),
            moment(host.first_ns),
            moment(host.last_ns),
        ]);
    }
    Some(table)
}

/// The figures of all hosts as a JSON array.
pub(crate) fn array(dump: &Dump) -> serde_json::Value {
    dump.hosts().iter().map(object).collect()
}

fn object(host: &HostFigures) -> serde_json::Value {
    let name = String::from_utf8_lossy(&host.host);
    json!({
        "host": (!name.is_empty()).then_some(name),
        "processes": host.processes,
        "events": host.events,
        "lost": host.lost,
        "first_ts_ns": json::ts_ns(host.first_ns),
        "last_ts_ns": json::ts_ns(host.last_ns),
    })
}

/// A name for a cell.
pub(crate) fn name(bytes: &[u8]) -> String {
    match bytes {
        [] => "-".to_owned(),
        bytes => printable(&String::from_utf8_lossy(bytes)),
    }
}

/// A moment for a cell, to the millisecond: `2026-01-31T12:00:00.250Z`.
pub(crate) fn moment(ns: Option<u64>) -> String {
    let Some(ns) = ns else {
        return "-".to_owned();
    };
    let stamp = Stamper::default().stamp(ns)[..23].to_vec();
    format!("{}Z", String::from_utf8_lossy(&stamp))
}
