//! Columns that fit their content.

use std::io::{self, Write};

use super::Style;

/// Rows of text under headings. Columns whose heading starts with `>` are right-aligned.
#[derive(Debug)]
pub(crate) struct Table {
    headings: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table without rows.
    pub(crate) fn new(headings: &[&'static str]) -> Self {
        Self {
            headings: headings.to_vec(),
            rows: Vec::new(),
        }
    }

    /// Appends a row: one text per heading, safe for a terminal.
    pub(crate) fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// Writes headings and rows.
    ///
    /// # Errors
    /// What writing said.
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
        Ok(())
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
