//! `ringmark`: records what traced programs do, and shows it.
//!
//! `cli` is the command line, `commands` has a module per command. They share these rooms: `options`
//! that several commands take, `input` reads trace files, stores and living rings, `recording` writes
//! trace files, `tracing` talks to the function tracers of a process, `tables` sums up calls and
//! events, `live` is the screen of `top`, `viewer` serves a trace to a web page, `output` prints. `variables` has the environment variables that commands use.
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
mod variables;
mod viewer;

use std::process::ExitCode;

use output::report;

fn main() -> ExitCode {
    // Without it, a ring file that is cut while it is read would end this process.
    let _ = ringmark_reader::guard::install();
    // A file beyond its size limit is an error like a full disk. Children have the default.
    let beyond = std::sync::Arc::default();
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, beyond);
    let exit = match cli::Cli::read() {
        Ok(cli) => {
            cli.color.choose();
            if cli.no_pager {
                output::pager::forbid();
            }
            cli.command.run().unwrap_or_else(|error| report(&error))
        }
        Err(error) => cli::refuse(&error),
    };
    ExitCode::from(exit.0)
}
