//! `demo`: a real job is traced, recorded while it runs, verified and shown. Then the demo measures
//! what tracing costs, and proves that its sums are right when a program is killed, or when its rings
//! are far too small.
//!
//! `index` is the job, with its `queue`; `child` runs it in a traced process that `parent` starts.
//! `main_job` records it, `show` prints what its trace says, `proof` the rest.

mod child;
mod index;
mod main_job;
mod median;
mod parent;
mod proof;
mod queue;
mod show;
mod trace_file;

use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use ringmark_decoder::escape::Printable;

pub(crate) use child::JobArgs;
use main_job::record_main;
use parent::Jobs;

use crate::output::file::is_standard;
use crate::output::{Exit, Failure, Sink, Style};

/// Index the files of a directory, traced and recorded; then measure what that cost
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Several threads read the regular files below DIR, including hidden ones. Links
are not followed; '.git', 'target' and the trace file itself are skipped.

Exit code 1: events were lost in the recording, or a sum is wrong.

Example: ringmark demo /usr/include")]
pub(crate) struct Args {
    /// The directory to index
    #[arg(default_value = ".")]
    dir: PathBuf,
    /// Trace file to write; one that is there becomes FILE.old
    #[arg(short, long, value_name = "FILE", default_value = "demo.rmk")]
    output: PathBuf,
    /// Only index, traced as RINGMARK says like any program, so that you can record it yourself
    #[arg(long)]
    index: bool,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        check_directory(&self.dir)?;
        if self.index {
            return JobArgs::by_hand(self.dir).run();
        }
        if is_standard(&self.output) {
            return Err(Failure::usage(
                "demo: found -o -, expected a file: standard output is for people",
            )
            .into());
        }
        let mut out = Sink::direct();
        let style = Style::detect();
        let dir = shown(&self.dir);
        let dir = show::shortened(&dir, show::DIR_COLUMNS);
        let workers = child::workers();
        writeln!(
            out,
            "{}Indexing {dir} with {workers} threads, traced and recorded{}",
            style.heading(),
            style.plain()
        )?;
        out.flush()?;
        let mut jobs = Jobs::new(self.dir, workers);
        let main = record_main(&mut jobs, &self.output)?;
        let is_right = show::main(&mut out, style, &main, &self.output)?;
        let proved = proof::all(&mut out, style, &mut jobs, &main.report)?;
        show::next(&mut out, style, &self.output, jobs.dir())?;
        out.finish()?;
        Ok(Exit::lost_if(!is_right || !proved))
    }
}

/// A path, made safe for a terminal.
fn shown(path: &Path) -> String {
    Printable(path.as_os_str().as_bytes()).to_string()
}

fn check_directory(dir: &Path) -> Result<(), Failure> {
    let shown = shown(dir);
    match fs::metadata(dir) {
        Ok(about) if about.is_dir() => Ok(()),
        Ok(_) => Err(Failure::unreadable(format!(
            "{shown}: is no directory, expected one to index"
        ))),
        Err(error) => Err(Failure::unreadable(format!(
            "{shown}: cannot be indexed: {error}"
        ))),
    }
}
