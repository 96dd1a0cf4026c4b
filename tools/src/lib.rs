//! The command line of `ringmark`: records what traced programs do, and shows it.
//!
//! `cli` is the command line, `commands` has a module per command. They share these rooms: `options`
//! that several commands take, `input` reads trace files, stores and living rings, `recording` writes
//! trace files, `tracing` talks to the function tracers of a process, `tables` sums up calls and
//! events, `live` is the screen of `top`, `output` is how events and ends of programs are printed. What other binaries
//! have is run by them: see `ringmark_console::extension`.
#![forbid(unsafe_code)]

mod cli;
mod commands;
mod input;
mod live;
mod options;
mod output;
mod recording;
mod tables;
mod tracing;

use std::process::ExitCode;

use ringmark_console::extension::Extension;
use ringmark_console::{extension, prepare, report};

pub use cli::command_line;
pub use commands::compact::CompactOptions;

/// Runs the command line of this process. Without an extension, what needs one is handed over to the binary that has it.
#[must_use]
pub fn main(extension: Option<Box<dyn Extension>>) -> ExitCode {
    extension::install(extension);
    prepare();
    let exit = cli::run().unwrap_or_else(|error| report(&error));
    ExitCode::from(exit.0)
}
