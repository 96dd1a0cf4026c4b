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

/// Commands that look at sessions or start programs.
const LIVE: &[&str] = &[
    "run", "list", "record", "snapshot", "stream", "events", "enable", "disable", "trace", "cat",
    "stat", "graph", "report", "clean", "demo",
];
/// Commands that start programs.
const START: &[&str] = &["run", "record"];
/// Commands that say how processes ended.
const ENDS: &[&str] = &["run", "list", "record", "snapshot", "stream", "cat", "stat"];
/// Commands whose output may be long.
const LONG: &[&str] = &["cat", "graph", "report", "stat", "events", "functions"];

/// An environment variable: its name, what it does, and the commands that use it.
type Variable = (&'static str, &'static str, &'static [&'static str]);

/// The variables that commands use. SETTINGS.md has more about each.
const VARIABLES: [Variable; 8] = [
    (
        "RINGMARK",
        "How a program that is started here is traced: 1, or keys and values such as \
         mode=discard,ring=1M,keep=always. Its key keep says what becomes of a session that no \
         reader took: crash keeps it after every end but exit status 0.",
        START,
    ),
    (
        "RINGMARK_FILTER",
        "Which events of such a program are on at its start: LEVEL and TARGET=LEVEL.",
        START,
    ),
    (
        "RINGMARK_TAGS",
        "Texts KEY=VALUE, comma separated, that are stored with the sessions of such a program.",
        START,
    ),
    (
        "RINGMARK_LIB",
        "Path of libringmark_functions.so, or of its directory.",
        &["run", "record", "trace"],
    ),
    (
        "RINGMARK_DIR",
        "Directory of sessions, in place of /dev/shm/ringmark-UID.",
        LIVE,
    ),
    (
        "RINGMARK_ASK_ENDS",
        "off: do not ask the kernel how processes ended that others started, as before Linux 6.15.",
        ENDS,
    ),
    (
        "PAGER, LESS",
        "The program that long output to a terminal goes through, and its options.",
        LONG,
    ),
    (
        "NO_COLOR, TERM",
        "No colour if NO_COLOR is set or TERM is dumb.",
        LIVE,
    ),
];

/// The section about the variables that a command uses; the page of `ringmark` has all.
fn environment(command: &clap::Command) -> String {
    // As in `ringmark-trace-start`.
    let whole = command.get_display_name().unwrap_or_default();
    let verb = whole.split('-').nth(1);
    let uses = |variable: &&Variable| verb.is_none_or(|verb| variable.2.contains(&verb));
    let used: Vec<String> = VARIABLES
        .iter()
        .filter(uses)
        .map(|(name, text, _)| format!(".TP\n\\fB{name}\\fR\n{text}\n"))
        .collect();
    match used.is_empty() {
        true => String::new(),
        false => format!(".SH ENVIRONMENT\n{}", used.concat()),
    }
}
