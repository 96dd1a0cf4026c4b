//! `export --format csv`: spans, calls and events as rows of a table.

use std::io::{self, Write};

use ringmark_decoder::{ArgColumn, Chosen, CsvWriter, Dump, RowsEnd};

use ringmark_console::note;
use ringmark_console::units::{count, counted};

/// Bytes of lines that are gathered before they are written.
const LINES_BYTES: usize = 60 << 10;

/// Writes a line for each row that is chosen. `args` are arguments that have a column of their own.
///
/// # Errors
/// Those of writing.
pub(super) fn write_csv(
    dump: &Dump,
    (chosen, args): (&Chosen, &[ArgColumn]),
    out: &mut impl Write,
) -> io::Result<RowsEnd> {
    let mut writer = CsvWriter::new(args.to_vec()).with_switches(dump);
    let mut lines = Vec::with_capacity(LINES_BYTES + 4096);
    writer.header(&mut lines);
    let end = dump.each_row(chosen.clone(), |row| {
        writer.write(row, &mut lines);
        if lines.len() >= LINES_BYTES {
            out.write_all(&lines)?;
            lines.clear();
        }
        io::Result::Ok(())
    })?;
    out.write_all(&lines)?;
    Ok(end)
}

/// Says what has no row, or none after it.
pub(super) fn tell(end: &RowsEnd) {
    tell_open(end);
    if end.lost_after > 0 {
        note(&format!(
            "{} lost after the last row of their thread: no lost_before counts them",
            counted(end.lost_after, "event")
        ));
    }
}

/// Says what was open at the end.
pub(super) fn tell_open(end: &RowsEnd) {
    if end.open > 0 {
        note(&format!(
            "spans and calls that were open at the end, without a row: {}; 'ringmark cat' shows them",
            count(end.open)
        ));
    }
}
