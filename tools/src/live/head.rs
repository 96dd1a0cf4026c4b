//! The first lines of a screen: what is observed, and the figures of all of it together.

use ringmark_format::session::Mode;

use super::model::{Model, SessionRow};
use super::panels::rate;
use ringmark_console::units::{count, counted, duration, size};
use ringmark_console::width::{shorten, width};
use ringmark_console::{Style, printable};

/// Columns of the trend of all events, at most.
const TREND_MOST: usize = 60;
/// Columns of the name of a process, at most.
const NAME_MOST: usize = 24;

/// Two lines, the second one with a trend at its right end.
pub(super) fn head(model: &Model, columns: usize, style: Style) -> Vec<String> {
    let what = format!("{}{}{}", style.heading(), what(model), style.plain());
    let figures = match model.has_rates() {
        true => figures(model, style),
        false => "counting".to_owned(),
    };
    let room = columns.saturating_sub(width(&figures) + 2).min(TREND_MOST);
    let bars = model.events.bars(room);
    let bars = bars.trim_start();
    let space = columns.saturating_sub(width(&figures) + width(bars));
    vec![what, format!("{figures}{}{bars}", " ".repeat(space))]
}

fn what(model: &Model) -> String {
    let sessions = model.sessions();
    let rings: usize = sessions.iter().map(|session| session.rings.len()).sum();
    let bytes: u64 = sessions.iter().map(|session| session.ring_bytes).sum();
    let rings = format!("{}, {}", counted(rings as u64, "ring"), size(bytes));
    match (sessions.as_slice(), model.processes()) {
        ([], _) => "no sessions".to_owned(),
        ([first, others @ ..], 1) => format!("{}, {rings}", process(first, others.len())),
        (several, processes) => {
            let sessions = counted(several.len() as u64, "session");
            format!("{} processes, {sessions}, {rings}", count(processes as u64))
        }
    }
}

/// The process of a session, which has that many others.
fn process(session: &SessionRow, others: usize) -> String {
    let about = &session.about;
    let mut name = about.name.clone();
    shorten(&mut name, NAME_MOST);
    let on = about.head.host.as_deref();
    let on = on.map_or_else(String::new, |host| format!(" on {}", printable(host)));
    let how = match (others, about.mode) {
        (0, mode) => mode.map_or("", Mode::name).to_owned(),
        (others, _) => counted(others as u64 + 1, "session"),
    };
    format!("{name}[{}]{on}, {how}", about.pid)
}

fn figures(model: &Model, style: Style) -> String {
    let events = format!("{} events/s", rate(model.events_per_s()));
    let full = match model.sessions().as_slice() {
        [one] => {
            let window = one.window_ns.map(|ns| format!(", last {}", duration(ns)));
            format!(
                ", {} % full{}",
                one.fill_percent,
                window.unwrap_or_default()
            )
        }
        _ => String::new(),
    };
    format!("{events}, {}{full}", lost(model, style))
}

fn lost(model: &Model, style: Style) -> String {
    let (total, per_s) = model.lost();
    if total == 0 {
        return "nothing lost".to_owned();
    }
    let lately = match per_s > 0.0 {
        true => format!(", {} a second", rate(per_s)),
        false => String::new(),
    };
    format!(
        "{}{} lost{lately}{}",
        style.alarm(),
        count(total),
        style.plain()
    )
}
