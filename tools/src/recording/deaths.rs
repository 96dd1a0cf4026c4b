//! `record --on-death`: a trace file for each process that dies.

use std::path::Path;
use std::thread;

use anyhow::Context;
use ringmark_reader::on_death::{self, Ends};
use ringmark_reader::{Codec, DeathWatch};

use crate::output::endings;
use crate::recording::named_triggers::{self, Names};
use ringmark_console::signals::Signals;
use ringmark_console::units::count;
use ringmark_console::{Exit, Failure, note, printable};

/// Holds all sessions until Ctrl-C, and writes a trace file into `directory` for each one whose
/// process dies, and when an event of one of `names` comes.
///
/// # Errors
/// The directory is not there.
pub(crate) fn watch(
    directory: &Path,
    codec: Codec,
    (ends, names): (Ends, Option<Names>),
) -> anyhow::Result<Exit> {
    check_directory(directory)?;
    let signals = Signals::watch().context("watching signals")?;
    let mut failed = false;
    let mut watch = DeathWatch::new(directory, codec);
    watch.set_ends(ends);
    thread::scope(|scope| {
        if let Some(names) = &names {
            let stop = &signals.stop;
            scope.spawn(move || named_triggers::watch(directory, codec, names, stop));
        }
        watch.run(&signals.stop, |report| {
            failed |= matches!(report, on_death::WatchReport::Failed(_));
            tell(&report);
        });
    });
    Ok(Exit::lost_if(failed))
}

/// Refuses what is no directory. One that is missing is not made: a mistake in its name would hide
/// the trace files.
fn check_directory(directory: &Path) -> anyhow::Result<()> {
    if directory.is_dir() {
        return Ok(());
    }
    let shown = directory.display();
    let text = match directory.exists() {
        true => format!("{shown}: is no directory, expected one for trace files"),
        false => {
            format!("{shown}: is not there, expected a directory for trace files: mkdir -p {shown}")
        }
    };
    Err(Failure::usage(text).into())
}

fn tell(report: &on_death::WatchReport) {
    match report {
        on_death::WatchReport::Holding(path) => {
            note(&printable(&format!("holding {}", path.display())))
        }
        on_death::WatchReport::Dumped {
            dump,
            pid,
            pages,
            ending,
        } => {
            let found = endings::read_again(dump);
            note(&printable(&format!(
                "pid {pid}: {}: {}, {} pages",
                endings::words_in(&found, *ending),
                dump.display(),
                count(*pages)
            )));
            found.tell_last_words(dump);
        }
        on_death::WatchReport::Closed(_) => {}
        on_death::WatchReport::Failed(error) => note(&printable(&error.to_string())),
    }
}
