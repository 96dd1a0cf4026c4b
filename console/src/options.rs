//! What each binary does before it runs a command, and the options that all commands have.

use std::io::{self, Write};

use clap::error::ErrorKind;

use crate::failure::Exit;
use crate::pager;
use crate::sink::Sink;
use crate::style::{Color, Style};
use crate::terminal::{columns, note};

/// Most columns of help.
pub const HELP_COLUMNS: usize = 80;

/// The options of all commands.
#[derive(Debug, clap::Args)]
pub struct TerminalOptions {
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
    color: Color,
    /// Show long output on a terminal without a pager
    #[arg(long, global = true)]
    no_pager: bool,
}

impl TerminalOptions {
    /// Has them hold for what this process prints.
    pub fn apply(&self) {
        self.color.choose();
        if self.no_pager {
            pager::forbid();
        }
    }
}

/// Prepares this process: what is wrong with a file is an error of the command, not the end of the process.
pub fn prepare() {
    // Without it, a ring file that is cut while it is read would end this process.
    let _ = ringmark_reader::guard::install();
    // A file beyond its size limit is an error like a full disk. Children have the default.
    let beyond = std::sync::Arc::default();
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, beyond);
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
pub fn refuse(error: &clap::Error) -> Exit {
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
