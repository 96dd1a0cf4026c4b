//! `report --diff`: compares the spans and functions of two traces.

use std::io::Write;

use ringmark_decoder::{Change, Dump, Figure, Figures};

use crate::output::json::JsonOption;
use crate::output::{Exit, Failure, Sink, Style};
use crate::tables::change_table;

/// What the rows are ordered by: the change of this figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum SortBy {
    Total,
    #[value(name = "self")]
    Own,
    Mean,
    P50,
    P99,
    Count,
}

impl SortBy {
    const fn figure(self) -> Figure {
        match self {
            Self::Total => Figure::Total,
            Self::Own => Figure::Own,
            Self::Mean => Figure::Mean,
            Self::P50 => Figure::Median,
            Self::P99 => Figure::P99,
            Self::Count => Figure::Count,
        }
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
    pub(super) sort: SortBy,
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
    let figure = shown.sort.figure();
    let changes = Change::between(&first.figures, &second.figures, figure);
    if changes.is_empty() && !is_filtered {
        let text = "--diff: neither trace has spans or calls of functions, expected some";
        return Err(Failure::unreadable(text).into());
    }
    let is_whole = traces.iter().all(|trace| trace.dump.verify().is_clean());
    if shown.json.is_on() {
        let sides = traces.iter().enumerate();
        let sides = sides.map(|(n, trace)| change_table::side_as_json(n, &trace.name, trace.dump));
        let rows = changes
            .iter()
            .map(|change| change_table::as_json(change, figure));
        for object in sides.chain(rows).filter(|object| shown.json.has(object)) {
            writeln!(out, "{}", shown.json.form(object))?;
        }
        return Ok(Exit::lost_if(!is_whole));
    }
    let names = [&first.name[..], &second.name];
    for line in change_table::heads(names, [first.dump, second.dump]) {
        writeln!(out, "{line}")?;
    }
    writeln!(out)?;
    let table = change_table::table(&changes, figure, shown.columns);
    table.write(out, Style::detect())?;
    Ok(Exit::lost_if(!is_whole))
}
