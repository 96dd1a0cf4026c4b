//! The commands of `ringmark-stream`: `ringmark` lists them, and goes on as that command to run one.

use std::ffi::OsString;

use clap::{Args, Subcommand};
use ringmark_console::Exit;
use ringmark_console::extension;

/// The commands, with the first line of their help: a test of ringmark-reference compares it with theirs.
#[derive(Debug, Subcommand)]
pub(crate) enum Streams {
    /// Stream programs to a collector while they run
    Stream(Words),
    /// Collect the streams of many hosts in a store
    Collect(Words),
    /// Look at a collector's store, and remove what a host sent
    Store(Words),
    /// Make certificates for streams over tls://
    Certs(Words),
}

/// All that follows: it is not looked at here.
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Words {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    words: Vec<OsString>,
}

/// Has `ringmark-stream` print the help of one of its commands, if the command line of this process asks for it:
/// what is known of them here is their first line.
pub(super) fn answer_help() -> anyhow::Result<Option<Exit>> {
    let words = extension::words();
    let [help, name, ..] = &words[..] else {
        return Ok(None);
    };
    let is_ours = Streams::has_subcommand(&name.to_string_lossy());
    match help == "help" && is_ours {
        true => go_on().map(Some),
        false => Ok(None),
    }
}

/// Runs the command line of this process as `ringmark-stream`.
///
/// # Errors
/// It is not installed.
pub(super) fn go_on() -> anyhow::Result<Exit> {
    extension::stream(extension::words())
}
