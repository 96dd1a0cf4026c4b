//! Lines of OTLP in JSON, as the file receiver of the OpenTelemetry Collector reads them: a file of traces, or one
//! of logs. Each line is one message with rows of one session.
//!
//! It goes through a dump twice: [`links`] finds out which span is in which, then each row is written with the ids that
//! this gave it.

mod links;
mod message;

use std::io::{self, Write};

use ringmark_decoder::{Chosen, Dump, RowsEnd};

use links::{Links, is_span};
use message::Message;
pub use message::Signal;

/// Rows of a line, at most.
const ROWS: usize = 256;

/// Writes the chosen rows of this kind. Returns what a walk over all rows says, and how many were written.
///
/// # Errors
/// Those of `out`.
pub fn write_otlp(
    dump: &Dump,
    chosen: &Chosen,
    signal: Signal,
    out: &mut impl Write,
) -> io::Result<(RowsEnd, u64)> {
    let links = Links::of(dump, chosen);
    let (mut message, mut spans, mut written) = (Message::new(signal), 0, 0);
    let end = dump.each_row_in_spans(chosen.clone(), |row| {
        let number = spans;
        spans += usize::from(is_span(row));
        let ids = match (signal, is_span(row)) {
            (Signal::Traces, true) => links.of_span(number),
            (Signal::Logs, false) if !matches!(row.kind, "span" | "call") => links.around(row),
            _ => return Ok(()),
        };
        written += 1;
        if message.rows() == ROWS || !message.is_of(row.record.session) {
            message.write(out)?;
        }
        message.push(row, &ids);
        io::Result::Ok(())
    })?;
    message.write(out)?;
    Ok((end, written))
}
