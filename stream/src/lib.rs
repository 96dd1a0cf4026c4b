//! The commands of Ringmark for streams: `stream` sends sessions to a collector, `collect` is one, `store` looks at what
//! it keeps, `certs` signs for both. `ringmark` goes on as `ringmark-stream` to run one of them.
//!
//! `cli` is the command line, `commands` has a module per command. They share the rest: `credentials` and `config_file`
//! are read, the second by `option_source`; `log` with its `repeats`, `metrics_file` and `service` are how a command that runs on reports;
//! `objects` is where another binary keeps what `collect` stores.
#![forbid(unsafe_code)]

mod cli;
mod commands;
mod config_file;
mod credentials;
mod log;
mod metrics_file;
mod objects;
mod option_source;
mod place;
mod repeats;
mod service;

use std::process::ExitCode;

pub use cli::{command_line, run};
pub use objects::{Objects, install as install_objects};

/// Runs the command line of this process.
#[must_use]
pub fn main() -> ExitCode {
    ringmark_console::prepare();
    ExitCode::from(run(std::env::args_os().skip(1).collect()))
}
