//! `man`: writes manual pages, from the one definition of the command line.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap_mangen::Man;

use crate::output::{Exit, Sink};
use crate::variables;

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
    let environment = environment(&command);
    Man::new(command).render(&mut page)?;
    page.extend_from_slice(environment.as_bytes());
    Ok(page)
}

fn write_pages(dir: &Path, command: clap::Command) -> anyhow::Result<()> {
    let shown = || dir.display().to_string();
    std::fs::create_dir_all(dir).with_context(shown)?;
    write_page(dir, &command).with_context(shown)
}

/// Writes the page of a command, and those of the commands in it.
fn write_page(dir: &Path, command: &clap::Command) -> anyhow::Result<()> {
    for inside in command.get_subcommands().filter(|c| !c.is_hide_set()) {
        write_page(dir, inside)?;
    }
    let file = Man::new(command.clone()).get_filename();
    Ok(std::fs::write(dir.join(file), page(command.clone())?)?)
}

/// The section about the variables that a command uses; the page of `ringmark` has all.
fn environment(command: &clap::Command) -> String {
    // As in `ringmark-trace-start`.
    let whole = command.get_display_name().unwrap_or_default();
    let verb = whole.split('-').nth(1);
    let used = variables::of_command(verb).into_iter();
    let used: Vec<String> = used
        .map(|variable| {
            let text = variable.effect.replace('`', "");
            format!(".TP\n\\fB{}\\fR\n{text}\n", variable.name)
        })
        .collect();
    match used.is_empty() {
        true => String::new(),
        false => format!(".SH ENVIRONMENT\n{}", used.concat()),
    }
}
