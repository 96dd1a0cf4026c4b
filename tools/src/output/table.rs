//! Tables of text whose columns fit their content.

use std::io::{self, Write};

use super::Style;

/// Headings of columns whose names may be cut, the one that is cut first in front.
const NAMES: [&str; 2] = ["TARGET", "NAME"];
/// Characters that a cut name keeps at least.
pub(crate) const SHORTEST_NAME: usize = 10;

/// Cuts the middle out of a text that has more characters than `room`.
pub(crate) fn shorten(text: &mut String, room: usize) {
    let length = text.chars().count();
    if length > room {
        let front = (room - 1) / 2;
        let back = length - (room - 1 - front);
        let (front, back): (String, String) = (
            text.chars().take(front).collect(),
            text.chars().skip(back).collect(),
        );
        *text = format!("{front}…{back}");
    }
}

/// Rows of text under headings. Columns whose heading starts with `>` are right-aligned.
#[derive(Debug)]
pub(crate) struct Table {
    headings: Vec<&'static str>,
    rows: Vec<Vec<String>>,
    feet: Vec<String>,
}

impl Table {
    /// A table without rows.
    pub(crate) fn new(headings: &[&'static str]) -> Self {
        Self {
            headings: headings.to_vec(),
            rows: Vec::new(),
            feet: Vec::new(),
        }
    }

    /// Appends a row: one text per heading, safe for a terminal.
    pub(crate) fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// Appends lines that stand below the rows.
    pub(crate) fn foot(&mut self, lines: impl IntoIterator<Item = String>) {
        self.feet.extend(lines);
    }

    /// Cuts names in their middle so that rows have at most `columns` characters; `None`: no limit.
    pub(crate) fn fit(&mut self, columns: Option<usize>) {
        let Some(columns) = columns else { return };
        for place in NAMES.map(|name| self.column(name)).into_iter().flatten() {
            let widths = self.widths();
            let others = widths.iter().sum::<usize>() - widths[place];
            let between = 2 * (widths.len() - 1);
            let room = columns.saturating_sub(others + between).max(SHORTEST_NAME);
            for cell in self.rows.iter_mut().filter_map(|row| row.get_mut(place)) {
                shorten(cell, room);
            }
        }
    }

    /// The place of the column with this heading.
    pub(crate) fn column(&self, heading: &str) -> Option<usize> {
        self.headings.iter().position(|known| *known == heading)
    }

    /// Writes headings and rows.
    ///
    /// # Errors
    /// Those of writing.
    pub(crate) fn write(&self, out: &mut impl Write, style: Style) -> io::Result<()> {
        let widths = self.widths();
        let names = self.headings.iter().map(|h| h.trim_start_matches('>'));
        let line = self.line(names, &widths);
        writeln!(out, "{}{}{}", style.heading(), line, style.plain())?;
        for row in &self.rows {
            writeln!(
                out,
                "{}",
                self.line(row.iter().map(String::as_str), &widths)
            )?;
        }
        let mut feet = self.feet.iter();
        feet.try_for_each(|line| writeln!(out, "{line}"))
    }

    fn widths(&self) -> Vec<usize> {
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            let heading = self.headings[column].trim_start_matches('>').len();
            cells
                .map(|c| c.chars().count())
                .max()
                .unwrap_or(0)
                .max(heading)
        };
        (0..self.headings.len()).map(width).collect()
    }

    fn line<'a>(&self, cells: impl Iterator<Item = &'a str>, widths: &[usize]) -> String {
        let mut line = String::new();
        for ((cell, width), heading) in cells.zip(widths).zip(&self.headings) {
            let padding = " ".repeat(width - cell.chars().count().min(*width));
            if !line.is_empty() {
                line.push_str("  ");
            }
            if heading.starts_with('>') {
                line = line + &padding + cell;
            } else {
                line = line + cell + &padding;
            }
        }
        line.trim_end().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_cut_where_the_terminal_ends() {
        let mut table = Table::new(&[">COUNT", "NAME", "MODULE"]);
        let long = format!("begin{}end", "ä".repeat(200));
        table.row(vec!["1".into(), long.clone(), "server".into()]);
        table.row(vec!["12".into(), "short".into(), "server".into()]);
        table.foot(["a line".to_owned()]);
        let written = |table: &Table| {
            let mut out = Vec::new();
            table.write(&mut out, Style::none()).unwrap();
            String::from_utf8(out).unwrap()
        };
        table.fit(None);
        assert!(written(&table).contains(&long));
        table.fit(Some(80));
        let text = written(&table);
        let widths: Vec<_> = text.lines().map(|line| line.chars().count()).collect();
        assert_eq!(widths, [80, 80, 80, 6], "{text}");
        assert!(
            text.contains("  begin") && text.contains("end  server"),
            "{text}"
        );
        assert!(text.contains("…") && text.contains("  short  "), "{text}");
        // A terminal that is too narrow for anything.
        table.fit(Some(3));
        assert!(
            written(&table)
                .lines()
                .all(|line| line.chars().count() <= 35)
        );
    }
}
