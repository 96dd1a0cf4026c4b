//! `ringmark-fleet`, the command for formats that need Arrow: it is found as git finds its own.

use std::env;
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::Failure;

/// The command.
const NAME: &str = "ringmark-fleet";

/// Goes on as `ringmark-fleet`, with the same command line: the one next to this program, or else that on
/// `PATH`. Returns only if there is none. `wanted` is what needs it; `named`: the file to write, if the
/// command line names none. One that is there is set aside when the new one is whole.
pub(crate) fn go_on(wanted: &str, named: Option<&Path>) -> Failure {
    let beside = env::current_exe().map(|exe| exe.with_file_name(NAME));
    let beside = beside.ok().filter(|path| path.is_file());
    let program = beside.unwrap_or_else(|| PathBuf::from(NAME));
    let mut words: Vec<OsString> = env::args_os().skip(1).collect();
    if let Some(path) = named {
        // After `--` there are files alone.
        let end = words.iter().position(|word| word == "--");
        let added = ["-o".into(), path.into(), "--set-aside".into()];
        let _ = words.splice(end.map_or(words.len()..words.len(), |end| end..end), added);
    }
    let error = Command::new(&program).args(words).exec();
    match error.kind() {
        io::ErrorKind::NotFound => Failure::usage(format!(
            "{wanted} needs {NAME}, found neither next to ringmark nor on PATH; in the repository \
             'cargo install --locked --path fleet' installs it"
        )),
        _ => Failure::no_target(format!("{}: {error}", program.display())),
    }
}
