//! `record --on-death`: a trace file for each process that dies.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use anyhow::Context;
use ringmark_reader::on_death::{self, Ends};
use ringmark_reader::{Codec, DeathWatch};

use super::signals::Signals;
use crate::output::units::count;
use crate::output::{Exit, Failure, endings, note, printable};

/// Holds all sessions until Ctrl-C, and writes a trace file into `directory` for each one whose
/// process dies.
///
/// # Errors
/// The directory is not there and cannot be made.
pub(crate) fn watch(directory: &Path, codec: Codec, ends: Ends) -> anyhow::Result<Exit> {
    make_directory(directory)?;
    let signals = Signals::watch().context("watching signals")?;
    let mut failed = false;
    let mut watch = DeathWatch::new(directory, codec);
    watch.set_ends(ends);
    watch.run(&signals.stop, |report| {
        failed |= matches!(report, on_death::WatchReport::Failed(_));
        if let Some(text) = report_text(&report) {
            note(&printable(&text));
        }
    });
    Ok(Exit::lost_if(failed))
}

/// Makes the directory for its owner alone: trace files hold what programs did.
fn make_directory(directory: &Path) -> anyhow::Result<()> {
    if directory.is_dir() {
        return Ok(());
    }
    let shown = directory.display();
    if directory.exists() {
        let text = format!("{shown}: is no directory, expected one for trace files");
        return Err(Failure::usage(text).into());
    }
    let made = DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory);
    made.map_err(|error| Failure::usage(format!("{shown}: cannot be made: {error}")))?;
    note(&format!("{shown}: made, for trace files"));
    Ok(())
}

fn report_text(report: &on_death::WatchReport) -> Option<String> {
    match report {
        on_death::WatchReport::Holding(path) => Some(format!("holding {}", path.display())),
        on_death::WatchReport::Dumped {
            dump,
            pid,
            pages,
            ending,
        } => Some(format!(
            "pid {pid}: {}: {}, {} pages",
            endings::words_in(dump, *ending),
            dump.display(),
            count(*pages)
        )),
        on_death::WatchReport::Closed(_) => None,
        on_death::WatchReport::Failed(error) => Some(error.to_string()),
    }
}
