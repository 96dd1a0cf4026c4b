//! `report --html`: writes one page that shows a trace.

use std::io::{self, IsTerminal};
use std::path::Path;

use ringmark_decoder::{Dump, Filter};
use ringmark_export::{About, Counts, Cut, Plan, write_html};

use super::export::{shown, tell};
use crate::output::endings;
use crate::output::last_words::{self, Show};
use crate::tables::cover;
use ringmark_console::file::{Former, is_standard, replace};
use ringmark_console::progress::ProgressLine;
use ringmark_console::units::{count, size};
use ringmark_console::{Failure, note, printable};

/// More spans and calls than a browser shows smoothly.
const SLICES_MAX: u64 = 3_000_000;

/// Writes the page of what passes the filter. `part`: which part that is, in words. Returns what it shows.
///
/// # Errors
/// The page cannot be written.
pub(super) fn write(
    dump: &Dump,
    (filter, part): (Filter, Option<String>),
    title: String,
    to: &Path,
) -> anyhow::Result<Counts> {
    let lines = |text: String| text.lines().map(str::to_owned).collect();
    let about = About {
        title,
        ends: endings::unclean_ends(dump),
        whose: endings::unnamed_threads(dump),
        panicked: endings::panicked(dump),
        covers: cover::lines(dump)
            .iter()
            .chain(&part)
            .map(|line| printable(line))
            .collect(),
        part: part.as_deref().map(printable).unwrap_or_default(),
        last_words: lines(last_words::text(dump, Show::Threads)),
    };
    let plan = Plan::new(dump, Cut { filter, min_ns: 0 });
    if let Some(last_ns) = plan.last_with(SLICES_MAX) {
        let shown = count(plan.counts().slices);
        let ms = last_ns / 1_000_000;
        let words = "spans and calls are more than a browser shows smoothly";
        note(&format!("{shown} {words}: '--last {ms}ms' fits"));
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
        let mut out = io::stdout().lock();
        let written = write_html(&plan, &about, &mut out, progress)?;
        line.clear();
        tell(&written);
        return Ok(written.shown);
    }
    let write = |out: &mut _| write_html(&plan, &about, out, progress);
    let (written, _) = replace(to, Former::Replaced, write)?;
    line.clear();
    tell(&written);
    note(&format!(
        "{}: {}, {}; open it in a browser",
        to.display(),
        shown(&written.shown),
        size(written.bytes)
    ));
    Ok(written.shown)
}
