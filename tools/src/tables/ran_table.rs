//! The table of functions that ran, where samples were recorded.

use ringmark_console::json::Head;
use ringmark_console::units::{count, counted, duration};
use ringmark_console::{Table, printable};
use ringmark_decoder::{RanFunction, RanFunctions};

use super::json_row::{self, JsonRow};

/// A function that was met in less than one of so many samples has no row.
const PART: u64 = 100;

/// The functions as a table; `None`: none was met.
pub(crate) fn table(ran: &RanFunctions) -> Option<Table> {
    let mut table = Table::new(&[">SELF", ">RUNNING", ">SAMPLES", "NAME"]);
    let has_row = |function: &&RanFunction| function.samples >= ran.samples / PART;
    let rows: Vec<_> = ran.functions.iter().filter(has_row).collect();
    for function in &rows {
        table.row(vec![
            time(function.self_ns),
            time(function.running_ns),
            count(function.samples),
            printable(&name(function)),
        ]);
    }
    if table.is_empty() {
        return None;
    }
    let kernel = match ran.has_kernel {
        true => "",
        false => "; what the kernel ran for them is in none of these",
    };
    let samples = counted(ran.samples, "sample");
    table.foot([format!("by {samples}: estimates{kernel}")]);
    let left_out = ran.functions.len() - rows.len();
    if left_out > 0 {
        table.foot([format!(
            "{} ran for less than 1 % of that",
            counted(left_out as u64, "other function")
        )]);
    }
    if ran.lost > 0 {
        let lost = counted(ran.lost, "sample");
        table.foot([format!("{lost} had no room when they were taken")]);
    }
    Some(table)
}

/// A line of JSON for each.
pub(crate) fn as_json(ran: &RanFunctions, head: &Head) -> impl Iterator<Item = String> {
    ran.functions.iter().map(|function| {
        let row = JsonRow {
            of: "sample",
            name: &name(function),
            count: function.samples,
            total_ns: Some(function.running_ns),
            self_ns: Some(function.self_ns),
            ..JsonRow::default()
        };
        json_row::line(head, &row)
    })
}

fn name(function: &RanFunction) -> String {
    String::from_utf8_lossy(&function.name).into_owned()
}

/// A time; `-`: none.
fn time(ns: u64) -> String {
    match ns {
        0 => "-".to_owned(),
        ns => duration(ns),
    }
}
