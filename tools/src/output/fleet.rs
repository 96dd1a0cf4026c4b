//! `ringmark-fleet`, the command for formats that need Arrow: it is found as git finds its own.

use std::env;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::Failure;
use super::file::{Former, tell_set_aside};

/// The command.
const NAME: &str = "ringmark-fleet";

/// Goes on as `ringmark-fleet`, with the same command line: the one next to this program, or else that on
/// `PATH`. Returns only if there is none. `wanted` is what needs it; `named`: the file to write, if the
/// command line names none. One that is there is set aside.
pub(crate) fn go_on(wanted: &str, named: Option<&Path>) -> Failure {
    let beside = env::current_exe().map(|exe| exe.with_file_name(NAME));
    let beside = beside.ok().filter(|path| path.is_file());
    let program = beside.unwrap_or_else(|| PathBuf::from(NAME));
    let mut command = Command::new(&program);
    let _ = command.args(env::args_os().skip(1));
    if let Some(path) = named {
        match Former::SetAside.set_aside(path) {
            Ok(Some(old)) => tell_set_aside(path, &old),
            Ok(None) => {}
            Err(error) => return Failure::usage(format!("{}: {error}", path.display())),
        }
        let _ = command.arg("-o").arg(path);
    }
    let error = command.exec();
    match error.kind() {
        io::ErrorKind::NotFound => Failure::usage(format!(
            "{wanted} needs {NAME}, found neither next to ringmark nor on PATH; in the repository \
             'cargo install --locked --path fleet' installs it"
        )),
        _ => Failure::no_target(format!("{}: {error}", program.display())),
    }
}
