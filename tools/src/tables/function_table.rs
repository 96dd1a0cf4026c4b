//! Functions in two traces: what `report --diff` prints.

use std::collections::HashMap;

use ringmark_decoder::FunctionTimes;

use crate::output::json::Head;
use crate::output::units::{count, duration};
use crate::output::{Table, json, printable};

fn text(bytes: &[u8]) -> String {
    printable(&String::from_utf8_lossy(bytes))
}

/// A function in two traces; one of them may lack it.
#[derive(Debug)]
pub(crate) struct Change {
    name: String,
    module: String,
    calls: [u64; 2],
    self_ns: [u64; 2],
    mean_ns: [u64; 2],
    /// Whether the side has durations, or no calls at all.
    is_timed: [bool; 2],
}

impl Change {
    fn known(&self, pair: [u64; 2], side: usize) -> Option<u64> {
        self.is_timed[side].then(|| pair[side])
    }

    fn time(&self, pair: [u64; 2], side: usize) -> String {
        self.known(pair, side)
            .map_or_else(|| "-".to_owned(), duration)
    }
}

/// The functions of both sides, the largest change of own time first.
pub(crate) fn changes(before: &[FunctionTimes], after: &[FunctionTimes]) -> Vec<Change> {
    let mut places = HashMap::new();
    let mut changes: Vec<Change> = Vec::new();
    for (side, functions) in [before, after].into_iter().enumerate() {
        for f in functions {
            let place = *places.entry((&f.module, &f.name)).or_insert_with(|| {
                changes.push(Change {
                    name: text(&f.name),
                    module: text(&f.module),
                    calls: [0; 2],
                    self_ns: [0; 2],
                    mean_ns: [0; 2],
                    is_timed: [true; 2],
                });
                changes.len() - 1
            });
            let change = &mut changes[place];
            change.calls[side] = f.calls;
            change.self_ns[side] = f.self_ns;
            change.mean_ns[side] = f.durations.mean_ns();
            change.is_timed[side] = f.is_timed();
        }
    }
    changes.sort_by_key(|c| std::cmp::Reverse(c.self_ns[0].abs_diff(c.self_ns[1])));
    changes
}

/// `+1.2 ms`, `-3 us`, `0`; `-` where a side is not known.
fn signed(pair: [u64; 2], is_known: [bool; 2]) -> String {
    if is_known != [true; 2] {
        return "-".to_owned();
    }
    let difference = duration(pair[0].abs_diff(pair[1]));
    match pair[0].cmp(&pair[1]) {
        std::cmp::Ordering::Less => format!("+{difference}"),
        std::cmp::Ordering::Equal => "0".to_owned(),
        std::cmp::Ordering::Greater => format!("-{difference}"),
    }
}

/// The changes as a table: before, after, difference.
pub(crate) fn changes_table(changes: &[Change]) -> Table {
    let mut table = Table::new(&[
        ">CALLS A", ">CALLS B", ">SELF A", ">SELF B", ">CHANGE", ">MEAN A", ">MEAN B", "NAME",
        "TARGET",
    ]);
    for c in changes {
        table.row(vec![
            count(c.calls[0]),
            count(c.calls[1]),
            c.time(c.self_ns, 0),
            c.time(c.self_ns, 1),
            signed(c.self_ns, c.is_timed),
            c.time(c.mean_ns, 0),
            c.time(c.mean_ns, 1),
            c.name.clone(),
            c.module.clone(),
        ]);
    }
    table
}

/// A change as a JSON object.
pub(crate) fn change_as_json(c: &Change) -> serde_json::Value {
    let fields = serde_json::json!({
        "name": c.name,
        "target": c.module,
        "count_a": c.calls[0],
        "count_b": c.calls[1],
        "self_ns_a": c.known(c.self_ns, 0),
        "self_ns_b": c.known(c.self_ns, 1),
        "mean_ns_a": c.known(c.mean_ns, 0),
        "mean_ns_b": c.known(c.mean_ns, 1),
    });
    json::object("function_change", &Head::default(), fields)
}
