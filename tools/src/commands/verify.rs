//! `verify`: says whether trace files are whole, and what was lost.

use std::io::Write;

use crate::input::trace_files::{self, Files};
use crate::output::json::JsonOption;
use crate::output::last_words::{self, Show};
use crate::output::{Exit, Sink};

/// Check that trace files are whole, and say what was lost
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit code 0: fine; 1: events are lost, damaged or missing; 3: no trace file.

'complete' is yes if every event of every session is in the file or counted. A
file that was cut off, or that holds sessions which go on, is not complete.
'cut_off' counts copies (*.damaged) of what a collector cut off the ends of a
store's segments. You can look at them, and delete them. 'unknown_blocks' counts
what a newer version wrote and this one cannot read.")]
pub(crate) struct Args {
    #[command(flatten)]
    files: Files,
    #[command(flatten)]
    json: JsonOption,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        let dump = self.files.read_quietly()?;
        let mut found = dump.verify();
        found.cut_off = trace_files::cut_off(&self.files.files)?;
        let mut out = Sink::direct();
        if self.json.is_on() {
            let object = serde_json::from_str(&found.to_json())?;
            writeln!(out, "{}", self.json.form(object))?;
        } else {
            write!(out, "{found}")?;
            out.write_all(last_words::text(&dump, Show::Short).as_bytes())?;
        }
        out.finish()?;
        Ok(Exit::lost_if(!found.is_clean()))
    }
}
