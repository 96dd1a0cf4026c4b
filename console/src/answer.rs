//! The answer to a query: rows whose columns the question names.

use std::io::{self, Write};

use ringmark_decoder::{csv_text, escape};
use serde_json::Value;

use crate::terminal::{columns, printable};
use crate::units::counted;
use crate::{Sink, Style, Table};

/// Rows that a table has at most: it is printed when all of them are known.
const ROWS_MAX: u64 = 10_000;

/// The format of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// For people: as wide as the terminal, at most 10,000 rows
    Table,
    /// Text, RFC 4180
    Csv,
    /// An object in each line
    Json,
}

/// A cell of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cell<'c> {
    /// Nothing is known.
    Null,
    /// A number or a truth value, as JSON has it.
    Plain(&'c str),
    /// A text.
    Text(&'c str),
}

/// Prints an answer, row by row.
pub struct Answer {
    format: Format,
    names: Vec<String>,
    table: Table,
    rows: u64,
    out: Sink,
    /// Memory that is used again.
    line: Vec<u8>,
}

impl Answer {
    /// `columns`: the name of each, and whether it has numbers.
    pub fn new(format: Format, columns: Vec<(String, bool)>) -> Self {
        let heading = |(name, is_number): &(String, bool)| {
            let name = printable(name);
            if *is_number { format!(">{name}") } else { name }
        };
        Self {
            format,
            table: Table::of(columns.iter().map(heading).collect()),
            names: columns.into_iter().map(|(name, _)| name).collect(),
            rows: 0,
            out: Sink::direct(),
            line: Vec::new(),
        }
    }

    /// Adds a row: a cell for each column.
    ///
    /// # Errors
    /// Those of writing.
    pub fn row(&mut self, cells: &[Cell<'_>]) -> io::Result<()> {
        self.rows += 1;
        self.line.clear();
        match self.format {
            Format::Table if self.rows > ROWS_MAX => return Ok(()),
            Format::Table => {
                self.table.row(cells.iter().map(shown).collect());
                return Ok(());
            }
            Format::Csv => {
                if self.rows == 1 {
                    self.header();
                }
                csv(cells, &mut self.line);
            }
            Format::Json => json(&self.names, cells, &mut self.line),
        }
        self.out.write_all(&self.line)
    }

    fn header(&mut self) {
        let names: Vec<_> = self.names.iter().map(|name| Cell::Text(name)).collect();
        csv(&names, &mut self.line);
    }

    /// Prints what is left.
    ///
    /// # Errors
    /// Those of writing.
    pub fn finish(mut self) -> io::Result<()> {
        match self.format {
            Format::Table => {
                let more = self.rows.saturating_sub(ROWS_MAX);
                let foot = format!("and {}; --format csv has all", counted(more, "more row"));
                self.table.foot((more > 0).then_some(foot));
                self.table.fit_texts(columns(io::stdout()));
                self.table.write(&mut self.out, Style::detect())?;
            }
            Format::Csv if self.rows == 0 => {
                self.header();
                self.out.write_all(&self.line)?;
            }
            Format::Csv | Format::Json => {}
        }
        self.out.finish()
    }
}

fn shown(cell: &Cell<'_>) -> String {
    match cell {
        Cell::Null => "-".to_owned(),
        Cell::Plain(text) | Cell::Text(text) => printable(text),
    }
}

/// Appends a line of CSV.
fn csv(cells: &[Cell<'_>], line: &mut Vec<u8>) {
    for (number, cell) in cells.iter().enumerate() {
        if number > 0 {
            line.push(b',');
        }
        match cell {
            Cell::Null => {}
            Cell::Plain(text) => line.extend_from_slice(text.as_bytes()),
            Cell::Text(text) => csv_text(text.as_bytes(), line),
        }
    }
    line.extend_from_slice(b"\r\n");
}

/// Appends a line with an object, its members in the order of the columns.
fn json(names: &[String], cells: &[Cell<'_>], line: &mut Vec<u8>) {
    let mut text = String::from("{");
    for (name, cell) in names.iter().zip(cells) {
        if text.len() > 1 {
            text.push(',');
        }
        text += &Value::from(name.as_str()).to_string();
        text.push(':');
        match cell {
            Cell::Null => text += "null",
            Cell::Plain(plain) => text += plain,
            Cell::Text(of) => text += &Value::from(*of).to_string(),
        }
    }
    text.push('}');
    line.extend_from_slice(escape::json_line(text).as_bytes());
    line.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    const CELLS: [Cell<'_>; 4] = [
        Cell::Text("=a,\"\x1b"),
        Cell::Plain("-7"),
        Cell::Null,
        Cell::Plain("true"),
    ];

    #[test]
    fn a_row_is_one_line_that_does_nothing() {
        let mut line = Vec::new();
        csv(&CELLS, &mut line);
        assert_eq!(
            String::from_utf8_lossy(&line),
            "\"'=a,\"\"\\x1b\",-7,,true\r\n"
        );
        let names = ["z", "a\"", "n", "b"].map(str::to_owned);
        line.clear();
        json(&names, &CELLS, &mut line);
        assert_eq!(
            String::from_utf8_lossy(&line),
            "{\"z\":\"=a,\\\"\\u001b\",\"a\\\"\":-7,\"n\":null,\"b\":true}\n"
        );
        assert_eq!(CELLS.map(|cell| shown(&cell))[1..], ["-7", "-", "true"]);
    }
}
