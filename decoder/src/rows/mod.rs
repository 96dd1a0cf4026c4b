//! A trace as a table: a row for each span, call and event that passes, in columns that databases
//! and spreadsheets know.
//!
//! The walk over the records chooses by the same rules as [`crate::Dump::figures`] does: a span or a
//! call belongs to the time of its end. What a row says does not depend on which files were read: a
//! beginning in a record before the chosen time counts as not known.
//!
//! ```
//! use ringmark_decoder::{Chosen, CsvWriter, DumpBuilder};
//!
//! let dump = DumpBuilder::new().bare().finish();
//! let (mut writer, mut table) = (CsvWriter::new(Vec::new()), Vec::new());
//! writer.header(&mut table);
//! let end = dump.each_row(Chosen::default(), |row| {
//!     writer.write(row, &mut table);
//!     Ok::<(), ()>(())
//! });
//! assert_eq!(end.map(|end| end.rows), Ok(0));
//! assert!(table.starts_with(b"ts_ns,dur_ns,"));
//! ```
//!
//! [`row`] says what a row is, [`each`] walks over those of a dump, [`column`] and
//! [`args`] name the columns, [`cell`] and [`csv`] write them as CSV, and [`groups`] sums rows up by columns.

pub(crate) mod args;
pub(crate) mod cell;
pub(crate) mod column;
pub(crate) mod csv;
pub(crate) mod each;
pub(crate) mod groups;
mod near;
pub(crate) mod row;
