//! Screens in a terminal of tmux, which counts columns by its own rules: a line that is too wide for
//! them takes several rows.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use ringmark_tests::fixture::{Fixture, SOON};
use ringmark_tests::wait_until;

use super::stage::Stage;

/// Printed after everything else.
const END: &str = "that is all";

/// A terminal of its own, with everything that a shell script prints there.
struct Terminal<'a> {
    here: &'a Path,
    /// A server that ends goes on with its socket for a moment: each has one of its own.
    socket: PathBuf,
}

impl Drop for Terminal<'_> {
    fn drop(&mut self) {
        let _ = self.tmux(&["kill-server"]);
    }
}

impl Terminal<'_> {
    fn tmux(&self, words: &[&str]) -> Output {
        let mut tmux = Command::new("tmux");
        tmux.arg("-u").arg("-S").arg(&self.socket);
        tmux.arg("-f").arg(self.here.join("tmux.conf")).args(words);
        tmux.env("LC_ALL", "C.UTF-8").env_remove("TMUX");
        tmux.output().expect("tmux")
    }

    /// The rows; `joined`: rows that are one line together in one.
    fn capture(&self, joined: bool) -> Vec<String> {
        let mut words = vec!["capture-pane", "-p", "-S", "-"];
        words.extend(joined.then_some("-J"));
        let text = String::from_utf8_lossy(&self.tmux(&words).stdout).into_owned();
        text.lines()
            .map(|line| line.trim_end().to_owned())
            .collect()
    }
}

/// The lines that take several rows of a terminal of that width, if a script prints them.
fn wrapped_of(here: &Path, width: u16, script: &str) -> Vec<String> {
    let settings = "set -g history-limit 1000000\nset -g status off\n";
    fs::write(here.join("tmux.conf"), settings).expect("a file");
    let script = format!("{script}\nprintf '%s\\n' '{END}'\nsleep 600\n");
    fs::write(here.join("script"), script).expect("a file");
    static SERVERS: AtomicU32 = AtomicU32::new(0);
    let socket = here.join(format!("tmux-{}", SERVERS.fetch_add(1, Relaxed)));
    let terminal = Terminal { here, socket };
    let (columns, script) = (width.to_string(), here.join("script"));
    let begin = ["new-session", "-d", "-x", &columns, "-y", "50", "sh"];
    let script = script.display().to_string();
    let begun = terminal.tmux(&[&begin[..], &[&script]].concat());
    assert!(begun.status.success(), "{begun:?}");
    wait_until(SOON, "the screens", || {
        terminal
            .capture(false)
            .iter()
            .any(|row| row == END)
            .then_some(())
    });
    let (rows, lines) = (terminal.capture(false), terminal.capture(true));
    let rows: std::collections::HashSet<_> = rows.into_iter().collect();
    lines
        .into_iter()
        .filter(|line| !rows.contains(line))
        .collect()
}

/// The lines of these commands that are too wide.
pub(crate) fn wrapped(stage: &Stage, width: u16, lines: &[String]) -> Vec<String> {
    let mut script = String::new();
    let quoted = |text: &std::ffi::OsStr| format!("'{}'", text.to_string_lossy());
    for line in lines {
        let command = stage.ringmark(line);
        for (name, value) in command.get_envs() {
            let name = name.to_string_lossy();
            script += &match value {
                Some(value) => format!("export {name}={}\n", quoted(value)),
                None => format!("unset {name}\n"),
            };
        }
        let words: Vec<_> = command.get_args().map(quoted).collect();
        let program = quoted(command.get_program());
        script += &format!("{program} {} 2>/dev/null </dev/null\n", words.join(" "));
    }
    script = format!("cd '{}'\n{script}", stage.path(".").display());
    wrapped_of(&stage.path("."), width, &script)
}

/// The same of a text.
pub(crate) fn wrapped_text(fixture: &Fixture, width: u16, text: &str) -> Vec<String> {
    wrapped_of(
        &fixture.path("."),
        width,
        &format!("printf '%s\\n' '{text}'"),
    )
}
