//! `completions`: prints a script for a shell, from the one definition of the command line.

use std::io::Write;

use clap::Command;
use clap_complete::Shell;

use crate::output::{Exit, Sink};

/// Print a completion script for a shell
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: ringmark completions bash > /etc/bash_completion.d/ringmark")]
pub(crate) struct Args {
    /// The shell
    shell: Shell,
}

impl Args {
    /// Prints the script for the command line `all`.
    pub(crate) fn run(self, all: &Command) -> anyhow::Result<Exit> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut visible(all), "ringmark", &mut script);
        let mut out = Sink::direct();
        out.write_all(&script)?;
        out.finish()?;
        Ok(Exit::FINE)
    }
}

/// The command line without hidden commands: scripts of shells would offer them.
fn visible(all: &Command) -> Command {
    let commands = all.get_subcommands().filter(|c| !c.is_hide_set()).cloned();
    let named = Command::new("ringmark").version(env!("CARGO_PKG_VERSION"));
    named.propagate_version(true).subcommands(commands)
}
