//! `report --diff`: compares the spans and functions of two traces.

use std::io::Write;

use ringmark_console::json::{JsonOption, Line};
use ringmark_console::{Exit, Failure, Sink, Style};
use ringmark_decoder::{Change, Dump, Figure, Figures};

use crate::options::rows::{LinesOption, SortBy};
use crate::tables::change_table;

/// The figure whose change rows are ordered by, or shown where they are ordered by name.
const fn figure(sort: Option<SortBy>) -> Figure {
    match sort {
        // Two traces seldom hold as many spans, so their totals say little of how long one took.
        None | Some(SortBy::Mean | SortBy::Name) => Figure::Mean,
        Some(SortBy::Total) => Figure::Total,
        Some(SortBy::Own) => Figure::Own,
        Some(SortBy::P50) => Figure::Median,
        Some(SortBy::P99) => Figure::P99,
        Some(SortBy::Max) => Figure::Max,
        Some(SortBy::Count) => Figure::Count,
    }
}

/// One of two traces.
pub(super) struct Trace<'d> {
    /// Its files, safe for a terminal.
    pub(super) name: String,
    pub(super) dump: &'d Dump,
    pub(super) figures: Figures<'d>,
}

/// How the changes are shown.
pub(super) struct Shown {
    pub(super) sort: Option<SortBy>,
    pub(super) lines: LinesOption,
    pub(super) json: JsonOption,
    pub(super) columns: Option<usize>,
}

/// Writes the changes from the first trace to the second. What is lost on either side comes first.
///
/// # Errors
/// Neither trace has spans or calls, and no filter is why; standard output cannot be written.
pub(super) fn write(
    traces: &[Trace<'_>; 2],
    shown: &Shown,
    is_filtered: bool,
    out: &mut Sink,
) -> anyhow::Result<Exit> {
    let [first, second] = traces;
    let figure = figure(shown.sort);
    let mut changes = Change::between(&first.figures, &second.figures, figure);
    if shown.sort == Some(SortBy::Name) {
        changes.sort_by(|a, b| a.name.cmp(&b.name));
    }
    if changes.is_empty() && !is_filtered {
        let text = "--diff: neither trace has spans or calls of functions, expected some";
        return Err(Failure::unreadable(text).into());
    }
    let changes = &changes[..shown.lines.of(changes.len())];
    let is_whole = traces.iter().all(|trace| trace.dump.verify().is_clean());
    if shown.json.is_on() {
        let sides = traces.iter().enumerate();
        let sides = sides.map(|(n, trace)| change_table::side_as_json(n, &trace.name, trace.dump));
        let rows = changes
            .iter()
            .map(|change| change_table::as_json(change, figure));
        for object in sides.chain(rows) {
            writeln!(out, "{}", Line(object))?;
        }
        return Ok(Exit::lost_if(!is_whole));
    }
    let names = [&first.name[..], &second.name];
    for line in change_table::heads(names, [first.dump, second.dump]) {
        writeln!(out, "{line}")?;
    }
    writeln!(out)?;
    let table = change_table::table(changes, figure, shown.columns);
    table.write(out, Style::detect())?;
    Ok(Exit::lost_if(!is_whole))
}
