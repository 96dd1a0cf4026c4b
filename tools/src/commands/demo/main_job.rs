//! The job that is shown: recorded while it runs, its trace read back.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::{fs, io};

use ringmark_reader::{Dump, Durability, RecordOptions, Selection};

use super::child::Trace;
use super::parent::{Jobs, Report};
use super::trace_file::read;
use crate::recording::outcome::Outcome;
use crate::recording::sessions;
use crate::recording::watches::ThreadOptions;
use ringmark_console::file::destination;
use ringmark_console::note;

/// The main job, its recording and its trace.
pub(super) struct MainJob {
    pub(super) report: Report,
    pub(super) outcome: Outcome,
    pub(super) dump: ringmark_decoder::Dump,
}

/// Runs the job, with at most that number of files, and records it while it runs.
///
/// # Errors
/// It cannot be started, recorded, or read back.
pub(super) fn record_main(
    jobs: &mut Jobs,
    output: &Path,
    files_max: Option<u64>,
) -> anyhow::Result<MainJob> {
    let dump = Dump::create(&destination(output)?, Durability::System)?;
    let mut more = vec![OsString::from("--skip"), absolute(output)?.into()];
    more.extend(files_max.map(|files| format!("--files-max={files}").into()));
    let job = jobs.start(Trace::Record, None, &more)?;
    let selection = Selection::Path(job.session()?);
    let outcome = sessions::record(
        selection,
        dump,
        RecordOptions::default(),
        None,
        ThreadOptions::default(),
    )?;
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
