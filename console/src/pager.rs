//! The pager of long output on a terminal, as git has one.

use std::env;
use std::io::{self, IsTerminal};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, OnceLock};

use crate::given;
use crate::terminal::note;

/// Pager where none is named.
const USUAL: &str = "less";

/// Set by `--no-pager`.
static FORBIDDEN: OnceLock<()> = OnceLock::new();

/// Starts none from now on.
pub fn forbid() {
    let _ = FORBIDDEN.set(());
}

/// Starts the pager, if standard output is a terminal and there is one.
pub(crate) fn start() -> Option<(Child, ChildStdin)> {
    if FORBIDDEN.get().is_some() || !io::stdout().is_terminal() {
        return None;
    }
    let mut command = Command::new("sh");
    command.arg("-c").arg(wanted()?).stdin(Stdio::piped());
    // Less: quit if it fits one screen, keep colours, leave the screen as it is. Lv: keep colours.
    for (name, options) in [("LESS", "FRX"), ("LV", "-c")] {
        if env::var_os(name).is_none() {
            command.env(name, options);
        }
    }
    given::pass_on(&mut command, &[0]);
    // Ctrl-C is for the pager, which ends when it wants; we end with it. The flag is never read.
    signal_hook::flag::register(signal_hook::consts::SIGINT, Arc::default()).ok()?;
    let mut child = command.spawn().ok()?;
    let stdin = child.stdin.take()?;
    Some((child, stdin))
}

/// The command line of the pager; `None`: none is wanted, or it is not there.
fn wanted() -> Option<String> {
    let named = ["RINGMARK_PAGER", "PAGER"].map(env::var).into_iter();
    match named.flatten().next() {
        Some(pager) if ["", "cat"].contains(&pager.trim()) => None,
        Some(pager) => {
            let program = pager.split_whitespace().next().unwrap_or_default();
            let is_there = is_shell(program) || is_installed(program);
            if !is_there {
                note(&format!(
                    "the pager {program:?} is not installed: shown without one"
                ));
            }
            is_there.then_some(pager)
        }
        None => {
            let knows_nothing = env::var_os("TERM").is_none_or(|term| term == "dumb");
            (!knows_nothing && is_installed(USUAL)).then(|| USUAL.to_owned())
        }
    }
}

/// Whether the first word of a command line is for the shell, which finds out what it means.
fn is_shell(word: &str) -> bool {
    !word
        .chars()
        .all(|c| c.is_alphanumeric() || "/._+-".contains(c))
}

/// Whether a shell finds a program of that name.
fn is_installed(program: &str) -> bool {
    let is_program = |path: &Path| {
        let found = path.metadata();
        found.is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    if program.contains('/') {
        return is_program(Path::new(program));
    }
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|folder| is_program(&folder.join(program)))
}
