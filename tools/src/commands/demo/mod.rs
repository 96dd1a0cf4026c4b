//! `demo`: a real job is traced, recorded while it runs, verified and shown. Then the demo measures
//! what tracing costs, and proves that its sums are right when a program is killed, or when its rings
//! are far too small.
//!
//! `index` is the job, with its `queue`; `child` runs it in a traced process that `parent` starts.
//! `show` prints what the trace says, `proof` the rest.

mod child;
mod index;
mod parent;
mod proof;
mod queue;
mod show;

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use ringmark_decoder::DumpBuilder;
use ringmark_decoder::escape::Printable;
use ringmark_reader::{Dump, Durability, RecordOptions, Selection};

pub(crate) use child::JobArgs;
use child::Trace;
use parent::{Jobs, Report};

use crate::output::file::{destination, is_standard};
use crate::output::{Exit, Failure, Sink, Style, note};
use crate::recording::outcome::Outcome;
use crate::recording::sessions;

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

/// The main job, its recording and its trace.
struct MainJob {
    report: Report,
    outcome: Outcome,
    dump: ringmark_decoder::Dump,
}

fn record_main(jobs: &mut Jobs, output: &Path) -> anyhow::Result<MainJob> {
    let dump = Dump::create(&destination(output)?, Durability::System)?;
    let skip = [OsString::from("--skip"), absolute(output)?.into()];
    let job = jobs.start(Trace::Record, None, &skip)?;
    let selection = Selection::Path(job.session()?);
    let outcome = sessions::record(selection, dump, RecordOptions::default())?;
    outcome.trouble.iter().for_each(|text| note(text));
    let report = job.report()?;
    Ok(MainJob {
        report,
        outcome,
        dump: read(output)?,
    })
}

/// The absolute path of a file that need not be there yet.
fn absolute(path: &Path) -> io::Result<PathBuf> {
    let parent = path.parent().filter(|p| !p.as_os_str().is_empty());
    let parent = fs::canonicalize(parent.unwrap_or(Path::new(".")))?;
    Ok(parent.join(path.file_name().unwrap_or_default()))
}

fn read(path: &Path) -> anyhow::Result<ringmark_decoder::Dump> {
    let name = path.display().to_string();
    let file = fs::File::open(path)
        .map_err(|error| Failure::unreadable(format!("{name}: cannot be opened: {error}")))?;
    let mut builder = DumpBuilder::new();
    let read = builder.read(&name, file);
    read.map_err(|damage| Failure::unreadable(damage.to_string()))?;
    Ok(builder.finish())
}

/// The median, 0 if there are no numbers. Sorts them.
fn median(numbers: &mut [f64]) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied().unwrap_or(0.0)
}
