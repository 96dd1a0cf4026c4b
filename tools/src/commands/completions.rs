//! `completions`: prints a script for a shell, which asks `ringmark` what can follow.

use std::io::Write;

use clap_complete::Shell;
use clap_complete::env::Shells;

use crate::output::{Exit, Sink};
use crate::variables::COMPLETE;

/// The command that the script runs, found by the shell.
const NAME: &str = "ringmark";
/// Where zsh finds the script by its name, it runs it instead of a function: it then completes, too.
const AT_FIRST_USE: &str =
    "if [[ $funcstack[1] == _ringmark ]]; then _clap_dynamic_completer_ringmark \"$@\"; fi\n";

/// Print a completion script for a shell
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The script asks 'ringmark' itself: for commands and options, for processes with
a session, their function tracers, and trace files.

Examples:
  ringmark completions bash \\
      > ~/.local/share/bash-completion/completions/ringmark
  ringmark completions zsh > ~/.zfunc/_ringmark
  ringmark completions fish > ~/.config/fish/completions/ringmark.fish")]
pub(crate) struct Args {
    /// The shell
    shell: Shell,
}

impl Args {
    /// Prints the script.
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        let mut script = Vec::new();
        if let Some(shell) = Shells::builtins().completer(&self.shell.to_string()) {
            shell.write_registration(COMPLETE, NAME, NAME, NAME, &mut script)?;
        }
        if self.shell == Shell::Zsh {
            script.extend_from_slice(AT_FIRST_USE.as_bytes());
        }
        let mut out = Sink::direct();
        out.write_all(&script)?;
        out.finish()?;
        Ok(Exit::FINE)
    }
}
