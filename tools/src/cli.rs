//! The command line: one definition gives parser and help, and ringmark-reference its pages.

mod groups;
mod streams;

use std::ffi::OsStr;
use std::io;
use std::io::Write;

use clap::error::{ContextKind, ContextValue};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use ringmark_console::width::wrap;
use ringmark_console::{Exit, HELP_COLUMNS, TerminalOptions, VERSION, columns, note, refuse};

use crate::commands::{
    cat, clean, compact, cut, demo, doctor, events, export, functions, graph, list, profile, query,
    record, report, run, snapshot, top, trace, verify,
};

/// Text below the help of `ringmark` and its manual page.
const EXIT_CODES: &str = "\
Exit codes: 0 fine, 1 done but events were lost or damaged, 2 usage, 3 input
unreadable, 4 target not there or not permitted. 'run' and 'record -- CMD' exit
with CMD's status (128 + signal; 126 not executable, 127 not found); where that
is 0, with 1 if something was lost, refused or left out. A command whose output
has no reader any more, as with '| head', ends quietly with 0.
FILE defaults to ./ringmark.rmk; '-' is standard input or output.

Examples:
  ringmark run -- ./server
  ringmark report run.rmk --slowest 5
  ringmark doctor";

/// Records what traced programs do, and shows it
#[derive(Debug, Parser)]
#[command(name = "ringmark", version = VERSION, after_help = EXIT_CODES)]
#[command(
    subcommand_required = true,
    arg_required_else_help = true,
    max_term_width = HELP_COLUMNS
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) terminal: TerminalOptions,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// One variant per command.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(run::Args),
    Profile(profile::Args),
    List(list::Args),
    Top(top::Args),
    Record(record::Args),
    Snapshot(snapshot::Args),
    #[command(flatten)]
    Streams(streams::Streams),
    Compact(compact::CompactOptions),
    Query(query::Args),
    Events(events::Args),
    Trace(trace::Args),
    Functions(functions::Args),
    Cat(cat::Args),
    Graph(graph::Args),
    Export(export::Args),
    Verify(verify::Args),
    Report(report::Args),
    Cut(cut::Args),
    Clean(clean::Args),
    Doctor(doctor::Args),
    Demo(demo::Args),
    #[command(hide = true)]
    DemoJob(demo::JobArgs),
}

/// Reads the command line of this process, and runs it.
///
/// # Errors
/// What went wrong; [`ringmark_console::report`] gives it an exit code.
pub(crate) fn run() -> anyhow::Result<Exit> {
    if let Some(exit) = streams::answer_help()? {
        return Ok(exit);
    }
    if let Some(exit) = first_help() {
        return Ok(exit);
    }
    match Cli::read() {
        Ok(cli) => {
            cli.terminal.apply();
            cli.command.run()
        }
        Err(error) => Ok(refuse_with_tip(&error)),
    }
}

/// Words that people try, and what does it.
const TIPS: [(&str, &str); 13] = [
    ("start", "ringmark trace start -p PID"),
    ("stop", "ringmark trace stop -p PID"),
    ("status", "ringmark trace status -p PID"),
    ("attach", "ringmark record -p PID --kind graph"),
    ("enable", "ringmark events -p PID --enable NAME"),
    ("disable", "ringmark events -p PID --disable NAME"),
    ("show", "ringmark cat"),
    ("dump", "ringmark cat"),
    ("tail", "ringmark cat -p PID --follow"),
    ("ps", "ringmark list"),
    ("stat", "ringmark list -v"),
    ("flamegraph", "ringmark export --format folded"),
    ("version", "ringmark --version"),
];

/// Prints what is wrong, and for a word that is no command the one that is meant.
fn refuse_with_tip(error: &clap::Error) -> Exit {
    let word = error.get(ContextKind::InvalidSubcommand);
    let tip = TIPS.iter().find(|(tried, _)| match word {
        Some(ContextValue::String(word)) => word == tried,
        _ => false,
    });
    let Some((tried, command)) = tip else {
        return refuse(error);
    };
    note(&format!("there is no command {tried:?}; try '{command}'"));
    Exit::USAGE
}

/// What is printed where no command is named: it fits a screen of 24 lines. All of it is in --help.
const FIRST_HELP: &str = "\
Records what traced programs do, and shows it

Record:
  ringmark run ./server         a program, until it ends
  ringmark record -p PID|NAME   one that runs
  ringmark trace start -p PID   its functions
  ringmark snapshot -p PID      what its rings hold now
  ringmark profile -p PID       where time goes, of any program
Look:
  ringmark cat                  events, one a line; --tree: by spans
  ringmark report               counts and times; --slowest 5; --html: a page
  ringmark graph                calls of functions
  ringmark list                 what runs and what has ended
  ringmark top                  live
  ringmark export               for Perfetto, flame graphs, tables
Help:
  ringmark doctor [-p PID]      what works here, and what does not
  ringmark demo                 two minutes, nothing to prepare
  ringmark help COMMAND         all about a command
  ringmark --help               all commands and exit codes
";

/// The first help in lines of at most that many columns.
fn first_help_within(columns: Option<usize>) -> String {
    let columns = columns.unwrap_or(HELP_COLUMNS);
    let lines = FIRST_HELP.lines().map(|line| wrap(line, columns) + "\n");
    lines.collect()
}

/// Whether a command line asks for the first help, and how it ends then.
fn first_help() -> Option<Exit> {
    let mut words = std::env::args_os().skip(1);
    let word = words.next();
    if words.next().is_some() {
        return None;
    }
    match word.as_deref().map(OsStr::to_str) {
        None => {
            eprint!("{}", first_help_within(columns(io::stderr())));
            Some(Exit::USAGE)
        }
        // A closed pipe does not matter to help.
        Some(Some("-h" | "help")) => {
            let _ = io::stdout().write_all(first_help_within(columns(io::stdout())).as_bytes());
            Some(Exit::FINE)
        }
        Some(_) => None,
    }
}

impl Cli {
    /// The command line of this process, read.
    ///
    /// # Errors
    /// It is wrong, or asks for help.
    pub(crate) fn read() -> Result<Self, clap::Error> {
        let columns = columns(io::stdout()).map_or(HELP_COLUMNS, |there| there.min(HELP_COLUMNS));
        let mut command = groups::with_groups(Self::command(), columns);
        let mut matches = command.try_get_matches_from_mut(std::env::args_os())?;
        Self::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))
    }
}

/// The definition of the command line, with that of `ringmark-stream` in place of its commands' first lines.
#[must_use]
pub fn command_line(streams: clap::Command) -> clap::Command {
    let real = streams.get_subcommands().cloned();
    real.fold(Cli::command(), |all, command| {
        let name = command.get_name().to_owned();
        all.mut_subcommand(name, |_| command)
    })
}

impl Command {
    /// Runs the command.
    ///
    /// # Errors
    /// What went wrong; [`ringmark_console::report`] gives it an exit code.
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        match self {
            Self::Run(args) => args.run(),
            Self::Profile(args) => args.run(),
            Self::List(args) => args.run(),
            Self::Top(args) => args.run(),
            Self::Record(args) => args.run(),
            Self::Snapshot(args) => args.run(),
            Self::Streams(_) => streams::go_on(),
            Self::Compact(args) => args.run(),
            Self::Query(args) => args.run(),
            Self::Events(args) => args.run(),
            Self::Trace(args) => args.run(),
            Self::Functions(args) => args.run(),
            Self::Cat(args) => args.run(),
            Self::Graph(args) => args.run(),
            Self::Export(args) => args.run(),
            Self::Verify(args) => args.run(),
            Self::Report(args) => args.run(),
            Self::Cut(args) => args.run(),
            Self::Clean(args) => args.run(),
            Self::Doctor(args) => args.run(),
            Self::Demo(args) => args.run(),
            Self::DemoJob(args) => args.run(),
        }
    }
}
