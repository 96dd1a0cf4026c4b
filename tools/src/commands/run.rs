//! `run`: records a program, then prints a short summary.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::input::trace_files;
use crate::recording::command;
use crate::recording::outcome::{Outcome, write_status};
use crate::recording::settings::ProgramOptions;
use crate::recording::trace_file::FileOptions;
use crate::recording::watches::ThreadOptions;
use crate::tables::summary;
use crate::tracing::preload::FunctionOptions;
use ringmark_console::Exit;
use ringmark_console::file::{DEFAULT_FILE, is_standard};

/// Record a program until it ends, then show a short summary
#[derive(Debug, clap::Args)]
#[command(override_usage = "ringmark run [OPTIONS] [--] CMD...")]
#[command(after_help = "\
The same as 'record -- CMD', then 'verify' and 'report' on standard error.
With --kind each thread gets a ring of 8 MiB, all of them together at most
128 MiB, unless RINGMARK is set. What a full ring loses is printed; with
--wait 1s less is lost.

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
    #[command(flatten)]
    program: ProgramOptions,
    #[command(flatten)]
    threads: ThreadOptions,
    /// The program with its arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    #[arg(value_name = "CMD", required = true)]
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
        let preload = preload.as_ref();
        let to = &self.output;
        command::record(
            &self.command,
            to,
            &file,
            &self.program,
            preload,
            self.threads,
        )
    }

    fn summary(&self) -> anyhow::Result<()> {
        let dump = trace_files::read(std::slice::from_ref(&self.output))?;
        summary::print(&dump, self.wide, self.functions.kind.is_some())
    }
}
