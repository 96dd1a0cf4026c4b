//! `man`: writes manual pages, from the one definition of the command line.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap_mangen::Man;

use crate::output::{Exit, Sink};

/// Print the manual page, or write one page per command into a directory
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: ringmark man | man -l -")]
pub(crate) struct Args {
    /// Directory for ringmark.1, ringmark-record.1, …
    dir: Option<PathBuf>,
}

impl Args {
    /// Prints or writes the pages of the command line `all`.
    pub(crate) fn run(self, all: clap::Command) -> anyhow::Result<Exit> {
        // Pages of `help` would only repeat those of the commands.
        let mut command = all.disable_help_subcommand(true);
        command.build();
        match self.dir {
            None => print(command)?,
            Some(dir) => write_pages(&dir, command)?,
        }
        Ok(Exit::FINE)
    }
}

fn print(command: clap::Command) -> anyhow::Result<()> {
    let mut out = Sink::direct();
    out.write_all(&page(command)?)?;
    Ok(out.finish()?)
}

fn page(command: clap::Command) -> anyhow::Result<Vec<u8>> {
    let mut page = Vec::new();
    Man::new(command).render(&mut page)?;
    Ok(page)
}

fn write_pages(dir: &Path, command: clap::Command) -> anyhow::Result<()> {
    let shown = || dir.display().to_string();
    std::fs::create_dir_all(dir).with_context(shown)?;
    clap_mangen::generate_to(command, dir).with_context(shown)
}
