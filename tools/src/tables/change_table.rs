//! Spans and functions in two traces: what `report --diff` prints.

use std::cmp::Ordering;

use ringmark_decoder::{Change, Compared, Dump, Figure, Side};
use serde_json::{Value, json};

use super::cover;
use ringmark_console::json::{self as objects, Head};
use ringmark_console::units::{count, counted, duration};
use ringmark_console::{Table, printable};

/// The letters of the two traces.
pub(crate) const SIDES: [&str; 2] = ["A", "B"];
/// Columns of a terminal that has room for SELF and TARGET.
const WIDE: usize = 110;

/// What is not in the trace of one side.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Absent {
    lost: u64,
    overwritten: u64,
    missing: u64,
    removed: u64,
    damage: usize,
}

impl Absent {
    pub(crate) fn of(dump: &Dump) -> Self {
        let found = dump.verify();
        Self {
            lost: found.lost,
            overwritten: found.overwritten,
            missing: found.missing,
            removed: found.removed,
            damage: found.damage.len(),
        }
    }

    /// `17 events lost, 2 missing`; empty: all is here.
    fn text(self) -> String {
        let counts = [
            (self.lost, "lost"),
            (self.overwritten, "overwritten"),
            (self.missing, "missing"),
            (self.removed, "removed from the store"),
        ];
        let there = counts.into_iter().filter(|(events, _)| *events > 0);
        let mut texts: Vec<_> = there
            .map(|(events, what)| format!("{} {what}", counted(events, "event")))
            .collect();
        if self.damage > 0 {
            texts.push(format!(
                "damaged in {}",
                counted(self.damage as u64, "place")
            ));
        }
        texts.join(", ")
    }
}

/// The lines above the table: what each trace covers, and what it does not have.
pub(crate) fn heads(names: [&str; 2], dumps: [&Dump; 2]) -> Vec<String> {
    let mut lines = Vec::new();
    for ((side, name), dump) in SIDES.into_iter().zip(names).zip(dumps) {
        let covers = cover::lines(dump);
        match covers.as_slice() {
            [only] => lines.push(format!("{side}  {name}: {only}")),
            several => {
                lines.push(format!("{side}  {name}:"));
                lines.extend(several.iter().map(|line| format!("   {line}")));
            }
        }
        let absent = Absent::of(dump).text();
        if !absent.is_empty() {
            lines.push(format!(
                "{side}  is not whole: {absent}; its counts and totals are too low"
            ));
        }
    }
    lines
}

/// The columns of figures that a table has.
fn shown(figure: Figure, is_wide: bool) -> Vec<(Figure, &'static str)> {
    let mut all = vec![(Figure::Count, ">COUNT"), (Figure::Total, ">TOTAL")];
    if is_wide || figure == Figure::Own {
        all.push((Figure::Own, ">SELF"));
    }
    all.extend([
        (Figure::Mean, ">MEAN"),
        (Figure::Median, ">P50"),
        (Figure::P99, ">P99"),
    ]);
    if figure == Figure::Max {
        all.push((Figure::Max, ">MAX"));
    }
    all
}

/// The changes as a table of two rows for each name: A with the change of `figure`, B with the same
/// in per cent. `columns`: width of the terminal.
pub(crate) fn table(changes: &[Change], figure: Figure, columns: Option<usize>) -> Table {
    let is_wide = columns.is_none_or(|columns| columns >= WIDE);
    let figures = shown(figure, is_wide);
    let mut headings = vec![""];
    headings.extend(figures.iter().map(|(_, heading)| *heading));
    headings.extend([">CHANGE", "NAME"]);
    if is_wide {
        headings.push("TARGET");
    }
    let mut table = Table::new(&headings);
    for change in changes {
        for (side, letter) in change.sides.iter().zip(SIDES) {
            let mut cells = vec![letter.to_owned()];
            cells.extend(figures.iter().map(|(of, _)| cell(side, *of)));
            cells.push(match letter == SIDES[0] {
                true => signed(change.of_figure(figure), figure),
                false => in_percent(change, figure),
            });
            cells.push(text(&change.name));
            if is_wide {
                cells.push(text(&change.target));
            }
            table.row(cells);
        }
    }
    table.foot(notices(changes));
    table.fit(columns);
    table
}

fn text(bytes: &[u8]) -> String {
    printable(&String::from_utf8_lossy(bytes))
}

/// A figure of one side; `-`: it is not known, or there is none.
fn cell(side: &Side, figure: Figure) -> String {
    match (side.figure(figure), figure) {
        (Some(number), Figure::Count) => count(number),
        (Some(ns), _) if side.count > 0 => duration(ns),
        _ => "-".to_owned(),
    }
}

/// `+1.20 ms`, `-3`, `0`; `-` where a side is not known.
fn signed(change: Option<i128>, figure: Figure) -> String {
    let Some(change) = change else {
        return "-".to_owned();
    };
    let size = u64::try_from(change.unsigned_abs()).unwrap_or(u64::MAX);
    let size = match figure {
        Figure::Count => count(size),
        _ => duration(size),
    };
    match change.cmp(&0) {
        Ordering::Less => format!("-{size}"),
        Ordering::Equal => "0".to_owned(),
        Ordering::Greater => format!("+{size}"),
    }
}

/// `+20.3 %`, `new`, `gone`; `-` where it is not known.
fn in_percent(change: &Change, figure: Figure) -> String {
    if change.is_new() {
        return "new".to_owned();
    }
    if change.is_gone() {
        return "gone".to_owned();
    }
    change
        .percent(figure)
        .map_or_else(|| "-".to_owned(), |percent| format!("{percent:+.1} %"))
}

/// Lines below the table: what COUNT has and the times have not.
fn notices(changes: &[Change]) -> Vec<String> {
    let sides = [0, 1].map(|side| {
        let sides = changes.iter().map(move |change| change.sides[side]);
        sides.map(|side| side.no_start + side.no_end).sum::<u64>()
    });
    let sides = SIDES.into_iter().zip(sides);
    let sides = sides.filter(|(_, parts)| *parts > 0);
    let line = |(side, parts)| {
        let parts = count(parts);
        format!("{parts} of {side} have no beginning or no end here: COUNT has them, times do not")
    };
    sides.map(line).collect()
}

/// What one trace does not have, as a JSON object.
pub(crate) fn side_as_json(side: usize, name: &str, dump: &Dump) -> Value {
    let absent = Absent::of(dump);
    let fields = json!({
        "side": SIDES[side].to_lowercase(),
        "file": name,
        "lost": absent.lost,
        "overwritten": absent.overwritten,
        "missing": absent.missing,
        "removed": absent.removed,
        "damaged": absent.damage,
    });
    objects::object("compared", &Head::of_all(&dump.sessions), fields)
}

/// A change as a JSON object.
pub(crate) fn as_json(change: &Change, figure: Figure) -> Value {
    let mut fields = json!({
        "of": match change.of {
            Compared::Spans => "span",
            Compared::Calls => "function",
        },
        "name": String::from_utf8_lossy(&change.name),
        "target": Some(String::from_utf8_lossy(&change.target)).filter(|target| !target.is_empty()),
        "new": change.is_new(),
        "gone": change.is_gone(),
        "change": change.of_figure(figure).and_then(|change| i64::try_from(change).ok()),
        "change_percent": change.percent(figure),
    });
    for (side, letter) in change.sides.iter().zip(["a", "b"]) {
        let mut add = |key: &str, value: Option<u64>| {
            fields[format!("{key}_{letter}")] = value.into();
        };
        add("count", Some(side.count));
        add("no_start", Some(side.no_start));
        add("no_end", Some(side.no_end));
        add("total_ns", side.figure(Figure::Total));
        add("self_ns", side.figure(Figure::Own));
        add("mean_ns", side.figure(Figure::Mean));
        add("p50_ns", side.figure(Figure::Median));
        add("p99_ns", side.figure(Figure::P99));
        add("max_ns", side.figure(Figure::Max));
    }
    objects::object("change", &Head::default(), fields)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringmark_console::Style;

    fn change(name: &str, counts: [u64; 2]) -> Change {
        let side = |count| Side {
            count,
            ..Side::default()
        };
        Change {
            of: Compared::Spans,
            name: name.into(),
            target: b"shop::http::a_module_with_a_long_name".to_vec(),
            sides: counts.map(side),
        }
    }

    fn lines(changes: &[Change], figure: Figure, columns: Option<usize>) -> Vec<String> {
        let mut out = Vec::new();
        let table = table(changes, figure, columns);
        table.write(&mut out, Style::none()).unwrap();
        let text = String::from_utf8(out).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn rows_fit_the_terminal() {
        let changes = [change(&"long.name.".repeat(20), [99_999, 1])];
        for columns in [80, 100, 120, 200] {
            let lines = lines(&changes, Figure::Total, Some(columns));
            let widest = lines.iter().map(|line| line.chars().count()).max();
            assert!(widest <= Some(columns), "{columns}: {lines:#?}");
        }
    }

    #[test]
    fn what_is_new_and_what_is_gone_is_said() {
        let changes = [
            change("x", [0, 2]),
            change("y", [3, 0]),
            change("z", [4, 5]),
        ];
        let found = lines(&changes, Figure::Count, None);
        let last = |line: &str| line.split_whitespace().rev().nth(2).unwrap().to_owned();
        let found: Vec<_> = found[1..].iter().map(|line| last(line)).collect();
        assert_eq!(found, ["+2", "new", "-3", "gone", "+1", "%"]);
    }
}
