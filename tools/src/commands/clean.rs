//! `clean`: removes the sessions of dead processes.

use std::io::Write;

use ringmark_reader::clean;

use ringmark_console::units::{counted, parse_size, size};
use ringmark_console::{Exit, Sink, note, printable};

/// Remove sessions of dead processes
#[derive(Debug, clap::Args)]
#[command(after_help = "\
What a dead process left is lost with its session, and counted as lost. To keep
it, run 'ringmark snapshot' first. Sessions of living processes are never
touched.

Examples:
  ringmark clean
  ringmark clean --keep 64M")]
pub(crate) struct Args {
    /// Keep the newest ones up to SIZE
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    keep: Option<u64>,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        let mut out = Sink::direct();
        let clean::Removal { removed, refused } = clean::remove_dead(self.keep.unwrap_or(0));
        let bytes: u64 = removed.iter().map(|session| session.bytes).sum();
        for session in &removed {
            writeln!(
                out,
                "removed {} ({})",
                session.path.display(),
                size(session.bytes)
            )?;
        }
        writeln!(
            out,
            "{} removed, {}",
            counted(removed.len() as u64, "dead session"),
            size(bytes)
        )?;
        for directory in clean::removals() {
            writeln!(out, "{}", printable(&directory.to_string()))?;
        }
        out.finish()?;
        refused
            .iter()
            .for_each(|error| note(&printable(&error.to_string())));
        Ok(if refused.is_empty() {
            Exit::FINE
        } else {
            Exit::NO_TARGET
        })
    }
}
