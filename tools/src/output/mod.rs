//! What commands print: exit codes and errors, standard output with its pager and colours, tables,
//! JSON, lines of events, units, notices and progress on standard error.

pub(crate) mod event_lines;
mod failure;
pub(crate) mod file;
pub(crate) mod json;
pub(crate) mod progress;
pub(crate) mod repeats;
mod sink;
mod table;
pub(crate) mod units;

pub(crate) use failure::{Exit, Failure, report, text};
pub(crate) use sink::{Sink, Style};
pub(crate) use table::Table;

use std::io::IsTerminal;
use std::os::fd::AsFd;

use ringmark_decoder::escape::Printable;

/// Text from a trace or from another process, made safe for a terminal.
pub(crate) fn printable(text: &str) -> String {
    Printable(text.as_bytes()).to_string()
}

/// Width of the terminal `to` in columns; `None` if it is no terminal, or does not say.
pub(crate) fn columns(to: impl IsTerminal + AsFd) -> Option<usize> {
    if !to.is_terminal() {
        return None;
    }
    let size = rustix::termios::tcgetwinsize(to).ok()?;
    Some(size.ws_col.into()).filter(|columns| *columns > 0)
}

/// Prints a line on standard error. A closed standard error is no reason to fail.
pub(crate) fn note(text: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "ringmark: {text}");
}
