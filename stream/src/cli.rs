//! The command line: one definition gives parser and help, and ringmark-reference its pages.

use std::ffi::OsString;

use clap::{CommandFactory, Parser, Subcommand};
use ringmark_console::{Exit, HELP_COLUMNS, TerminalOptions, VERSION, refuse, report};

use crate::commands::{certs, collect, store, stream};

/// Streams what programs record to a collector, and keeps what came
#[derive(Debug, Parser)]
#[command(name = "ringmark", version = VERSION)]
#[command(
    subcommand_required = true,
    arg_required_else_help = true,
    max_term_width = HELP_COLUMNS
)]
struct Cli {
    #[command(flatten)]
    terminal: TerminalOptions,
    #[command(subcommand)]
    command: Command,
}

/// One variant per command.
#[derive(Debug, Subcommand)]
enum Command {
    Stream(stream::Args),
    Collect(collect::Args),
    Store(store::Args),
    Certs(certs::Args),
}

impl Command {
    fn run(self) -> anyhow::Result<Exit> {
        match self {
            Self::Stream(args) => args.run(Cli::command()),
            Self::Collect(args) => args.run(Cli::command()),
            Self::Store(args) => args.run(),
            Self::Certs(args) => args.run(),
        }
    }
}

/// The definition of the command line.
#[must_use]
pub fn command_line() -> clap::Command {
    Cli::command()
}

/// Runs a command line, given without the name of the program; returns an exit code.
#[must_use]
pub fn run(words: Vec<OsString>) -> u8 {
    let words = [OsString::from("ringmark")].into_iter().chain(words);
    let exit = match Cli::try_parse_from(words) {
        Ok(cli) => {
            cli.terminal.apply();
            cli.command.run().unwrap_or_else(|error| report(&error))
        }
        Err(error) => refuse(&error),
    };
    exit.0
}
