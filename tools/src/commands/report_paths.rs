//! `report --paths`, `--callers`, `--callees`: what called what.

use std::io::Write;

use ringmark_decoder::{ChosenPaths, Dump, Filter, PathName, Paths};

use crate::options::event_filter::no_name;
use crate::options::rows::{LinesOption, SortBy};
use crate::tables::path_table::{self, Order};
use crate::tables::{chosen_table, cover};
use ringmark_console::{Failure, Sink, Style, printable};

/// Options that ask for something else of a report.
const OTHERS: [&str; 4] = ["slowest", "diff", "html", "json"];
/// The same where names are given another way.
const NAMED: [&str; 5] = ["name", "slowest", "diff", "html", "json"];
/// The same where all counts.
const ALL: [&str; 7] = [
    "name",
    "conditions",
    "level",
    "slowest",
    "diff",
    "html",
    "json",
];

/// Options that ask for paths.
#[derive(Debug, Clone, Default, clap::Args)]
#[group(multiple = false)]
pub(super) struct PathOptions {
    /// Show one tree of all ways by which calls and spans were reached, with counts and times; with
    /// --name or --where the trees of what they choose, with --where beside those of all of its names
    #[arg(long, conflicts_with_all = OTHERS)]
    paths: bool,
    /// Show who called functions, or was around spans, whose names match
    #[arg(long, value_name = "GLOB", conflicts_with_all = ALL)]
    callers: Option<String>,
    /// Show what functions called, or what was in spans, whose names match; with --where in those
    /// that it chooses, beside all
    #[arg(long, value_name = "GLOB", conflicts_with_all = NAMED)]
    callees: Option<String>,
}

/// How the paths are shown.
pub(super) struct Shown {
    pub(super) sort: Option<SortBy>,
    pub(super) lines: LinesOption,
    pub(super) columns: Option<usize>,
    /// The line that says which part of the time is shown.
    pub(super) part: Option<String>,
}

impl PathOptions {
    /// Whether one of them is given.
    pub(super) const fn is_given(&self) -> bool {
        self.paths || self.callers.is_some() || self.callees.is_some()
    }

    /// Narrows what is chosen to the functions or spans that are named.
    pub(super) fn add_to(&self, chosen: &mut Filter) {
        if let Some(name) = &self.callees {
            chosen.name(name);
        }
    }

    /// Writes the table of what was chosen: `how` in the user's words.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub(super) fn write_chosen(
        &self,
        dump: &Dump,
        (found, how): (&ChosenPaths, &str),
        shown: &Shown,
        out: &mut Sink,
    ) -> anyhow::Result<()> {
        let order = Order::of(shown.sort)?;
        for line in cover::lines(dump).iter().chain(&shown.part) {
            writeln!(out, "{line}")?;
        }
        let mut table = match &self.callees {
            Some(name) => {
                let name = printable(name);
                writeln!(
                    out,
                    "what '{name}' called, of those with {how}, beside all; times are means of one '{name}'"
                )?;
                chosen_table::callees(found, order, shown.columns)
            }
            None => {
                writeln!(
                    out,
                    "spans and calls with {how}, beside all of their names; times but TOTAL are means of one of them"
                )?;
                chosen_table::tree(found, order, shown.columns)
            }
        };
        shown.lines.cut(&mut table);
        table.fit(shown.columns);
        Ok(table.write(out, Style::detect())?)
    }

    /// Writes the table that is asked for.
    ///
    /// # Errors
    /// Nothing has that name; paths have no such figure to be ordered by; those of writing.
    pub(super) fn write(
        &self,
        dump: &Dump,
        paths: &Paths,
        shown: &Shown,
        out: &mut Sink,
    ) -> anyhow::Result<()> {
        let order = Order::of(shown.sort)?;
        for line in cover::lines(dump).iter().chain(&shown.part) {
            writeln!(out, "{line}")?;
        }
        let mut table = match (&self.callers, &self.callees) {
            (Some(name), _) => {
                let found = paths.callers(named(name, dump, paths)?);
                writeln!(
                    out,
                    "counts and times of '{}', by its caller",
                    printable(name)
                )?;
                path_table::flat(paths, found, "CALLER", order, shown.columns)
            }
            (_, Some(name)) => {
                let found = paths.callees(named(name, dump, paths)?);
                writeln!(out, "counts and times of what '{}' called", printable(name))?;
                path_table::flat(paths, found, "CALLED", order, shown.columns)
            }
            (None, None) => path_table::tree(paths, order, shown.columns),
        };
        shown.lines.cut(&mut table);
        table.fit(shown.columns);
        Ok(table.write(out, Style::detect())?)
    }
}

/// What has a name that matches.
///
/// # Errors
/// Nothing has.
fn named(pattern: &str, dump: &Dump, paths: &Paths) -> Result<impl Fn(&PathName) -> bool, Failure> {
    let mut filter = Filter::new();
    filter.name(pattern);
    let is_it = move |name: &PathName| filter.passes_cut_call(&name.target, &name.name);
    if paths.names.iter().any(&is_it) {
        return Ok(is_it);
    }
    Err(Failure::usage(no_name(dump, pattern)))
}
