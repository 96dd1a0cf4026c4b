//! `run`: records a program, then prints a short summary.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;

use crate::input::trace_files;
use crate::output::file::{DEFAULT_FILE, is_standard};
use crate::output::units::{count, counted, duration};
use crate::output::{Exit, Style, columns, note};
use crate::recording::command;
use crate::recording::outcome::{Outcome, write_status};
use crate::recording::trace_file::FileOptions;
use crate::tables::calls::CallOptions;
use crate::tables::figures::{FigureOptions, Figures};
use crate::tables::{profile_table, summary};
use crate::tracing::preload::FunctionOptions;

/// Record a program until it ends, then show a short summary
#[derive(Debug, clap::Args)]
#[command(override_usage = "ringmark run [OPTIONS] -- CMD...")]
#[command(after_help = "\
The same as 'record -- CMD', then 'verify' and 'report' on standard error.

Examples:
  ringmark run -- ./server --port 80
  ringmark run --kind graph --filter 'parse_*' -- ./server --port 80")]
pub(crate) struct Args {
    /// Trace file to write; one that is there becomes FILE.old
    #[arg(short, long, value_name = "FILE", default_value = DEFAULT_FILE)]
    output: PathBuf,
    /// Write to FILE how the recording went, as one line of JSON
    #[arg(long, value_name = "FILE")]
    status_file: Option<PathBuf>,
    /// Print names at full length, even on a narrower terminal
    #[arg(long)]
    wide: bool,
    /// The program with its arguments
    #[arg(last = true, value_name = "CMD", required = true)]
    command: Vec<OsString>,
    // Last: its heading stands above all options that follow.
    #[command(flatten)]
    functions: FunctionOptions,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        let result = self.record();
        write_status(self.status_file.as_ref(), &result)?;
        let outcome = result?;
        outcome.tell(&self.output);
        if outcome.progress.sessions_done > 0 && !is_standard(&self.output) {
            self.summary()?;
        }
        outcome.tell_ends(&self.output);
        Ok(outcome.exit())
    }

    fn record(&self) -> anyhow::Result<Outcome> {
        let (preload, file) = (self.functions.preload()?, FileOptions::default());
        command::record(&self.command, &self.output, &file, preload.as_ref())
    }

    fn summary(&self) -> anyhow::Result<()> {
        let dump = trace_files::read(std::slice::from_ref(&self.output))?;
        let found = dump.verify();
        let took = found.last_ns.unwrap_or(0) - found.first_ns.unwrap_or(0);
        let mut out = io::stderr().lock();
        writeln!(
            out,
            "{} in {}, {}; {} lost, {} missing",
            counted(found.events, "event"),
            duration(took),
            counted(found.rings, "ring"),
            count(found.lost),
            count(found.missing)
        )?;
        let figures = Figures::of(&dump, &FigureOptions::default())?;
        let profiles = profile_table::in_dump(&dump, &CallOptions::default())?;
        let is_untraced = figures.functions.is_empty() && profiles.is_empty();
        if is_untraced && self.functions.kind.is_some() {
            drop(out);
            note(
                "no call of a function was recorded: does --filter match functions that are called, and does a trigger, if there is one, start the tracer? 'ringmark functions FILE' lists functions that can be traced",
            );
            out = io::stderr().lock();
        }
        for mut table in summary::tables(&figures, &profiles) {
            table.fit(columns(io::stderr()).filter(|_| !self.wide));
            table.write(&mut out, Style::none())?;
        }
        Ok(())
    }
}
