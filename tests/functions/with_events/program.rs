//! The programs that emit events inside of traced functions, and their life.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use ringmark_tests::binary::built;
use ringmark_tests::fixture::Fixture;
use ringmark_tests::functions::SITES;
use ringmark_tests::process::READS_INPUT;
use ringmark_tests::{Finished, Running, is_long, wait_until};

use crate::c;

/// For a machine on which much else runs.
pub(crate) const LIMIT: Duration = Duration::from_secs(300);
/// Events of each thread before its first round.
pub(crate) const EARLY: u64 = 8;

/// What a program is to do.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Work {
    /// In all copies together.
    pub(crate) threads: u64,
    pub(crate) rounds: u64,
    pub(crate) leaves: u64,
    pub(crate) pause_us: u64,
    copies: u64,
}

impl Work {
    /// Long: 128,000 events, 1.4 million calls, more than 11 s.
    pub(crate) fn new(copy: Copy) -> Self {
        let (rounds, leaves, pause_us) = match is_long() {
            true => (32_000, 10, 35_000),
            false => (500, 4, 0),
        };
        let copies = if copy == Copy::Both { 2 } else { 1 };
        Self {
            threads: 4 * copies,
            rounds,
            leaves,
            pause_us,
            copies,
        }
    }

    pub(crate) fn arguments(&self) -> [String; 4] {
        let threads = self.threads / self.copies;
        [threads, self.rounds, self.leaves, self.pause_us].map(|number| number.to_string())
    }
}

/// How a program has its copy of the library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Copy {
    Rust,
    Static,
    Shared,
    Plugin,
    /// Its own linked statically and exported with `-rdynamic`, and a plugin on the shared one.
    Both,
}

impl Copy {
    /// Sessions of a process whose functions are traced.
    pub(crate) fn sessions(self) -> usize {
        if self == Self::Both { 3 } else { 2 }
    }
}

/// The program, with the words in front of its own arguments.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) path: PathBuf,
    pub(crate) words: Vec<PathBuf>,
    copy: Copy,
}

impl Program {
    /// `more`: flags for what is written in C.
    pub(crate) fn build(fixture: &Fixture, copy: Copy, more: &str) -> Self {
        let compile = |sources, flags: &str, output| {
            c::compile(
                fixture,
                c::GCC,
                sources,
                &format!("{SITES} {flags} {more}"),
                output,
            )
        };
        let plugin = || {
            vec![compile(
                "with_functions.c",
                "-DSHARED -shared -fPIC",
                "plugin.so",
            )]
        };
        let (path, words) = match copy {
            Copy::Rust => (built("functions-with-events"), Vec::new()),
            Copy::Static => {
                let sources = "with_functions.c -l:libringmark.a";
                (compile(sources, "-Wl,--as-needed", "static"), Vec::new())
            }
            Copy::Shared => (compile("with_functions.c", "", "shared"), Vec::new()),
            Copy::Plugin => {
                let host = compile("host_of_functions.c", "-Wl,--as-needed", "host");
                (host, plugin())
            }
            Copy::Both => {
                let sources = "host_of_functions.c with_functions.c -l:libringmark.a";
                let flags = "-DBOTH -DSHARED -rdynamic -Wl,--as-needed";
                (compile(sources, flags, "both"), plugin())
            }
        };
        Self { path, words, copy }
    }

    /// A command that runs it, with the function tracer in `preload`.
    pub(crate) fn command(
        &self,
        fixture: &Fixture,
        work: &Work,
        settings: &str,
        preload: Option<&Path>,
    ) -> Command {
        let mut command = fixture.program(&self.path.to_string_lossy(), settings);
        command.args(&self.words).args(work.arguments());
        command.env("LD_BIND_NOW", "1");
        command.envs(preload.map(|library| ("LD_PRELOAD", library)));
        command
    }

    /// Starts it; each thread has emitted its early events.
    pub(crate) fn start(&self, mut command: Command, work: &Work) -> Started {
        command.stdin(Stdio::piped());
        let started = Started {
            running: Running::start(&mut command).expect("it starts"),
            copies: if self.copy == Copy::Both { 2 } else { 1 },
        };
        wait_until(LIMIT, "its threads to be ready", || {
            let is_ready = started.workers() == work.threads && started.reads_input();
            is_ready.then_some(())
        });
        started
    }
}

/// A program that runs.
#[derive(Debug)]
pub(crate) struct Started {
    pub(crate) running: Running,
    copies: usize,
}

impl Started {
    pub(crate) fn id(&self) -> u32 {
        self.running.id()
    }

    /// Has it begin its rounds.
    pub(crate) fn go(&mut self) {
        let lines = "\n".repeat(self.copies);
        let input = self.running.child().stdin.as_mut().expect("its input");
        input.write_all(lines.as_bytes()).expect("it goes on");
    }

    /// Waits until all rounds are done.
    pub(crate) fn wait_until_done(&self) {
        wait_until(LIMIT, "the end of its rounds", || {
            (self.workers() == 0 && self.reads_input()).then_some(())
        });
    }

    /// Has it end, and waits for that.
    pub(crate) fn finish(mut self) -> Finished {
        drop(self.running.child().stdin.take());
        self.running.finish(LIMIT).expect_code(0)
    }

    /// What a file of `/proc/PID/task/TID` holds, for each thread.
    fn of_threads(&self, file: &str) -> Vec<String> {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.id()));
        let tasks = tasks.into_iter().flatten().flatten();
        let texts = tasks.filter_map(|task| std::fs::read_to_string(task.path().join(file)).ok());
        texts.collect()
    }

    fn workers(&self) -> u64 {
        let names = self.of_threads("comm");
        names.iter().filter(|name| name.trim() == "worker").count() as u64
    }

    fn reads_input(&self) -> bool {
        let calls = self.of_threads("syscall");
        calls.iter().any(|call| call.starts_with(READS_INPUT))
    }
}
