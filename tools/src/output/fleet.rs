//! `ringmark-fleet`, the command for formats that need Arrow: it is found as git finds its own.

use std::env;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use super::Failure;

/// The command.
const NAME: &str = "ringmark-fleet";

/// Goes on as `ringmark-fleet`, with the same command line: the one next to this program, or else that on
/// `PATH`. Returns only if there is none. `wanted` is what needs it.
pub(crate) fn go_on(wanted: &str) -> Failure {
    let beside = env::current_exe().map(|exe| exe.with_file_name(NAME));
    let beside = beside.ok().filter(|path| path.is_file());
    let program = beside.unwrap_or_else(|| PathBuf::from(NAME));
    let error = Command::new(&program).args(env::args_os().skip(1)).exec();
    match error.kind() {
        io::ErrorKind::NotFound => Failure::usage(format!(
            "{wanted} needs {NAME}, found neither next to ringmark nor on PATH; in the repository \
             'cargo install --locked --path fleet' installs it"
        )),
        _ => Failure::no_target(format!("{}: {error}", program.display())),
    }
}
