//! The tables of functions that `report` prints.

use std::collections::HashMap;

use ringmark_decoder::{Dump, FunctionTimes, Output, Profile, Step};

use crate::calls::{self, CallOptions};
use crate::output::units::{count, duration};
use crate::output::{Failure, Table, printable};

/// Times of every function in a dump.
///
/// # Errors
/// The tracer that the options name is not there.
pub(crate) fn times(dump: &Dump, options: &CallOptions) -> Result<Vec<FunctionTimes>, Failure> {
    let mut profile = Profile::default();
    calls::walk(dump, options, |item, steps, _| {
        let Output::Event(event) = item else { return };
        for step in steps {
            if let Step::Left(call) | Step::Whole(call) = step {
                profile.add(event.session, call);
            }
        }
    })?;
    Ok(profile.finish())
}

fn text(bytes: &[u8]) -> String {
    printable(&String::from_utf8_lossy(bytes))
}

/// One row per function: those with the most time of their own first.
pub(crate) fn table(functions: &[FunctionTimes]) -> Table {
    let mut table = Table::new(&[
        ">CALLS", ">TOTAL", ">SELF", ">AVG", ">P50", ">P99", ">MAX", "FUNCTION", "MODULE",
    ]);
    for f in functions {
        let times = [
            f.total_ns,
            f.self_ns,
            f.mean_ns(),
            f.percentile_ns(50),
            f.percentile_ns(99),
            f.percentile_ns(100),
        ];
        let mut cells = vec![count(f.calls)];
        cells.extend(times.map(duration));
        cells.extend([text(&f.name), text(&f.module)]);
        table.row(cells);
    }
    table
}

/// A function as a JSON object.
pub(crate) fn json(f: &FunctionTimes) -> serde_json::Value {
    serde_json::json!({
        "v": ringmark_decoder::JSON_VERSION,
        "kind": "function",
        "name": String::from_utf8_lossy(&f.name),
        "module": String::from_utf8_lossy(&f.module),
        "calls": f.calls,
        "not_returned": f.not_returned,
        "total_ns": f.total_ns,
        "self_ns": f.self_ns,
        "mean_ns": f.mean_ns(),
        "p50_ns": f.percentile_ns(50),
        "p99_ns": f.percentile_ns(99),
        "max_ns": f.percentile_ns(100),
    })
}

/// A function in two dumps; either may lack it.
#[derive(Debug)]
pub(crate) struct Change {
    name: String,
    module: String,
    calls: [u64; 2],
    self_ns: [u64; 2],
    mean_ns: [u64; 2],
}

/// What differs, the largest change of own time first.
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
                });
                changes.len() - 1
            });
            let change = &mut changes[place];
            change.calls[side] = f.calls;
            change.self_ns[side] = f.self_ns;
            change.mean_ns[side] = f.mean_ns();
        }
    }
    changes.sort_by_key(|c| std::cmp::Reverse(c.self_ns[0].abs_diff(c.self_ns[1])));
    changes
}

/// `+1.2 ms`, `-3 us`, `0`.
fn signed(pair: [u64; 2]) -> String {
    let difference = duration(pair[0].abs_diff(pair[1]));
    match pair[0].cmp(&pair[1]) {
        std::cmp::Ordering::Less => format!("+{difference}"),
        std::cmp::Ordering::Equal => "0".to_owned(),
        std::cmp::Ordering::Greater => format!("-{difference}"),
    }
}

/// Before, after and difference.
pub(crate) fn changes_table(changes: &[Change]) -> Table {
    let mut table = Table::new(&[
        ">CALLS A", ">CALLS B", ">SELF A", ">SELF B", ">CHANGE", ">AVG A", ">AVG B", "FUNCTION",
        "MODULE",
    ]);
    for c in changes {
        table.row(vec![
            count(c.calls[0]),
            count(c.calls[1]),
            duration(c.self_ns[0]),
            duration(c.self_ns[1]),
            signed(c.self_ns),
            duration(c.mean_ns[0]),
            duration(c.mean_ns[1]),
            c.name.clone(),
            c.module.clone(),
        ]);
    }
    table
}

/// A change as a JSON object.
pub(crate) fn change_json(c: &Change) -> serde_json::Value {
    serde_json::json!({
        "v": ringmark_decoder::JSON_VERSION,
        "kind": "function_change",
        "name": c.name,
        "module": c.module,
        "calls": c.calls,
        "self_ns": c.self_ns,
        "mean_ns": c.mean_ns,
    })
}
