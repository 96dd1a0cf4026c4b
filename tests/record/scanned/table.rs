//! A reader of CSV as RFC 4180 has it, and no more.

use std::collections::BTreeMap;

/// Names of columns, and cells by row.
pub(crate) struct Table {
    pub(crate) header: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn read(text: &str) -> Self {
        let mut lines = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let (cells, after) = line(rest);
            lines.push(cells);
            rest = after;
        }
        let mut lines = lines.into_iter();
        let header: Vec<String> = lines.next().unwrap_or_default();
        let rows: Vec<_> = lines.collect();
        for row in &rows {
            assert_eq!(row.len(), header.len(), "{row:?}");
        }
        Self { header, rows }
    }

    /// The rows, each with its cells by column.
    pub(crate) fn rows(&self) -> impl Iterator<Item = BTreeMap<String, String>> {
        let row = |cells: &Vec<String>| {
            let cells = self.header.iter().cloned().zip(cells.iter().cloned());
            cells.collect()
        };
        self.rows.iter().map(row)
    }

    pub(crate) fn sum(&self, column: &str) -> u64 {
        let cells = self.rows().map(|row| row[column].parse::<u64>());
        cells.map(|cell| cell.expect("a number")).sum()
    }
}

/// The cells of the first line, and what follows it.
fn line(text: &str) -> (Vec<String>, &str) {
    let (mut cells, mut rest) = (Vec::new(), text);
    loop {
        let (cell, after) = cell(rest);
        cells.push(cell);
        match after.strip_prefix(',') {
            Some(next) => rest = next,
            None => {
                return (
                    cells,
                    after.strip_prefix("\r\n").expect("the end of a line"),
                );
            }
        }
    }
}

fn cell(text: &str) -> (String, &str) {
    let Some(mut rest) = text.strip_prefix('"') else {
        let end = text.find([',', '\r', '\n']).expect("the end of a cell");
        assert!(!text[..end].contains('"'), "{text}");
        return (text[..end].to_owned(), &text[end..]);
    };
    let mut cell = String::new();
    loop {
        let (before, after) = rest.split_once('"').expect("a quote at the end");
        cell.push_str(before);
        match after.strip_prefix('"') {
            Some(more) => {
                cell.push('"');
                rest = more;
            }
            None => return (cell, after),
        }
    }
}
