//! The command line of `ringmark`: records what traced programs do, and shows it.
//!
//! Three binaries are made of it: `ringmark`, and `ringmark-fleet` and `ringmark-query`, which have an [`Extension`] with
//! what needs many other crates.
//!
//! `cli` is the command line, `commands` has a module per command. They share these rooms: `options`
//! that several commands take, `input` reads trace files, stores and living rings, `recording` writes
//! trace files, `tracing` talks to the function tracers of a process, `tables` sums up calls and
//! events, `live` is the screen of `top`, `viewer` serves a trace to a web page, `output` prints. `variables` has the environment variables that commands use,
//! `extension` what another binary has.
#![forbid(unsafe_code)]

mod cli;
mod commands;
mod extension;
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

pub use commands::compact::CompactOptions;
pub use extension::{Extension, Question, store_url};
pub use output::answer::{Answer, Cell};
use output::report;
pub use recording::descriptors::take_all as take_all_descriptors;

/// Runs the command line of this process. Without an extension, what needs one is handed over to
/// `ringmark-fleet` or `ringmark-query`.
#[must_use]
pub fn main(extension: Option<Box<dyn Extension>>) -> ExitCode {
    extension::install(extension);
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
