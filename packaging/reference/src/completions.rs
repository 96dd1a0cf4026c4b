//! Scripts with which shells complete commands, options and files.

use std::fs::File;
use std::path::Path;

use clap::{Arg, Command, ValueHint};
use clap_complete::{Shell, generate};

/// The command that is completed.
const NAME: &str = "ringmark";

/// Writes the scripts under the names that shells look for: `ringmark`, `_ringmark` and `ringmark.fish`.
pub(crate) fn write_scripts(dir: &Path, all: Command) -> anyhow::Result<()> {
    let mut all = with_hints(shown(all));
    for (shell, file) in [
        (Shell::Bash, "ringmark"),
        (Shell::Zsh, "_ringmark"),
        (Shell::Fish, "ringmark.fish"),
    ] {
        generate(shell, &mut all, NAME, &mut File::create(dir.join(file))?);
    }
    Ok(())
}

/// The same command line without hidden commands.
fn shown(all: Command) -> Command {
    let hidden = all
        .get_subcommands()
        .filter(|command| command.is_hide_set());
    let hidden: Vec<_> = hidden
        .map(|command| command.get_name().to_owned())
        .collect();
    let kept: Vec<_> = all
        .get_subcommands()
        .filter(|command| !command.is_hide_set())
        .cloned()
        .collect();
    match hidden.is_empty() {
        true => all,
        false => Command::new(NAME)
            .args(all.get_arguments().cloned().collect::<Vec<_>>())
            .subcommands(kept),
    }
}

/// The same command line, where arguments that name a process complete no files.
fn with_hints(command: Command) -> Command {
    let hint = |arg: Arg| match arg.get_id().as_str() {
        "pid" | "tracer" => arg.value_hint(ValueHint::Other),
        _ => arg,
    };
    command.mut_args(hint).mut_subcommands(with_hints)
}
