//! A screen as lines: made of the model, of what was chosen, and of the size of the terminal.

use super::head::head;
use super::model::Model;
use super::panels::{Look, Rows, Titled, panel};
use super::ui::{Panel, Ui};
use ringmark_console::Style;
use ringmark_console::width::{cut, width};

/// Lines above and below a table's rows: its title and its headings.
const TABLE_LINES: usize = 2;
/// Rows that a table has at least, if it has as many, before another one gets more.
const ROWS_LEAST: usize = 3;
/// Rows and columns of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) rows: usize,
    pub(crate) columns: usize,
}

const HELP: [&str; 24] = [
    "keys",
    "  q       end                        /        show rows whose name has a text",
    "  s       next order of the names    Tab      next table, alone",
    "  t       function tracers off, on   Up Down  move in a table that is alone",
    "  w       write a snapshot           Esc      all tables",
    "  space   pause, go on               ?        this page",
    "",
    "columns",
    "  SELF    time in it without what is inside it, of the time that passed;",
    "          more than 100 % in several threads",
    "  TOTAL   time in it with what is inside it",
    "  PER S   how many ended in a second",
    "  MEAN    how long one takes; MAX: the longest one that was met",
    "  OPEN    how long the outermost open span of a thread has been open",
    "  FILL    pages with events that were not read (discard), or any (overwrite)",
    "  WINDOW  how far back the oldest page of the ring reaches",
    "  LOST    events that were lost since the start",
    "  TREND   how many a second, the latest at the right",
    "",
    "Rates, fill and lost are exact. Names are counted in the newest pages: where",
    "more is written than can be looked at, they are estimates, and the title says",
    "so. No program is stopped or waited for. A snapshot is a trace file in this",
    "directory: 'ringmark cat FILE' shows it.",
    "any key goes back",
];

/// The lines of a screen: at most as many, and as wide, as there is room for.
pub(crate) fn lines(model: &Model, ui: &Ui, room: Size, style: Style) -> Vec<String> {
    let mut lines = match ui.has_help {
        true => HELP.map(str::to_owned).to_vec(),
        false => figures(model, ui, room, style),
    };
    lines.truncate(room.rows);
    for line in &mut lines {
        cut(line, room.columns);
        line.push_str(style.plain());
    }
    lines
}

fn figures(model: &Model, ui: &Ui, room: Size, style: Style) -> Vec<String> {
    let mut lines = head(model, room.columns, style);
    let foot = foot(ui, room.columns, style);
    let left = room.rows.saturating_sub(lines.len() + foot.len());
    let tables = tables(model, ui, Size { rows: left, ..room }, style);
    lines.extend(tables);
    let missing = room.rows.saturating_sub(lines.len() + foot.len());
    lines.extend(std::iter::repeat_n(String::new(), missing));
    lines.truncate(room.rows.saturating_sub(foot.len()));
    lines.extend(foot);
    lines
}

fn foot(ui: &Ui, columns: usize, style: Style) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(message) = &ui.message {
        lines.push(format!("{}{message}{}", style.warning(), style.plain()));
    }
    if ui.is_editing() {
        lines.push(format!("show rows with: {}_", ui.filter));
        return lines;
    }
    let mut parts = Vec::new();
    if ui.is_paused {
        parts.push("paused (space)".to_owned());
    }
    if !ui.filter.is_empty() {
        parts.push(format!("only rows with {:?} (/)", ui.filter));
    }
    let keys = match columns {
        ..70 => "q end  ? keys",
        _ => "q end  ? keys  s order  / filter  t tracers  w snapshot  Tab table  space pause",
    };
    parts.push(keys.to_owned());
    lines.push(format!(
        "{}{}{}",
        style.dim(),
        parts.join("  "),
        style.plain()
    ));
    lines
}

fn tables(model: &Model, ui: &Ui, room: Size, style: Style) -> Vec<String> {
    let look = Look::live(style, room.columns, model.processes() > 1);
    if let Some(only) = ui.only {
        let rows = Rows {
            from: ui.scrolled,
            most: room.rows.saturating_sub(TABLE_LINES),
        };
        let titled = panel(only, model, ui, look, rows);
        return written(titled, room, style);
    }
    let panels = Panel::ALL.into_iter();
    let panels = panels.filter(|panel| ui.has_sessions || *panel != Panel::Sessions);
    let panels: Vec<_> = panels
        .map(|one| {
            (
                one,
                panel(one, model, ui, look, Rows { from: 0, most: 0 }).rows,
            )
        })
        .collect();
    let wanted: Vec<_> = panels.iter().map(|(_, rows)| *rows).collect();
    let mut lines = Vec::new();
    for ((one, _), most) in panels.iter().zip(shares(&wanted, room.rows)) {
        let Some(most) = most else { continue };
        let titled = panel(*one, model, ui, look, Rows { from: 0, most });
        lines.extend(written(titled, room, style));
    }
    lines
}

/// How many rows each table has, of what it would have; `None`: there is no room for it. First each
/// has a few, those above before those below; then they share the rest.
fn shares(wanted: &[usize], lines: usize) -> Vec<Option<usize>> {
    let mut left = lines;
    let mut shares = Vec::new();
    for wanted in wanted {
        let title = if *wanted == 0 { 1 } else { TABLE_LINES };
        let rows = left.saturating_sub(title).min(*wanted).min(ROWS_LEAST);
        let is_shown = left >= title && (rows > 0 || *wanted == 0);
        shares.push(is_shown.then_some(rows));
        left -= if is_shown { title + rows } else { 0 };
    }
    while left > 0 {
        let before = left;
        for (share, wanted) in shares.iter_mut().zip(wanted) {
            if let Some(rows) = share.as_mut().filter(|rows| **rows < *wanted)
                && left > 0
            {
                *rows += 1;
                left -= 1;
            }
        }
        if left == before {
            break;
        }
    }
    shares
}

/// A table with its title, within the width of the terminal.
fn written(titled: Titled, room: Size, style: Style) -> Vec<String> {
    let mut table = titled.table;
    let (dim, plain) = (style.dim(), style.plain());
    let rule = room
        .columns
        .saturating_sub(width(&titled.title) + 4)
        .min(200);
    let mut lines = vec![format!(
        "{dim}──{plain} {} {dim}{}{plain}",
        titled.title,
        "─".repeat(rule)
    )];
    if titled.rows > 0 {
        table.fit(Some(room.columns));
        lines.extend(table.lines(style));
    }
    lines
}
