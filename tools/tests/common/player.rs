//! A traced program that emits when it is told to.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use super::{Stage, traced_program};

/// The program, killed when dropped.
pub(crate) struct Player {
    child: Child,
    orders: ChildStdin,
    done: BufReader<ChildStdout>,
}

impl Player {
    pub(crate) fn start(stage: &Stage) -> Self {
        let mut command = stage.command(traced_program());
        command.arg("turns").env("RINGMARK", "mode=overwrite");
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let orders = child.stdin.take().unwrap();
        let done = BufReader::new(child.stdout.take().unwrap());
        Self {
            child,
            orders,
            done,
        }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Lets it do what this line says; returns when that is done.
    pub(crate) fn play(&mut self, what: &str) {
        writeln!(self.orders, "{what}").unwrap();
        let mut line = String::new();
        self.done.read_line(&mut line).unwrap();
        assert_eq!(line, format!("{what}\n"));
    }
}

impl Drop for Player {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
