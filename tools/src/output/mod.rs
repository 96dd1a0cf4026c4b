//! What commands print: exit codes and errors, standard output with its pager and colours, tables,
//! JSON, lines of events, units, notices and progress on standard error.

pub(crate) mod answer;
pub(crate) mod endings;
pub(crate) mod event_lines;
mod failure;
pub(crate) mod file;
pub(crate) mod json;
mod json_v1;
pub(crate) mod last_words;
pub(crate) mod log;
pub(crate) mod metrics_file;
pub(crate) mod pager;
pub(crate) mod printer;
pub(crate) mod progress;
pub(crate) mod repeats;
mod screen;
pub(crate) mod service;
pub(crate) mod shell;
mod sink;
pub(crate) mod spans;
pub(crate) mod status;
mod style;
mod table;
mod terminal;
pub(crate) mod tree;
pub(crate) mod units;
pub(crate) mod width;

pub(crate) use failure::{Exit, Failure, report, text};
pub(crate) use sink::Sink;
pub(crate) use style::{Color, Style};
pub(crate) use table::Table;
pub(crate) use terminal::{columns, note, note_lines, printable};
