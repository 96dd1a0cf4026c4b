//! The table of spans that `report` and `run` print: native spans, spans of `tracing` and calls
//! of functions, each name once.

use ringmark_decoder::{CallTimes, Figures, FunctionTimes, SpanTimes, ThreadTimes};

use super::json_row::{self, JsonRow};
use crate::options::rows::SortBy;
use ringmark_console::json::Head;
use ringmark_console::units::{count, counted, duration};
use ringmark_console::{Table, printable};

/// The spans of a name, or the calls of a function.
#[derive(Debug)]
pub(crate) struct SpanRow {
    of: &'static str,
    pub(super) name: String,
    pub(super) target: String,
    /// All of them.
    count: u64,
    /// Part of `count`: the beginning, or the end, is not known.
    no_start: u64,
    no_end: u64,
    /// Part of `no_end`: no end was to be recorded.
    entries_only: u64,
    not_returned: Option<u64>,
    payload_bytes: Option<u64>,
    /// Those with a duration whose own time is not known.
    unknown_self: u64,
    /// Time of their own; `None`: of no span it is known.
    own_ns: Option<u64>,
    times: Option<CallTimes>,
    /// What their threads did; `None`: of no span it is known.
    pub(super) did: Option<ThreadTimes>,
    /// Those with a duration of which that is not known.
    pub(super) unknown_times: u64,
}

/// One row for each name, those with the most time of their own first if no other order is named.
pub(crate) fn rows(figures: &Figures<'_>, by: Option<SortBy>) -> Vec<SpanRow> {
    let functions = figures.functions.iter().map(SpanRow::of_function);
    let spans = figures.spans.iter().map(SpanRow::of_spans);
    let mut rows: Vec<_> = functions.chain(spans).collect();
    let key = |row: &SpanRow| {
        let times = row.times.map(|times| (times.own, times.total));
        (times, row.count)
    };
    rows.sort_by(|a, b| (key(b), &a.name, &a.target).cmp(&(key(a), &b.name, &b.target)));
    if let Some(by) = by {
        by.sort(
            &mut rows,
            |row| row.name.clone(),
            |row| (row.count, row.times),
        );
    }
    rows
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

impl SpanRow {
    fn of_function(f: &FunctionTimes) -> Self {
        Self {
            of: "function",
            name: text(&f.name),
            target: text(&f.module),
            count: f.calls,
            no_start: f.no_start,
            no_end: f.no_end,
            entries_only: f.entries_only,
            not_returned: Some(f.not_returned),
            payload_bytes: None,
            unknown_self: f.unknown_self,
            own_ns: f.own_ns(),
            times: f.times(),
            did: f.did(),
            unknown_times: f.unknown_times,
        }
    }

    fn of_spans(spans: &SpanTimes) -> Self {
        Self {
            of: "span",
            name: text(&spans.name),
            target: text(&spans.target),
            count: spans.spans(),
            no_start: spans.no_start,
            no_end: spans.no_end,
            entries_only: 0,
            not_returned: None,
            payload_bytes: Some(spans.payload_bytes),
            unknown_self: spans.unknown_self,
            own_ns: spans.own_ns(),
            times: spans.times(),
            did: spans.did(),
            unknown_times: spans.unknown_times,
        }
    }

    /// Whether any of them has a duration.
    pub(super) const fn is_timed(&self) -> bool {
        self.times.is_some()
    }

    /// The row as a line of JSON.
    pub(crate) fn as_json(&self, head: &Head) -> String {
        let (times, did) = (self.times, self.did);
        json_row::line(
            head,
            &JsonRow {
                of: self.of,
                name: &self.name,
                target: &self.target,
                count: self.count,
                payload_bytes: self.payload_bytes,
                not_returned: self.not_returned,
                no_start: Some(self.no_start),
                no_end: Some(self.no_end),
                unknown_self: Some(self.unknown_self),
                total_ns: times.map(|t| t.total),
                self_ns: self.own_ns,
                mean_ns: times.map(|t| t.mean),
                min_ns: times.map(|t| t.shortest),
                p50_ns: times.map(|t| t.median),
                p99_ns: times.map(|t| t.p99),
                max_ns: times.map(|t| t.longest),
                running_ns: did.map(|did| did.running_ns),
                ready_ns: did.map(|did| did.ready_ns),
                throttled_ns: did.map(|did| did.throttled_ns),
                waiting_ns: did.map(|did| did.waiting_ns),
                waits: did.map(|did| did.waits),
                preemptions: did.map(|did| did.preemptions),
                unknown_states: did.map(|_| self.unknown_times),
                ..JsonRow::default()
            },
        )
    }
}

/// Which columns a table of spans has beyond those that each has.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Columns {
    pub(crate) no_start: bool,
    pub(crate) no_end: bool,
}

impl Columns {
    /// Headings of a table of spans, with others at the end.
    pub(crate) fn headings(self, others: &[&'static str]) -> Vec<&'static str> {
        let no_start = self.no_start.then_some(">NO START");
        let no_end = self.no_end.then_some(">NO END");
        let counts = [">COUNT"].into_iter().chain(no_start).chain(no_end);
        counts.chain(others.iter().copied()).collect()
    }

    /// Cells under these headings: numbers of spans, then times in ns if they are known.
    pub(crate) fn cells(
        self,
        [all, no_start, no_end]: [u64; 3],
        times: Option<CallTimes>,
    ) -> Vec<String> {
        let no_start = self.no_start.then(|| count(no_start));
        let no_end = self.no_end.then(|| count(no_end));
        let mut cells = vec![count(all)];
        cells.extend(no_start.into_iter().chain(no_end));
        match times {
            Some(times) => cells.extend(times.columns().map(duration)),
            None => cells.extend([const { "-" }; 6].map(str::to_owned)),
        }
        cells
    }
}

/// The rows as a table.
pub(crate) fn table(rows: &[SpanRow], figures: &Figures<'_>) -> Table {
    let columns = Columns {
        no_start: rows.iter().any(|row| row.no_start > 0),
        no_end: rows.iter().any(|row| row.no_end > 0),
    };
    let has = |of| rows.iter().any(|row| row.of == of);
    let has_both = has("span") && has("function");
    let headings = [
        ">TOTAL", ">SELF", ">MEAN", ">P50", ">P99", ">MAX", "KIND", "NAME", "TARGET",
    ];
    let headings = headings
        .into_iter()
        .filter(|name| has_both || *name != "KIND");
    let mut table = Table::new(&columns.headings(&headings.collect::<Vec<_>>()));
    let self_at = table.column(">SELF");
    for row in rows {
        let mut cells = columns.cells([row.count, row.no_start, row.no_end], row.times);
        if let Some(cell) = self_at.and_then(|at| cells.get_mut(at))
            && row.own_ns.is_none()
        {
            "-".clone_into(cell);
        }
        cells.extend(has_both.then(|| row.of.to_owned()));
        cells.extend([printable(&row.name), printable(&row.target)]);
        table.row(cells);
    }
    table.foot(notices(rows, figures));
    table
}

/// Lines below the table: what its figures do not hold.
fn notices(rows: &[SpanRow], figures: &Figures<'_>) -> Vec<String> {
    let sum = |of: &str, figure: fn(&SpanRow) -> u64| -> u64 {
        rows.iter().filter(|row| row.of == of).map(figure).sum()
    };
    let mut lines = Vec::new();
    let entries_only = sum("function", |row| row.entries_only);
    if entries_only > 0 {
        lines.push(format!(
            "{} by entries only: kind 'function' records no ends, kind 'graph' does",
            counted(entries_only, "call")
        ));
    }
    lines.extend(without_end(
        sum("function", |row| row.no_end) - entries_only,
    ));
    lines.extend(open_spans(figures));
    let no_start = sum("function", |row| row.no_start) + sum("span", |row| row.no_start);
    if no_start > 0 {
        lines.push(format!("{} began before the first record", count(no_start)));
    }
    if figures.nameless > 0 {
        let spans = counted(figures.nameless, "span");
        lines.push(format!("{spans} without a name: only the end is here"));
    }
    if figures.left_out > 0 {
        let spans = counted(figures.left_out, "span");
        lines.push(format!(
            "{spans} not followed: more than 1,048,576 were open at one time"
        ));
    }
    for (of, what, why) in [
        ("span", "span", "during which records were lost"),
        (
            "function",
            "call",
            "that began before the recorded time, or lost records",
        ),
    ] {
        let unknown_self = sum(of, |row| row.unknown_self);
        if unknown_self > 0 {
            let those = counted(unknown_self, what);
            lines.push(format!("SELF is without {those} {why}"));
        }
    }
    lines
}

/// The line about spans that have no duration, if there are any.
pub(crate) fn open_spans(figures: &Figures<'_>) -> Option<String> {
    let open = figures.spans.iter().map(|spans| spans.no_end).sum();
    let verb = if open == 1 { "has" } else { "have" };
    let spans = counted(open, "span");
    (open > 0).then(|| format!("{spans} {verb} no end here: still open, or not recorded"))
}

/// The line about calls whose ends should have been recorded, if there are any.
pub(crate) fn without_end(calls: u64) -> Option<String> {
    let verb = if calls == 1 { "has" } else { "have" };
    (calls > 0).then(|| {
        format!(
            "{} {verb} no end: still open, deeper than 131,071, in a dropped coroutine, or of a thread without /proc or descriptors",
            counted(calls, "call")
        )
    })
}
