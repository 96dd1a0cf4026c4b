//! The tables of profile tracers: their counts, asked of a process, or found as events in a trace.
//! Both have the same values.

use ringmark_decoder::{Dump, Filter, ProfiledFunction};
use ringmark_format::function::TracerKind;
use ringmark_format::tracer_text::{AnswerLine, Count, RequestLine, Verb};

use super::json_row::{self, JsonRow};
use super::span_table::{self, Columns};
use crate::options::calls::CallOptions;
use crate::options::rows::SortBy;
use crate::tracing::tracer_session::TracerSession;
use ringmark_console::json::Head;
use ringmark_console::{Failure, Table, printable};

/// The functions of one profile tracer, those with the most time of their own first.
#[derive(Debug)]
pub(crate) struct TracerProfile {
    tracer: String,
    functions: Vec<ProfiledFunction>,
    /// Number of calls that the process had no memory to count.
    pub(crate) uncounted: u64,
}

impl TracerProfile {
    fn new(tracer: String, mut functions: Vec<ProfiledFunction>, uncounted: u64) -> Self {
        functions.sort_by(|ProfiledFunction(a), ProfiledFunction(b)| {
            (b.own, b.calls, &a.function).cmp(&(a.own, a.calls, &b.function))
        });
        Self {
            tracer,
            functions,
            uncounted,
        }
    }

    /// Asks a process for its counts, part by part.
    ///
    /// # Errors
    /// No answer, or the tracer is no profile.
    pub(crate) fn ask(session: &TracerSession, tracer: &str) -> anyhow::Result<Self> {
        let mut functions = Vec::new();
        let mut from = 0;
        loop {
            let lines = [RequestLine::Tracer(tracer), RequestLine::From(from)];
            let answer = session.ask(Verb::Profile, &lines)?;
            functions.extend(answer.lines().filter_map(|line| match line {
                AnswerLine::Gathered(function) => Some(ProfiledFunction(function.into_owned())),
                _ => None,
            }));
            let next = answer.count(Count::Next);
            if next <= from {
                let uncounted = answer.count(Count::Uncounted);
                return Ok(Self::new(tracer.to_owned(), functions, uncounted));
            }
            from = next;
        }
    }

    /// Keeps the functions that a filter lets pass without times of single calls.
    pub(crate) fn narrow(&mut self, filter: &Filter) {
        self.functions.retain(|ProfiledFunction(f)| {
            filter.passes_cut_call(f.module.as_bytes(), f.function.as_bytes())
        });
    }

    /// Puts its functions into another order.
    pub(crate) fn sort(&mut self, by: SortBy) {
        let name = |f: &ProfiledFunction| f.0.function.to_string();
        by.sort(&mut self.functions, name, |f| {
            (f.call_counts().all, f.times())
        });
    }

    /// Whether it has functions.
    pub(crate) fn is_empty(&self) -> bool {
        self.functions.is_empty()
    }

    /// One row per function.
    pub(crate) fn table(&self) -> Table {
        let columns = Columns {
            no_start: false,
            no_end: self.no_end() > 0,
        };
        let mut table = Table::new(&columns.headings(&[
            ">TOTAL", ">SELF", ">MEAN", ">~P50", ">~P99", ">MAX", "NAME", "TARGET", "TRACER",
        ]));
        for f in &self.functions {
            let counts = f.call_counts();
            let mut cells = columns.cells([counts.all, 0, counts.without_end], f.times());
            cells.extend([&f.0.function, &f.0.module, &self.tracer[..]].map(printable));
            table.row(cells);
        }
        table.foot(span_table::without_end(self.no_end()));
        table
    }

    /// Number of calls without a known end.
    fn no_end(&self) -> u64 {
        self.functions
            .iter()
            .map(|f| f.call_counts().without_end)
            .sum()
    }

    /// A line of JSON per function.
    pub(crate) fn as_json(&self, head: &Head) -> impl Iterator<Item = String> {
        self.functions.iter().map(|f| {
            let (times, counts) = (f.times(), f.call_counts());
            json_row::line(
                head,
                &JsonRow {
                    of: "profile",
                    tracer: Some(&self.tracer),
                    name: &f.0.function,
                    target: &f.0.module,
                    count: counts.all,
                    open: Some(f.0.open),
                    not_returned: Some(f.0.unwound),
                    no_end: Some(counts.without_end),
                    total_ns: times.map(|t| t.total),
                    self_ns: times.map(|t| t.own),
                    mean_ns: times.map(|t| t.mean),
                    min_ns: times.map(|_| f.0.min),
                    p50_ns: times.map(|t| t.median),
                    p99_ns: times.map(|t| t.p99),
                    max_ns: times.map(|t| t.longest),
                    approximate: &["p50_ns", "p99_ns"],
                    histogram: Some(&f.0.histogram.0),
                    ..JsonRow::default()
                },
            )
        })
    }
}

/// The counts of the profile tracers of a process, or of the one that is named.
///
/// # Errors
/// It does not answer.
pub(crate) fn of_process(
    session: &TracerSession,
    options: &CallOptions,
) -> anyhow::Result<Vec<TracerProfile>> {
    let status = session.ask(Verb::Status, &[])?;
    let kind = TracerKind::Profile.name();
    let profiles = status.tracers().filter(|tracer| tracer.kind == kind);
    let names = profiles.map(|tracer| tracer.name);
    names
        .filter(|name| options.names(name))
        .map(|name| TracerProfile::ask(session, name))
        .collect()
}

/// The profiles in a trace: for each process, tracer and function the last counts in the span of
/// time that the options name.
///
/// # Errors
/// A text is no time.
pub(crate) fn in_dump(dump: &Dump, options: &CallOptions) -> Result<Vec<TracerProfile>, Failure> {
    let gathered = dump.gathered(&options.times.within(dump)?);
    let meant = gathered
        .into_iter()
        .filter(|one| options.names(&one.tracer));
    let profiles = meant.map(|one| TracerProfile::new(one.tracer, one.functions, 0));
    Ok(profiles.collect())
}
