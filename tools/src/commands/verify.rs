//! `verify`: says whether trace files are whole, and what was lost.

use std::io::Write;

use ringmark_console::json::{JsonOption, Line};
use ringmark_console::wide::WideOption;
use ringmark_console::{Exit, Sink, Style};
use ringmark_decoder::Verification;

use crate::input::trace_files;
use crate::input::trace_files::Input;
use crate::output::last_words;
use crate::output::last_words::Show;
use crate::tables::host_table;

/// Check that trace files are whole, and say what was lost
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit code 0: fine; 1: events are lost, damaged or missing; 3: no trace file.

'complete' is yes if every event of every session is in the file or counted. A
file that was cut off, or that holds sessions which go on, is not complete.
'cut_off' counts copies (*.damaged) of what a collector cut off the ends of a
store's segments. You can look at them, and delete them. 'unknown_blocks' counts
what a newer version wrote and this one cannot read.

Where a session was streamed, 'missing' is what a collector had and these
files have not. 'late' may still come: another store may have it, or its host.
'unknown' was late ten minutes after its host said something last.

Examples:
  ringmark verify run.rmk
  ringmark verify /var/lib/ringmark --json")]
pub(crate) struct Args {
    #[command(flatten)]
    input: Input,
    #[command(flatten)]
    json: JsonOption,
    #[command(flatten)]
    wide: WideOption,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        let dump = self.input.read_quietly()?;
        let mut found = dump.verify_at(ringmark_console::now_ns());
        found.cut_off = trace_files::cut_off(&self.input.files())?;
        let columns = self.wide.columns().filter(|_| !self.json.is_on());
        let mut out = match self.json.is_on() {
            true => Sink::direct(),
            false => Sink::paged().within(columns),
        };
        if self.json.is_on() {
            let mut object: serde_json::Value = serde_json::from_str(&found.to_json())?;
            object["hosts"] = host_table::array(&dump);
            writeln!(out, "{}", Line(object))?;
        } else {
            write!(out, "{}", account(&found, columns.is_some()))?;
            out.write_all(last_words::text(&dump, Show::Short).as_bytes())?;
            if let Some(mut table) = host_table::table(&dump) {
                table.fit(columns);
                writeln!(out)?;
                table.write(&mut out, Style::detect())?;
            }
        }
        out.finish()?;
        Ok(Exit::lost_if(!found.is_clean()))
    }
}

/// The account of a trace as lines of text; on a terminal without what is 0.
pub(crate) fn account(found: &Verification, on_terminal: bool) -> String {
    match on_terminal {
        true => found.brief(),
        false => found.to_string(),
    }
}
