//! `demo`: a traced job is killed, and its events are read back. Then the same job runs to its end,
//! recorded, verified and shown. Last, the demo measures what tracing costs, and proves that its sums
//! are right when rings are far too small.
//!
//! `index` is the job, with its `queue`; `child` runs it in a traced process that `parent` starts.
//! `directory` chooses what to index. `main_job` records it, `show` prints what its trace says,
//! `proof` the rest.

mod child;
mod directory;
mod index;
mod main_job;
mod median;
mod parent;
mod proof;
mod queue;
mod show;
mod trace_file;

use std::io::Write;
use std::path::PathBuf;

pub(crate) use child::JobArgs;
use directory::shown;
use main_job::record_main;
use parent::Jobs;

use ringmark_console::file::is_standard;
use ringmark_console::{Exit, Failure, Sink, Style};

/// Kill a traced program and read its events back, then trace a real job and measure the cost
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The job: several threads read the regular files below DIR, including hidden
ones. Links are not followed; other file systems, '.git', 'target' and the trace
file itself are skipped. Without DIR it is the current directory, or one of the
system's if that is empty.

Exit code 1: events were lost in the recording, or a sum is wrong.

Example: ringmark demo /usr/include")]
pub(crate) struct Args {
    /// The directory to index; by default the current one
    dir: Option<PathBuf>,
    /// Trace file to write; one that is there becomes FILE.old
    #[arg(short, long, value_name = "FILE", default_value = "demo.rmk")]
    output: PathBuf,
    /// Only index, traced as RINGMARK says like any program, so that you can record it yourself
    #[arg(long)]
    index: bool,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        let dir = directory::chosen(self.dir)?;
        if self.index {
            return JobArgs::by_hand(dir.path).run();
        }
        if is_standard(&self.output) {
            return Err(Failure::usage(
                "demo: found -o -, expected a file: standard output is for people",
            )
            .into());
        }
        let mut out = Sink::direct();
        let style = Style::detect();
        let workers = child::workers();
        let shown = show::shortened(&shown(&dir.path), show::DIR_COLUMNS);
        let mut jobs = Jobs::new(dir.path, workers);
        let killed = proof::killed(&mut out, style, &mut jobs)?;
        if let Some(reason) = dir.reason {
            writeln!(out, "\n{reason}")?;
        }
        writeln!(
            out,
            "\n{}Indexing {shown} with {workers} threads, traced and recorded{}",
            style.heading(),
            style.plain()
        )?;
        out.flush()?;
        let main = record_main(&mut jobs, &self.output, dir.files_max)?;
        let is_right = show::main(&mut out, style, &main, &self.output)?;
        let proved = proof::cost_and_overload(&mut out, style, &mut jobs, &main.report)?;
        show::next(&mut out, style, &self.output, jobs.dir())?;
        out.finish()?;
        Ok(Exit::lost_if(!killed || !is_right || !proved))
    }
}
