//! `cut`: writes a piece of trace files to a trace file of its own.

use std::path::PathBuf;
use std::time::Duration;

use ringmark_decoder::PieceFigures;
use ringmark_reader::{Dump, Durability};

use crate::input::trace_files::Input;
use crate::options::event_filter::TimeOptions;
use crate::output::file::destination;
use crate::output::units::{count, counted, parse_duration, size, whole_ns};
use crate::output::{Exit, Failure, note};

/// Cut a piece out of trace files, to hand it on
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The piece is a trace file that all commands read. 'ringmark cat PIECE' shows
what 'ringmark cat FILE' shows with the same options.

Events outside the piece are taken out, bytes and all, but for those that it
needs: beginnings of spans and calls that reach into it, and the spans around
its events.

What goes along, look before you hand it on: host, command line and other facts
about each process; names of all events, functions and source files; counts of
what was lost; how the process ended.

Examples:
  ringmark cut run.rmk --from 2s --to 2.5s -o small.rmk
  ringmark cut /var/lib/ringmark --host web-1 --last 10s -o web-1.rmk
  ringmark cut run.rmk -p 812 --tid 815 -o thread.rmk")]
pub(crate) struct Args {
    #[command(flatten)]
    input: Input,
    /// Trace file to write; one that is there becomes FILE.old
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    #[command(flatten)]
    times: TimeOptions,
    /// Only this time before the last event
    #[arg(long, value_name = "TIME", value_parser = parse_duration, conflicts_with = "from")]
    last: Option<Duration>,
    /// Only this thread; may be given several times
    #[arg(long, value_name = "TID")]
    tid: Vec<u32>,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        if let Some(pid) = self.input.process()? {
            let text = format!(
                "-p {pid}: expected FILE to cut from; 'ringmark snapshot -p {pid}' writes one"
            );
            return Err(Failure::usage(text).into());
        }
        let mut filter = self.times.build()?;
        for tid in &self.tid {
            filter.tid(&tid.to_string())?;
        }
        if filter.is_reversed() {
            let text = "--from, --to: found an end before the beginning, expected a later one";
            return Err(Failure::usage(text).into());
        }
        let dump = self.input.read_for(&filter)?;
        let found = dump.verify();
        if let (Some(last), Some(end_ns)) = (self.last, found.last_ns) {
            filter.from_wall_ns(end_ns.saturating_sub(whole_ns(last)));
        }
        let piece = dump.cut(&filter);
        let figures = piece.figures();
        if figures.events == 0 {
            let text = format!(
                "nothing to cut: none of {} lies in the piece; nothing was written",
                counted(found.events, "event")
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
            more => format!(" and {} around them", count(more)),
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
