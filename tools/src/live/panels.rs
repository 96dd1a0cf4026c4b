//! The tables of a screen.

use ringmark_format::session::Mode;

use super::history::History;
use super::model::{Counter, Model, OpenRow, RingRow, SessionRow};
use super::names::NameRow;
use super::ui::{Panel, Ui};
use crate::tables::filling::{self, lasting};
use ringmark_console::units::{count, counted, duration};
use ringmark_console::width::shorten;
use ringmark_console::{Style, Table};

/// Between the open spans of a thread.
const INSIDE: &str = " › ";
/// Columns of a trend, on a narrow terminal and on one that has room.
const TREND_COLUMNS: [usize; 2] = [8, 20];
/// Columns of a thread's name next to its spans, at most.
const THREAD_MOST: usize = 20;
/// Columns from which on a terminal has room.
const ROOMY: usize = 110;

/// How tables are made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Look {
    pub(crate) style: Style,
    /// Columns of trends; `None`: there are none.
    pub(crate) trend: Option<usize>,
    /// Rows have the number of their process.
    pub(crate) has_pids: bool,
}

impl Look {
    /// For a screen of that many columns.
    pub(crate) const fn live(style: Style, columns: usize, has_pids: bool) -> Self {
        let [narrow, roomy] = TREND_COLUMNS;
        Self {
            style,
            trend: Some(if columns < ROOMY { narrow } else { roomy }),
            has_pids,
        }
    }
}

/// A table with what stands above it.
pub(crate) struct Titled {
    pub(crate) title: String,
    pub(crate) table: Table,
    /// Rows that it would have.
    pub(crate) rows: usize,
}

/// A table of at most `rows` rows from the one at `from` on, of those that pass.
pub(crate) fn panel(panel: Panel, model: &Model, ui: &Ui, look: Look, rows: Rows) -> Titled {
    match panel {
        Panel::Sessions => sessions(model, ui, look, rows),
        Panel::Names => names(model, ui, look, rows),
        Panel::Open => open(model, ui, look, rows),
        Panel::Rings => rings(model, ui, look, rows),
    }
}

/// Which rows of a table are shown.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rows {
    pub(crate) from: usize,
    pub(crate) most: usize,
}

impl Rows {
    /// All of them.
    pub(crate) const ALL: Self = Self {
        from: 0,
        most: usize::MAX,
    };

    fn of<T>(self, rows: &[T]) -> &[T] {
        // The last row stays on the screen.
        let from = self.from.min(rows.len().saturating_sub(1));
        let rows = &rows[from.min(rows.len())..];
        &rows[..rows.len().min(self.most)]
    }
}

/// Makes a table whose columns do not move while their figures change.
fn table(look: Look, columns: &[(&'static str, usize)]) -> Table {
    let wanted = columns.iter().filter(|(heading, _)| match *heading {
        ">PID" => look.has_pids,
        "TREND" => look.trend.is_some(),
        _ => true,
    });
    let wanted: Vec<_> = wanted.copied().collect();
    let headings: Vec<_> = wanted.iter().map(|(heading, _)| *heading).collect();
    let mut table = Table::new(&headings);
    if look.trend.is_some() {
        table.steady(wanted.iter().map(|(_, least)| *least).collect());
    }
    table
}

fn add(table: &mut Table, look: Look, pid: u32, trend: &History, cells: Vec<String>) {
    let pid = look.has_pids.then(|| pid.to_string());
    let trend = look.trend.map(|columns| trend.bars(columns));
    // The name stands at the end, and the trend before it.
    let mut cells: Vec<_> = pid.into_iter().chain(cells).collect();
    let name = cells.pop();
    table.row(cells.into_iter().chain(trend).chain(name).collect());
}

fn names(model: &Model, ui: &Ui, look: Look, shown: Rows) -> Titled {
    let mut rows = model.names(ui.order);
    rows.retain(|row| ui.passes([row.name.as_str(), &row.target]));
    let mut table = table(
        look,
        &[
            (">PID", 7),
            (">SELF", 6),
            (">TOTAL", 6),
            (">PER S", 9),
            (">MEAN", 7),
            (">MAX", 7),
            ("TREND", look.trend.unwrap_or(0)),
            ("NAME", 10),
        ],
    );
    for row in shown.of(&rows) {
        add(&mut table, look, row.pid, &row.history, name_cells(row));
    }
    Titled {
        title: names_title(model, ui),
        table,
        rows: rows.len(),
    }
}

fn names_title(model: &Model, ui: &Ui) -> String {
    let sample = match model.coverage(None).percent() {
        Some(percent) if percent < 10.0 => format!(", estimated from {percent:.1} % of the events"),
        Some(percent) => format!(", estimated from {percent:.0} % of the events"),
        None => String::new(),
    };
    format!("spans, functions, events by {}{sample}", ui.order.name())
}

fn name_cells(row: &NameRow) -> Vec<String> {
    let dash = || "-".to_owned();
    vec![
        row.own.map_or_else(dash, share),
        row.total.map_or_else(dash, share),
        rate(row.per_s),
        row.mean_ns.map_or_else(dash, |ns| duration(ns as u64)),
        row.max_ns.map_or_else(dash, duration),
        row.name.clone(),
    ]
}

/// A part of the time as text.
fn share(share: f64) -> String {
    let percent = 100.0 * share;
    match percent {
        p if p < 0.1 => format!("{p:.2} %"),
        p if p < 100.0 => format!("{p:.1} %"),
        p => format!("{p:.0} %"),
    }
}

/// Times a second as text.
pub(crate) fn rate(per_s: f64) -> String {
    match per_s {
        r if r > 0.0 && r < 10.0 => format!("{r:.1}"),
        r => count(r.round() as u64),
    }
}

fn open(model: &Model, ui: &Ui, look: Look, shown: Rows) -> Titled {
    let mut rows = model.open();
    rows.retain(|row| {
        let spans = row.thread.spans.iter().map(|(name, _)| name.as_str());
        ui.passes(spans.chain([row.thread.thread.as_str()]))
    });
    let mut table = table(
        look,
        &[(">PID", 7), (">OPEN", 7), ("THREAD", 10), ("SPANS", 10)],
    );
    for row in shown.of(&rows) {
        let mut cells: Vec<String> = look
            .has_pids
            .then(|| row.pid.to_string())
            .into_iter()
            .collect();
        let mut thread = row.thread.thread.clone();
        if look.trend.is_some() {
            shorten(&mut thread, THREAD_MOST);
        }
        cells.extend([duration(row.open_ns()), thread, spans(row)]);
        table.row(cells);
    }
    let threads = counted(rows.len() as u64, "thread");
    let title = match rows.len() {
        0 => "open spans in threads: none".to_owned(),
        _ => format!("open spans in {threads}"),
    };
    Titled {
        title,
        table,
        rows: rows.len(),
    }
}

/// Names of the open spans, and how long the innermost one has been open.
fn spans(row: &OpenRow) -> String {
    let thread = &row.thread;
    let pieces = thread.spans.chunk_by(|a, b| a.0 == b.0);
    let names: Vec<_> = pieces.map(same_names).collect();
    let mut text = names.join(INSIDE);
    if let [_, .., (_, ns)] = thread.spans.as_slice() {
        text += &format!(" {}", duration(*ns));
    }
    if thread.deeper > 0 {
        text += &format!("{INSIDE}{} more", count(thread.deeper));
    }
    text
}

/// Spans of one name, each in the one before it.
fn same_names(spans: &[(String, u64)]) -> String {
    match spans {
        [] => String::new(),
        [(name, _)] => name.clone(),
        [(name, _), ..] => format!("{name} × {}", spans.len()),
    }
}

fn rings(model: &Model, ui: &Ui, look: Look, shown: Rows) -> Titled {
    let mut rows = model.rings();
    let over = model.rings_over();
    rows.retain(|row| ui.passes([row.thread.as_str()]));
    let mut table = table(
        look,
        &[
            (">PID", 7),
            (">TID", 7),
            (">EVENTS/S", 10),
            (">FILL", 5),
            (">WINDOW", 7),
            (">LASTS", 7),
            (">LOST", 6),
            ("TREND", look.trend.unwrap_or(0)),
            ("THREAD", 10),
        ],
    );
    for row in shown.of(&rows) {
        add(
            &mut table,
            look,
            row.pid,
            &row.events.history,
            ring_cells(row, look),
        );
    }
    let ended = match over {
        0 => String::new(),
        over => format!(", and {} of ended threads", count(over as u64)),
    };
    let minute = filling::for_a_minute(rows.iter().filter_map(|row| row.filling()));
    let minute = minute.map_or_else(String::new, |minute| format!("; {}", minute.in_short()));
    Titled {
        title: format!("{}{ended}{minute}", counted(rows.len() as u64, "ring")),
        table,
        rows: rows.len(),
    }
}

fn ring_cells(row: &RingRow, look: Look) -> Vec<String> {
    vec![
        row.tid.to_string(),
        rate(row.events.per_s),
        format!("{} %", row.fill_percent),
        row.window_ns.map_or_else(|| "-".to_owned(), duration),
        row.filling()
            .map_or_else(|| "-".to_owned(), |filling| lasting(filling.lasts_s())),
        lost(&row.lost, look.style),
        row.thread.clone(),
    ]
}

/// A count of lost events, marked while it grows.
fn lost(lost: &Counter, style: Style) -> String {
    match lost.new {
        0 => count(lost.total),
        _ => format!("{}{}{}", style.alarm(), count(lost.total), style.plain()),
    }
}

fn sessions(model: &Model, ui: &Ui, look: Look, shown: Rows) -> Titled {
    let mut rows = model.sessions();
    rows.retain(|row| ui.passes([row.about.name.as_str()]));
    // Here it is what a row is about.
    let look = Look {
        has_pids: true,
        ..look
    };
    let mut table = table(
        look,
        &[
            (">PID", 7),
            ("MODE", 9),
            (">RINGS", 5),
            (">EVENTS/S", 10),
            (">FILL", 5),
            (">WINDOW", 7),
            (">LOST", 6),
            ("TREND", look.trend.unwrap_or(0)),
            ("NAME", 10),
        ],
    );
    for row in shown.of(&rows) {
        let cells = session_cells(row, look);
        add(&mut table, look, row.about.pid, &row.events.history, cells);
    }
    Titled {
        title: counted(rows.len() as u64, "session"),
        table,
        rows: rows.len(),
    }
}

fn session_cells(row: &SessionRow, look: Look) -> Vec<String> {
    vec![
        row.about.mode.map_or("-", Mode::name).to_owned(),
        row.rings.len().to_string(),
        rate(row.events.per_s),
        format!("{} %", row.fill_percent),
        row.window_ns.map_or_else(|| "-".to_owned(), duration),
        lost(&row.lost, look.style),
        row.about.name.clone(),
    ]
}
