//! What the commands of Ringmark share, whichever binary has them: what they print, how they end, and going on as
//! another command.
//!
//! A command prints to a [`Sink`]: standard output with its `pager`, colours ([`Style`]) and a [`Table`] cut to the
//! `width` of the terminal, or objects of [`json`]. Notices and the line of [`progress`] go to standard error
//! ([`note`]). It ends with an [`Exit`] code, or a [`Failure`] that has one. [`units`] are figures as people write them.
//! [`extension`] says which binary has what. [`given`] is what this process was started with, for programs that it starts.

pub mod answer;
pub mod descriptors;
pub mod extension;
mod failure;
pub mod file;
pub mod given;
pub mod json;
mod options;
pub mod pager;
pub mod printer;
pub mod progress;
pub mod shell;
pub mod signals;
mod sink;
pub mod status;
mod style;
mod table;
pub mod taken_signals;
mod terminal;
pub mod units;
pub mod wide;
pub mod width;

/// What `--version` prints after the name: the version of these crates, and the commit that was built where it is known.
pub const VERSION: &str = env!("RINGMARK_VERSION");

pub use failure::{Exit, Failure, report, text};
pub use options::{HELP_COLUMNS, TerminalOptions, prepare, refuse};
pub use sink::Sink;
pub use style::{Color, Style};
pub use table::Table;
pub use terminal::{columns, host_name, note, note_lines, now_ns, printable};
