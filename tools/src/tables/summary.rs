//! The tables that `report`, `run` and `record` print of a trace, and the short summary after a
//! recording, on standard error.

use std::io::{self, Write};

use ringmark_decoder::{Counted, Cover, Dump, Figures};

use super::profile_table::{self, TracerProfile};
use super::{cover, event_table, ran_table, span_table, state_table};
use crate::options::calls::CallOptions;
use crate::options::rows::SortBy;
use ringmark_console::units::{count, counted, duration};
use ringmark_console::{Style, Table, columns, note};

/// The tables of a trace: spans, functions that ran, profiles, events. One without rows is left out, unless all are.
pub(crate) fn tables(
    figures: &Figures<'_>,
    profiles: &[TracerProfile],
    by: Option<SortBy>,
) -> Vec<Table> {
    let mut tables = Vec::new();
    let spans = span_table::rows(figures, by);
    if !spans.is_empty() || figures.has_notices() {
        tables.push(span_table::table(&spans, figures));
        tables.extend(state_table::table(&spans, figures));
    }
    tables.extend(figures.ran.as_ref().and_then(ran_table::table));
    tables.extend(profiles.iter().map(TracerProfile::table));
    let events = event_table::rows(&figures.events, by);
    if tables.is_empty() || !events.is_empty() {
        tables.push(event_table::table(&events));
    }
    tables
}

/// Prints what a trace holds: its figures, what time it covers, functions and events. With
/// `wants_functions` also where there is none.
///
/// # Errors
/// Standard error cannot be written.
pub(crate) fn print(dump: &Dump, wide: bool, wants_functions: bool) -> anyhow::Result<()> {
    let mut out = io::stderr().lock();
    write_figures(&mut out, dump)?;
    let figures = dump.figures(Counted::default());
    let profiles = profile_table::in_dump(dump, &CallOptions::default())?;
    let found = dump.verify();
    if found.unwritten_profiles > 0 {
        drop(out);
        note(&format!(
            "what was counted until a process ended by _exit, exec or a signal was NOT written, {}; --kind graph records such calls",
            counted(found.unwritten_profiles, "time")
        ));
        out = io::stderr().lock();
    } else if figures.functions.is_empty() && profiles.is_empty() && wants_functions {
        drop(out);
        note(
            "no call of a function was recorded: do --filter, --inside and --caller match functions that are called, and does a trigger, if there is one, start the tracer? 'ringmark functions FILE' lists functions that can be traced",
        );
        out = io::stderr().lock();
    }
    for mut table in tables(&figures, &profiles, None) {
        table.fit(columns(io::stderr()).filter(|_| !wide));
        table.write(&mut out, Style::none())?;
    }
    Ok(())
}

fn write_figures(out: &mut impl Write, dump: &Dump) -> io::Result<()> {
    let found = dump.verify();
    let removed = match found.removed {
        0 => String::new(),
        events => format!(", {} removed from the store", count(events)),
    };
    let earlier = match found.left_out {
        0 => String::new(),
        events => format!("; {} before the recording left out", count(events)),
    };
    let took = found.last_ns.unwrap_or(0) - found.first_ns.unwrap_or(0);
    writeln!(
        out,
        "{} in {}, {}; {} lost, {} missing{removed}{earlier}",
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
