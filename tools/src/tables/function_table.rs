//! The tables of functions that `report` prints.

use std::collections::HashMap;

use ringmark_decoder::{CallCounts, CallTimes, Dump, FunctionTimes, NoEnd, Output, Profile, Step};

use super::calls::{self, CallOptions};
use super::json_row::{self, JsonRow};
use crate::output::json::Head;
use crate::output::units::{count, counted, duration};
use crate::output::{Failure, Table, json, printable};

/// Times of every function in a trace.
///
/// # Errors
/// The tracer that the options name is not there.
pub(crate) fn times(dump: &Dump, options: &CallOptions) -> Result<Vec<FunctionTimes>, Failure> {
    let mut profile = Profile::default();
    let open = calls::walk(dump, options, |item, steps, _| {
        let Output::Event(event) = item else { return };
        for step in steps {
            match step {
                Step::Left(call) | Step::Whole(call) => profile.add(call.session, call),
                Step::Entered { loose: false, .. } => {}
                Step::Entered { function, id, .. } => {
                    let tracers = event.ty.function.map_or(0, |meaning| meaning.tracers);
                    let why = match event.session.schema.functions().want_ends(tracers) {
                        true => NoEnd::NotSeen,
                        false => NoEnd::EntriesOnly,
                    };
                    profile.add_endless(event.session, *id, function, why);
                }
            }
        }
    })?;
    open.open().for_each(|call| {
        profile.add_endless(call.session, call.id, call.function, NoEnd::NotSeen);
    });
    Ok(profile.finish())
}

/// Lines below a table that has calls without an end.
fn about_ends(functions: &[FunctionTimes]) -> Vec<String> {
    let entries_only = functions.iter().map(|f| f.entries_only).sum();
    let no_end = functions.iter().map(|f| f.no_end).sum::<u64>() - entries_only;
    let mut lines = Vec::new();
    if entries_only > 0 {
        lines.push(format!(
            "{} by entries only: kind 'function' records no ends, kind 'graph' does",
            counted(entries_only, "call")
        ));
    }
    lines.extend(without_end(no_end));
    lines
}

/// The line about calls whose ends should have been recorded, if there are any.
pub(crate) fn without_end(calls: u64) -> Option<String> {
    let verb = if calls == 1 { "has" } else { "have" };
    (calls > 0).then(|| {
        format!(
            "{} {verb} no end: other stack, deeper than 8,191, or still open",
            counted(calls, "call")
        )
    })
}

/// Headings of a table of calls, with a column for those without an end if there are any.
pub(crate) fn headings(any_without_end: bool, others: &[&'static str]) -> Vec<&'static str> {
    let no_end = any_without_end.then_some(">NO END");
    let calls = [">CALLS"].into_iter().chain(no_end);
    calls.chain(others.iter().copied()).collect()
}

/// Cells of one function under these headings: numbers of calls, then times in ns if they are known.
pub(crate) fn cells(
    any_without_end: bool,
    calls: CallCounts,
    times: Option<CallTimes>,
) -> Vec<String> {
    let mut cells = vec![count(calls.all)];
    if any_without_end {
        cells.push(count(calls.without_end));
    }
    match times {
        Some(times) => cells.extend(times.columns().map(duration)),
        None => cells.extend([const { "-" }; 6].map(str::to_owned)),
    }
    cells
}

fn text(bytes: &[u8]) -> String {
    printable(&String::from_utf8_lossy(bytes))
}

/// One row per function, in the order given.
pub(crate) fn table(functions: &[FunctionTimes]) -> Table {
    let any_without_end = functions.iter().any(|f| f.no_end > 0);
    let headings = headings(
        any_without_end,
        &[
            ">TOTAL", ">SELF", ">AVG", ">P50", ">P99", ">MAX", "FUNCTION", "MODULE",
        ],
    );
    let mut table = Table::new(&headings);
    for f in functions {
        let mut cells = cells(any_without_end, f.call_counts(), f.times());
        cells.extend([text(&f.name), text(&f.module)]);
        table.row(cells);
    }
    table.foot(about_ends(functions));
    table
}

/// A function as a JSON object.
pub(crate) fn as_json(f: &FunctionTimes, head: &Head) -> serde_json::Value {
    let times = f.times();
    json_row::object(
        head,
        &JsonRow {
            of: "function",
            name: &String::from_utf8_lossy(&f.name),
            target: &String::from_utf8_lossy(&f.module),
            count: f.calls,
            not_returned: Some(f.not_returned),
            no_end: Some(f.no_end),
            total_ns: times.map(|t| t.total),
            self_ns: times.map(|t| t.own),
            mean_ns: times.map(|t| t.mean),
            p50_ns: times.map(|t| t.median),
            p99_ns: times.map(|t| t.p99),
            max_ns: times.map(|t| t.longest),
            ..JsonRow::default()
        },
    )
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
            change.mean_ns[side] = f.mean_ns();
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
        ">CALLS A", ">CALLS B", ">SELF A", ">SELF B", ">CHANGE", ">AVG A", ">AVG B", "FUNCTION",
        "MODULE",
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
