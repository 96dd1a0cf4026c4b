//! Rows as lines of CSV: the columns that every row has, one for each promoted argument, and one
//! with the other arguments as JSON.

use crate::blocks::page::Page;
use crate::rows::args::ArgColumn;
use crate::rows::cell;
use crate::rows::column::{Column, OF_PAGE};
use crate::rows::row::Row;
use crate::trace_file::dump::Dump;
use crate::trace_file::session::Session;

/// Writes rows.
#[derive(Debug, Default)]
pub struct CsvWriter<'d> {
    promoted: Vec<ArgColumn>,
    has_switches: bool,
    /// The page whose cells `of_page` are.
    page: Option<&'d Page>,
    of_page: Vec<u8>,
    /// Cells of the promoted arguments, and the others as JSON; memory that is used again.
    cells: Vec<Vec<u8>>,
    others: Vec<u8>,
}

impl<'d> CsvWriter<'d> {
    /// A writer that gives each of these arguments a column.
    #[must_use]
    pub fn new(promoted: Vec<ArgColumn>) -> Self {
        Self {
            cells: vec![Vec::new(); promoted.len()],
            promoted,
            ..Self::default()
        }
    }

    /// The same, with what threads did where a dump has switches of them.
    #[must_use]
    pub fn with_switches(self, dump: &Dump) -> Self {
        Self {
            has_switches: dump.sessions.iter().any(Session::has_switches),
            ..self
        }
    }

    fn of_switches(&self) -> &'static [(&'static str, Column)] {
        match self.has_switches {
            true => Column::of_switches(),
            false => &[],
        }
    }

    /// Appends the line with the names of the columns.
    pub fn header(&self, out: &mut Vec<u8>) {
        for (name, _) in Column::all().iter().chain(self.of_switches()) {
            out.extend_from_slice(name.as_bytes());
            out.push(b',');
        }
        for arg in &self.promoted {
            Column::Arg(arg.name.clone()).header(out);
            out.push(b',');
        }
        out.extend_from_slice(b"args\r\n");
    }

    /// Appends the line of a row.
    pub fn write(&mut self, row: &Row<'_, 'd>, out: &mut Vec<u8>) {
        let page = row.record.page;
        if !self.page.is_some_and(|known| std::ptr::eq(known, page)) {
            self.page = Some(page);
            self.of_page.clear();
            cells(&Column::all()[OF_PAGE], row, &mut self.of_page);
        }
        cells(&Column::all()[..OF_PAGE.start], row, out);
        out.extend_from_slice(&self.of_page);
        cells(&Column::all()[OF_PAGE.end..], row, out);
        cells(self.of_switches(), row, out);
        let Self {
            promoted,
            cells,
            others,
            ..
        } = self;
        cells.iter_mut().for_each(Vec::clear);
        others.clear();
        row.split_args(
            promoted,
            |place, value, budget| {
                cell::value(value, budget, &mut cells[place]);
                true
            },
            others,
        );
        for cell in &self.cells {
            out.extend_from_slice(cell);
            out.push(b',');
        }
        if !self.others.is_empty() {
            cell::json(&self.others, out);
        }
        out.extend_from_slice(b"\r\n");
    }
}

/// Appends the cells of a row in these columns, each with a comma after it.
fn cells(columns: &[(&str, Column)], row: &Row<'_, '_>, out: &mut Vec<u8>) {
    for (_, column) in columns {
        column.cell(row, out);
        out.push(b',');
    }
}
