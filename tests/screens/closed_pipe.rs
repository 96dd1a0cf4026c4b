//! Promise: a command whose output has no reader any more, as in `ringmark cat | head`, ends quietly,
//! whether the signal for that is ignored or not.

use std::process::Stdio;

use ringmark_tests::fixture::{Fixture, SOON};
use ringmark_tests::functions::{LIMIT, SITES, compile, tool};
use ringmark_tests::{Running, binary, commands, require_tools, run, wait_until};

/// Command lines, for the directory of the test; PID is that of a traced program.
const LINES: [&str; 36] = [
    "--help",
    "--version",
    "help cat",
    "run --help",
    "list",
    "list -v --json",
    "list a.rmk",
    "record -p PID -o - --for 10ms",
    "snapshot -p PID -o -",
    "profile -p PID --for 10ms",
    "events a.rmk",
    "events -p PID --json",
    "events -p PID --enable *",
    "events -p PID --disable in.outer",
    "trace status -p PID",
    "functions names",
    "cat a.rmk",
    "cat a.rmk --json",
    "cat a.rmk --tree",
    "cat -p PID",
    "graph calls.rmk",
    "export a.rmk --format folded -o -",
    "export a.rmk --format csv -o -",
    "report a.rmk --by name",
    "report a.rmk --by name --csv",
    "verify a.rmk",
    "list -v -p PID --interval 1ms",
    "top -p PID --once --interval 100ms",
    "report a.rmk",
    "report a.rmk --paths",
    "report a.rmk --html -o -",
    "cut a.rmk -o - --from 0s",
    "clean",
    "certs ca --help",
    "store --help",
    "doctor",
];

/// Commands that go on until they are stopped, or whose output is on standard error only.
const OTHERS: [&str; 5] = ["stream", "collect", "compact", "query", "demo"];

/// How a command line ends, and what it says, with this as its output.
fn ended(
    fixture: &Fixture,
    line: &str,
    output: impl Into<Stdio>,
    ignored: bool,
) -> (Option<i32>, String) {
    let script = match ignored {
        true => "trap '' PIPE; exec timeout 60 \"$@\"",
        false => "trap - PIPE; exec timeout 60 \"$@\"",
    };
    let mut command = fixture.command("bash");
    command.current_dir(fixture.path("."));
    command.args(["-c", script, "bash"]).arg(binary::path());
    command.args(line.split_whitespace());
    let child = command
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(Stdio::piped())
        .spawn();
    drop(command);
    let ended = child.expect("bash").wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    (ended.status.code(), said)
}

/// A recording, one of calls, a traced program, and a file with functions.
fn stage() -> (Fixture, Running) {
    let fixture = Fixture::new("closed-pipe");
    let ready = fixture.path("ready");
    let mut program = fixture.program(ringmark_tests::program!("in_spans"), "mode=overwrite");
    let program = Running::start(program.arg("churn").arg(&ready)).expect("it starts");
    wait_until(SOON, "its session", || ready.exists().then_some(()));
    let names = compile(&fixture, "call_paths.c", "names", SITES);
    for line in [
        "record -o a.rmk -- ORDERS 3 600",
        "run --kind graph --all-functions -o calls.rmk -- NAMES",
    ] {
        let line = line.replace("ORDERS", ringmark_tests::program!("orders"));
        let line = line.replace("NAMES", &names.display().to_string());
        let mut command = tool(&fixture);
        command.current_dir(fixture.path("."));
        let done = run(command.args(line.split(' ')), LIMIT);
        let _ = done.expect("ringmark").expect_code(0);
    }
    (fixture, program)
}

#[test]
fn commands_end_quietly() {
    if !require_tools(&["bash", "gcc", "timeout"]) {
        return;
    }
    let (fixture, program) = stage();
    let pid = program.id().to_string();
    for line in LINES {
        let line = line.replace("PID", &pid);
        let expected = ended(&fixture, &line, Stdio::null(), false).0;
        assert!(matches!(expected, Some(0 | 1 | 4)), "{line}: {expected:?}");
        for ignored in [false, true] {
            let (reader, writer) = std::io::pipe().expect("a pipe");
            drop(reader);
            let (code, said) = ended(&fixture, &line, writer, ignored);
            let is_quiet = !said.contains("roken pipe") && !said.contains("panicked");
            assert!(
                is_quiet && (code == expected || code == Some(0)),
                "{line}, ignored: {ignored}: {code:?} in place of {expected:?}, {said:?}"
            );
        }
    }
}

#[test]
fn each_command_is_tried() {
    let all = commands::all();
    assert!(all.len() > 20, "{all:?}");
    for command in all.iter().filter_map(|words| words.split(' ').next()) {
        let is_tried = LINES
            .iter()
            .any(|line| line.split(' ').next() == Some(command));
        let is_left_out = OTHERS.contains(&command);
        assert!(
            is_tried != is_left_out,
            "{command}: expected in one of the lists"
        );
    }
}
