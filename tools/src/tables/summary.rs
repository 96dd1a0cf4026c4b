//! The short summary after a recording, on standard error.

use std::io::{self, Write};

use ringmark_decoder::{Cover, Dump, Filter};

use super::calls::CallOptions;
use super::profile_table::{self, TracerProfile};
use super::{cover, event_table, function_table};
use crate::output::units::{count, counted, duration};
use crate::output::{Style, columns, note};

/// Prints what a trace holds: its figures, what time it covers, functions and events. With
/// `wants_functions` also where there is none.
///
/// # Errors
/// Standard error cannot be written.
pub(crate) fn print(dump: &Dump, wide: bool, wants_functions: bool) -> anyhow::Result<()> {
    let mut out = io::stderr().lock();
    write_figures(&mut out, dump)?;
    let functions = function_table::times(dump, &CallOptions::default())?;
    let profiles = profile_table::in_dump(dump, &CallOptions::default())?;
    let rows = event_table::rows(dump, &Filter::new());
    let mut tables = Vec::new();
    if !functions.is_empty() {
        tables.push(function_table::table(&functions));
    }
    tables.extend(profiles.iter().map(TracerProfile::table));
    if tables.is_empty() && wants_functions {
        drop(out);
        note(
            "no call of a function was recorded: does --filter match functions that are called, and does a trigger, if there is one, start the tracer? 'ringmark functions FILE' lists functions that can be traced",
        );
        out = io::stderr().lock();
    }
    if tables.is_empty() || !rows.is_empty() {
        tables.push(event_table::table(&rows));
    }
    for table in &mut tables {
        table.fit(columns(io::stderr()).filter(|_| !wide));
        table.write(&mut out, Style::none())?;
    }
    Ok(())
}

fn write_figures(out: &mut impl Write, dump: &Dump) -> io::Result<()> {
    let found = dump.verify();
    let took = found.last_ns.unwrap_or(0) - found.first_ns.unwrap_or(0);
    writeln!(
        out,
        "{} in {}, {}; {} lost, {} missing",
        counted(found.events, "event"),
        duration(took),
        counted(found.rings, "ring"),
        count(found.lost),
        count(found.missing)
    )?;
    // The line above says it where one session is there from its start to its end.
    let is_told = |cover: &Cover<'_>| cover.overwritten == 0 && dump.sessions.len() == 1;
    if dump.covers().iter().all(is_told) {
        return Ok(());
    }
    let covers = cover::lines(dump);
    covers.iter().try_for_each(|line| writeln!(out, "{line}"))
}
