//! `run`: record a program, then say in short what it did.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;

use super::record::{self, DumpOptions};
use super::report;
use crate::input;
use crate::output::file::{DEFAULT_FILE, is_standard};
use crate::output::units::{count, counted, duration};
use crate::output::{Exit, Failure, Style, note};
use crate::recording;

/// Record a program until it ends, then show a short summary
#[derive(Debug, clap::Args)]
#[command(override_usage = "ringmark run [OPTIONS] -- CMD...")]
#[command(after_help = "\
The same as 'record -- CMD', then 'verify' and 'report' on standard error.

Example: ringmark run -- ./server --port 80")]
pub(crate) struct Args {
    /// Where the dump goes; a file that is there becomes FILE.old
    #[arg(short, long, value_name = "FILE", default_value = DEFAULT_FILE)]
    output: PathBuf,
    /// Trace functions, too (comes with a later release)
    #[arg(long, value_name = "TRACER")]
    tracer: Option<String>,
    /// Say how the recording went in FILE, as one line of JSON
    #[arg(long, value_name = "FILE")]
    status_file: Option<PathBuf>,
    /// The program with its arguments
    #[arg(last = true, value_name = "CMD", required = true)]
    command: Vec<OsString>,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        refuse_tracer(self.tracer.as_deref())?;
        let dump = DumpOptions::default();
        let result = record::command(&self.command, &self.output, &dump);
        recording::write_status(self.status_file.as_ref(), &result)?;
        let outcome = match result? {
            Ok(outcome) => outcome,
            Err(not_started) => {
                note(&not_started.text);
                return Ok(not_started.exit);
            }
        };
        record::tell(&outcome, &self.output);
        if outcome.progress.sessions_done > 0 && !is_standard(&self.output) {
            self.summary()?;
        }
        Ok(outcome.exit())
    }

    fn summary(&self) -> anyhow::Result<()> {
        let dump = input::read(std::slice::from_ref(&self.output))?;
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
        report::table(&report::rows(&dump)).write(&mut out, Style::none())?;
        Ok(())
    }
}

fn refuse_tracer(tracer: Option<&str>) -> Result<(), Failure> {
    match tracer {
        None => Ok(()),
        Some("function" | "graph") => Err(Failure::usage(format!(
            "--tracer {}: this release records events only, function tracing comes with a later one",
            tracer.unwrap_or_default()
        ))),
        Some(other) => Err(Failure::usage(format!(
            "--tracer: found {other:?}, expected function or graph"
        ))),
    }
}
