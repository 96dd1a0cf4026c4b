//! The command line: one definition gives parser, help, man pages and completions.

mod completion;
mod groups;

use std::io::{self, Write};

use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::commands::{
    cat, certs, clean, collect, compact, completions, cut, demo, doctor, enable, events, export,
    functions, graph, list, man, policy, query, record, reference, report, run, scan, snapshot,
    stat, store, stream, top, trace, verify, view,
};
use crate::output::{Color, Exit, Sink, Style, columns, note};

/// Most columns of help.
const HELP_COLUMNS: usize = 80;

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
#[command(name = "ringmark", version, after_help = EXIT_CODES)]
#[command(
    subcommand_required = true,
    arg_required_else_help = true,
    max_term_width = HELP_COLUMNS
)]
pub(crate) struct Cli {
    /// When to print in colour: auto, always or never
    #[arg(
        long,
        global = true,
        value_enum,
        value_name = "WHEN",
        default_value_t,
        hide_possible_values = true,
        hide_default_value = true
    )]
    pub(crate) color: Color,
    /// Show long output on a terminal without a pager
    #[arg(long, global = true)]
    pub(crate) no_pager: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// One variant per command.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(run::Args),
    List(list::Args),
    Top(top::Args),
    Record(record::Args),
    Snapshot(snapshot::Args),
    Stream(stream::Args),
    Collect(collect::Args),
    Compact(compact::CompactOptions),
    Query(query::Args),
    Store(store::Args),
    Certs(certs::Args),
    Policy(policy::Args),
    Events(events::Args),
    Enable(enable::EnableArgs),
    Disable(enable::DisableArgs),
    Trace(trace::Args),
    Functions(functions::Args),
    Cat(cat::Args),
    Graph(graph::Args),
    Export(export::Args),
    Scan(scan::Args),
    View(view::Args),
    Verify(verify::Args),
    Stat(stat::Args),
    Report(report::Args),
    Cut(cut::Args),
    Clean(clean::Args),
    Doctor(doctor::Args),
    Demo(demo::Args),
    #[command(hide = true)]
    DemoJob(demo::JobArgs),
    Completions(completions::Args),
    Man(man::Args),
    #[command(hide = true)]
    Reference(reference::Args),
}

impl Cli {
    /// The command line of this process, read. If a shell asks what can follow in one, it is answered
    /// instead, and the process ends.
    ///
    /// # Errors
    /// It is wrong, or asks for help.
    pub(crate) fn read() -> Result<Self, clap::Error> {
        completion::answer(Self::command);
        let columns = columns(io::stdout()).map_or(HELP_COLUMNS, |there| there.min(HELP_COLUMNS));
        let mut command = groups::with_groups(Self::command(), columns);
        let mut matches = command.try_get_matches_from_mut(std::env::args_os())?;
        Self::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))
    }
}

impl Command {
    /// Runs the command.
    ///
    /// # Errors
    /// What went wrong; [`crate::output::report`] gives it an exit code.
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        match self {
            Self::Run(args) => args.run(),
            Self::List(args) => args.run(),
            Self::Top(args) => args.run(),
            Self::Record(args) => args.run(),
            Self::Snapshot(args) => args.run(),
            Self::Stream(args) => args.run(),
            Self::Collect(args) => args.run(Cli::command()),
            Self::Compact(args) => args.run(),
            Self::Query(args) => args.run(),
            Self::Store(args) => args.run(),
            Self::Certs(args) => args.run(),
            Self::Policy(args) => args.run(),
            Self::Events(args) => args.run(),
            Self::Enable(args) => args.run(),
            Self::Disable(args) => args.run(),
            Self::Trace(args) => args.run(),
            Self::Functions(args) => args.run(),
            Self::Cat(args) => args.run(),
            Self::Graph(args) => args.run(),
            Self::Export(args) => args.run(),
            Self::Scan(args) => args.run(),
            Self::View(args) => args.run(),
            Self::Verify(args) => args.run(),
            Self::Stat(args) => args.run(),
            Self::Report(args) => args.run(),
            Self::Cut(args) => args.run(),
            Self::Clean(args) => args.run(),
            Self::Doctor(args) => args.run(),
            Self::Demo(args) => args.run(),
            Self::DemoJob(args) => args.run(),
            Self::Completions(args) => args.run(),
            Self::Man(args) => args.run(Cli::command()),
            Self::Reference(args) => args.run(Cli::command()),
        }
    }
}

/// Prints help on a terminal. Clap wraps sentences; examples and short descriptions are left to us.
fn print_within(columns: usize, help: &clap::Error) -> io::Result<()> {
    let text = match Style::detect().is_on() {
        true => help.render().ansi().to_string(),
        false => help.render().to_string(),
    };
    let mut out = Sink::direct().within(Some(columns));
    out.write_all(text.as_bytes())?;
    out.finish()
}

/// Prints help, or what is wrong with the command line.
pub(crate) fn refuse(error: &clap::Error) -> Exit {
    if !error.use_stderr() {
        // A closed pipe does not matter to help.
        let _ = match columns(io::stdout()) {
            Some(columns) => print_within(columns, error),
            None => error.print(),
        };
        return Exit::FINE;
    }
    let text = error.to_string();
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        let _ = error.print();
        return Exit::USAGE;
    }
    note(text.strip_prefix("error: ").unwrap_or(&text).trim_end());
    Exit::USAGE
}
