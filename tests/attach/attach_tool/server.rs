//! `attach_workers.c`, started without anything of Ringmark.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use ringmark_tests::fixture::{Fixture, SOON};
use ringmark_tests::functions::compile;
use ringmark_tests::{Running, wait_until};

use super::load::ask_some;

pub(crate) const SLEDS: &str = "-O2 -fpatchable-function-entry=5 -lpthread";

/// A server that runs until its input ends.
#[derive(Debug)]
pub(crate) struct Server {
    running: Running,
    pub(crate) socket: PathBuf,
}

impl Server {
    pub(crate) fn start(fixture: &Fixture, threads: usize) -> Self {
        let program = compile(fixture, "attach_workers.c", "workers", SLEDS);
        Self::run(fixture, &program, threads, None)
    }

    /// The same with an object loaded before it.
    pub(crate) fn run(
        fixture: &Fixture,
        program: &Path,
        threads: usize,
        preload: Option<&Path>,
    ) -> Self {
        static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let socket = fixture.path(&format!("{number}.sock"));
        let mut command = fixture.command(program);
        if let Some(library) = preload {
            command.env("LD_PRELOAD", library).env("RINGMARK", "1");
        }
        Self::listen(command, &socket, threads)
    }

    /// Runs a command that ends in the program's name.
    pub(crate) fn listen(mut command: Command, socket: &Path, threads: usize) -> Self {
        command.arg(socket).arg(threads.to_string());
        Self::listen_at(command, socket)
    }

    /// Runs a command with all of the program's arguments; its socket is here for us.
    pub(crate) fn listen_at(mut command: Command, socket: &Path) -> Self {
        let socket = socket.to_owned();
        let _ = std::fs::remove_file(&socket);
        let running = Running::start(command.stdin(Stdio::piped())).expect("a server");
        wait_until(SOON, "a server that answers", || {
            ask_some(&socket, 3).is_ok().then_some(())
        });
        Self { running, socket }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.running.id()
    }

    /// Lets it end: it did nothing wrong.
    pub(crate) fn finish(mut self) {
        drop(self.running.child().stdin.take());
        let text = self.running.finish(SOON).expect_code(0).stdout_text();
        assert!(text.starts_with("ok "), "{text}");
    }
}
