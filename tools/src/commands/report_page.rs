//! `report --html`: writes one page that shows a trace.

use std::io::{self, IsTerminal};
use std::path::Path;

use ringmark_decoder::{Dump, Filter};
use ringmark_export::{About, Cut, Plan, write_html};

use super::export::tell;
use crate::output::file::{is_standard, replace};
use crate::output::last_words::{self, Show};
use crate::output::progress::ProgressLine;
use crate::output::units::{count, counted, size};
use crate::output::{Failure, endings, note, printable};
use crate::tables::cover;

/// More spans and calls than a browser shows smoothly.
const SLICES_MAX: u64 = 3_000_000;

/// Writes the page of what passes the filter.
///
/// # Errors
/// The page cannot be written.
pub(super) fn write(dump: &Dump, filter: Filter, title: String, to: &Path) -> anyhow::Result<()> {
    let lines = |text: String| text.lines().map(str::to_owned).collect();
    let printable_lines = |lines: Vec<String>| lines.iter().map(|line| printable(line)).collect();
    let about = About {
        title,
        ends: printable_lines(endings::unclean_ends(dump)),
        covers: printable_lines(cover::lines(dump)),
        last_words: lines(last_words::text(dump, Show::Threads)),
    };
    let plan = Plan::new(dump, Cut { filter, min_ns: 0 });
    if let Some(last_ns) = plan.last_with(SLICES_MAX) {
        let shown = count(plan.counts().slices);
        let ms = last_ns / 1_000_000;
        let words = "spans and calls are more than a browser shows smoothly";
        note(&format!(
            "{shown} {words}: --from with the last {ms} ms fits"
        ));
    }
    let mut line = ProgressLine::new(true);
    let progress = |done: u64, all: u64| {
        if line.due().is_some() {
            line.show(&format!("{} % of {all} records", 100 * done / all.max(1)));
        }
    };
    if is_standard(to) {
        if io::stdout().is_terminal() {
            let text = "standard output is a terminal, expected a file or a pipe";
            return Err(Failure::usage(text).into());
        }
        tell(&write_html(
            &plan,
            &about,
            &mut io::stdout().lock(),
            progress,
        )?);
        return Ok(());
    }
    let written = replace(to, |out| write_html(&plan, &about, out, progress))?;
    line.clear();
    tell(&written);
    let counts = plan.counts();
    note(&format!(
        "{}: {}, {}, {}; open it in a browser",
        to.display(),
        counted(counts.slices, "slice"),
        counted(counts.instants + counts.counters, "event"),
        size(written.bytes)
    ));
    Ok(())
}
