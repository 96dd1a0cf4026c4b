//! What commands print: exit codes and errors, standard output with its pager and colours, tables,
//! JSON, lines of events, units, notices and progress on standard error.

pub(crate) mod endings;
pub(crate) mod event_lines;
pub(crate) mod last_words;
mod screen;
pub(crate) mod spans;
pub(crate) mod tree;
