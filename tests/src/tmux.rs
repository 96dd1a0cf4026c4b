//! A terminal that shows what a person would see: a shell in tmux, without anybody's settings.

use std::path::Path;
use std::process::Command;

use crate::fixture::SOON;
use crate::process::{Finished, run};
use crate::wait::wait_until;

/// A shell on a screen, ended when dropped.
#[derive(Debug)]
pub struct Tmux {
    socket: String,
}

impl Tmux {
    /// A shell in this directory, on a screen of that many columns and rows.
    ///
    /// # Panics
    /// When tmux does not start.
    #[must_use]
    pub fn start(label: &str, directory: &Path, (columns, rows): (u16, u16)) -> Self {
        let tmux = Self {
            socket: format!("ringmark-{label}-{}", std::process::id()),
        };
        let size = [columns.to_string(), rows.to_string()];
        let directory = directory.to_str().expect("a path");
        let shell = "env PS1='$ ' HISTFILE= sh";
        let _ = tmux.ask(&[
            "new-session",
            "-d",
            "-x",
            &size[0],
            "-y",
            &size[1],
            "-c",
            directory,
            shell,
        ]);
        tmux.wait_for("a prompt", |screen| screen.starts_with('$'));
        tmux
    }

    fn ask(&self, arguments: &[&str]) -> Finished {
        let mut command = Command::new("tmux");
        command.args(["-L", &self.socket, "-f", "/dev/null", "-u"]);
        command.env("TERM", "xterm-256color").env_remove("TMUX");
        let done = run(command.args(arguments), SOON).expect("tmux");
        done.expect_code(0)
    }

    /// Presses keys, as tmux names them.
    ///
    /// # Panics
    /// When tmux does not answer.
    pub fn press(&self, keys: &[&str]) {
        let _ = self.ask(&[&["send-keys"], keys].concat());
    }

    /// Types a line and ends it.
    ///
    /// # Panics
    /// As [`Tmux::press`].
    pub fn enter(&self, line: &str) {
        let _ = self.ask(&["send-keys", "-l", line]);
        self.press(&["Enter"]);
    }

    /// Gives the screen another size.
    ///
    /// # Panics
    /// As [`Tmux::press`].
    pub fn resize(&self, (columns, rows): (u16, u16)) {
        let size = [columns.to_string(), rows.to_string()];
        let _ = self.ask(&["resize-window", "-x", &size[0], "-y", &size[1]]);
    }

    /// The rows of the screen.
    ///
    /// # Panics
    /// As [`Tmux::press`].
    #[must_use]
    pub fn screen(&self) -> String {
        self.ask(&["capture-pane", "-p"]).stdout_text()
    }

    /// Waits until the screen is so, and returns it.
    ///
    /// # Panics
    /// When it does not become so; the message has the screen.
    pub fn wait_for(&self, what: &str, is_so: impl Fn(&str) -> bool) -> String {
        let mut last = String::new();
        let begin = std::time::Instant::now();
        wait_until(SOON, what, || {
            last = self.screen();
            let found = is_so(&last);
            assert!(found || begin.elapsed() < SOON / 2, "{what}:\n{last}");
            found.then_some(())
        });
        last
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        let mut command = Command::new("tmux");
        let _ = command.args(["-L", &self.socket, "kill-server"]).output();
    }
}
