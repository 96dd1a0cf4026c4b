//! What is shown: a living program with odd names, trace files of it, and the command lines of all
//! screens.

use std::path::PathBuf;
use std::process::Command;

use ringmark_tests::fixture::{Fixture, SOON};
use ringmark_tests::functions::{LIMIT, SITES, compile, tool};
use ringmark_tests::{Running, commands, run, wait_until};

/// Command lines whose help is shown: of `ringmark` itself, and of all its commands.
pub(crate) fn helps() -> Vec<String> {
    let all = commands::all().into_iter();
    let helps = all.map(|command| format!("{command} --help"));
    let helps: Vec<_> = helps
        .chain(["--help", "help", "help cat"].map(str::to_owned))
        .collect();
    assert!(helps.len() > 30, "{helps:?}");
    helps
}

/// A living program with odd names, a trace file of it, one of calls.
pub(crate) struct Stage {
    fixture: Fixture,
    pub(crate) program: Running,
}

impl Stage {
    pub(crate) fn new(label: &str) -> Self {
        let fixture = Fixture::new(label);
        let ready = fixture.path("ready");
        let mut command =
            fixture.program(ringmark_tests::program!("names"), "mode=overwrite,ring=1M");
        let program = Running::start(command.arg(&ready)).expect("it starts");
        wait_until(SOON, "its events", || ready.exists().then_some(()));
        let stage = Self { fixture, program };
        let pid = stage.program.id().to_string();
        let mut snapshot = stage.ringmark(&format!("snapshot -p {pid} -o events.rmk"));
        let _ = run(&mut snapshot, LIMIT).expect("ringmark").expect_code(0);
        let source = compile(&stage.fixture, "names.c", "names", &format!("{SITES} -w"));
        let mut traced = stage.ringmark("run --kind graph --all-functions -o calls.rmk --");
        let _ = run(traced.arg(source), LIMIT)
            .expect("ringmark")
            .expect_code(0);
        stage
    }

    /// A file next to the trace files.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.fixture.path(name)
    }

    /// `ringmark WORDS`, in the directory of the files.
    pub(crate) fn ringmark(&self, words: &str) -> Command {
        let mut command = tool(&self.fixture);
        command.current_dir(self.fixture.path("."));
        command.args(words.split_whitespace());
        for name in ["NO_COLOR", "CLICOLOR_FORCE"] {
            command.env_remove(name);
        }
        command.env("RINGMARK_PAGER", "");
        command
    }

    /// The command lines of all screens.
    pub(crate) fn screens(&self) -> Vec<String> {
        let pid = self.program.id();
        let lines = [
            "cat events.rmk",
            "cat events.rmk --tree",
            "cat events.rmk --time delta",
            "cat calls.rmk",
            "cat events.rmk calls.rmk",
            "cat -p PID",
            "graph calls.rmk",
            "report events.rmk",
            "report calls.rmk",
            "report events.rmk --slowest 5",
            "report events.rmk --paths",
            "report events.rmk --by name,thread",
            "report calls.rmk --paths",
            "report calls.rmk --callers *要求*",
            "report calls.rmk --callees long* -n 1",
            "report calls.rmk --diff calls.rmk",
            "list",
            "list -v",
            "list events.rmk calls.rmk",
            "list -v events.rmk calls.rmk",
            "list -v -p PID --interval 10ms",
            "top -p PID --once --interval 100ms",
            "events events.rmk",
            "events -p PID",
            "functions names",
            "verify events.rmk",
            "doctor",
            "doctor -p PID",
        ];
        lines
            .map(|line| line.replace("PID", &pid.to_string()))
            .to_vec()
    }
}
