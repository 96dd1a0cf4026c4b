//! `cut`: writes a piece of trace files to a trace file of its own.

use std::path::PathBuf;

use ringmark_decoder::PieceFigures;
use ringmark_reader::{Dump, Durability};

use crate::input::trace_files::Input;
use crate::options::event_filter::TimeOptions;
use ringmark_console::file::destination;
use ringmark_console::units::{count, counted, size};
use ringmark_console::{Exit, Failure, note};

/// Cut a piece out of trace files, to hand it on
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The piece is a trace file: what a recorder would have written that stopped at
--to. With the same --from and --to, commands show of it what they show of FILE,
but for three things. A native span that ends after --to is not known, so events
inside it have no span. What began before --from has its duration, but not how
much of it was spent inside other things; a figure says so. The piece has losses
of unknown time only of sessions that end in it.

Events outside are taken out, bytes and all, but for the beginnings of spans and
calls that reach into the piece. Commands show these, too, without --from.

Look at the piece before you hand it on. It says about each process: host,
command line, names of all events, functions and source files.

Examples:
  ringmark cut run.rmk --from 2s --to 2.5s -o small.rmk
  ringmark cut /var/lib/ringmark --host web-1 --from 2026-01-31T12:00:00Z \\
      -o web-1.rmk
  ringmark cut run.rmk -p 812 -o shop.rmk")]
pub(crate) struct Args {
    #[command(flatten)]
    input: Input,
    /// Trace file to write; one that is there becomes FILE.old
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    #[command(flatten)]
    times: TimeOptions,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        if let Some(pid) = self.input.process()? {
            let text = format!(
                "-p {pid}: expected FILE to cut from; 'ringmark snapshot -p {pid}' writes one"
            );
            return Err(Failure::usage(text).into());
        }
        if self.times.is_reversed()? {
            let text = "--from, --to: found an end before the beginning, expected a later one";
            return Err(Failure::usage(text).into());
        }
        // What is earlier may begin what reaches into the piece.
        let dump = self.input.read_for(&self.times.until()?)?;
        let filter = self.times.within(&dump)?;
        let piece = dump.cut(&filter);
        let figures = piece.figures();
        if figures.events == 0 {
            let text = format!(
                "nothing to cut: none of {} is in the piece; nothing was written",
                counted(figures.left_out + figures.around, "event")
            );
            return Err(Failure::unreadable(text).into());
        }
        let to = destination(&self.output)?;
        let mut file = Dump::create(&to, Durability::System)
            .map_err(|error| Failure::usage(error.to_string()))?;
        piece.write(|blocks| file.add_blocks(blocks))?;
        file.finish()?;
        self.tell(&figures, file.bytes());
        Ok(Exit::lost_if(!dump.damage.is_empty()))
    }

    fn tell(&self, figures: &PieceFigures, bytes: u64) {
        let around = match figures.around {
            0 => String::new(),
            more => format!(" and {} that begin earlier", count(more)),
        };
        note(&format!(
            "{}: {}{around} of {}, {}; left out: {}, {}",
            self.output.display(),
            counted(figures.events, "event"),
            counted(figures.sessions, "session"),
            size(bytes),
            counted(figures.left_out, "event"),
            counted(figures.sessions_left_out, "session"),
        ));
    }
}
