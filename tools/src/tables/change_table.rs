//! Functions in two traces: what `report --diff` prints.

use std::cmp::Ordering;

use ringmark_decoder::FunctionChange;

use crate::output::json::Head;
use crate::output::units::{count, duration};
use crate::output::{Table, json, printable};

fn text(bytes: &[u8]) -> String {
    printable(&String::from_utf8_lossy(bytes))
}

fn time(ns: Option<u64>) -> String {
    ns.map_or_else(|| "-".to_owned(), duration)
}

/// `+1.2 ms`, `-3 us`, `0`; `-` where a side is not known.
fn signed(pair: [Option<u64>; 2]) -> String {
    let [Some(before), Some(after)] = pair else {
        return "-".to_owned();
    };
    let difference = duration(before.abs_diff(after));
    match before.cmp(&after) {
        Ordering::Less => format!("+{difference}"),
        Ordering::Equal => "0".to_owned(),
        Ordering::Greater => format!("-{difference}"),
    }
}

/// The changes as a table: before, after, difference.
pub(crate) fn table(changes: &[FunctionChange]) -> Table {
    let mut table = Table::new(&[
        ">CALLS A", ">CALLS B", ">SELF A", ">SELF B", ">CHANGE", ">MEAN A", ">MEAN B", "NAME",
        "TARGET",
    ]);
    for change in changes {
        table.row(vec![
            count(change.calls[0]),
            count(change.calls[1]),
            time(change.self_ns[0]),
            time(change.self_ns[1]),
            signed(change.self_ns),
            time(change.mean_ns[0]),
            time(change.mean_ns[1]),
            text(&change.name),
            text(&change.module),
        ]);
    }
    table
}

/// A change as a JSON object.
pub(crate) fn as_json(change: &FunctionChange) -> serde_json::Value {
    let fields = serde_json::json!({
        "name": text(&change.name),
        "target": text(&change.module),
        "count_a": change.calls[0],
        "count_b": change.calls[1],
        "self_ns_a": change.self_ns[0],
        "self_ns_b": change.self_ns[1],
        "mean_ns_a": change.mean_ns[0],
        "mean_ns_b": change.mean_ns[1],
    });
    json::object("function_change", &Head::default(), fields)
}
