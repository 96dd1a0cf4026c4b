//! What `trace start -p` says of programs that it cannot load anything into. They run on untouched.

use std::path::Path;
use std::process::{Command, Stdio};

use ringmark_tests::compiler::can_build;
use ringmark_tests::fixture::Fixture;
use ringmark_tests::functions::{LIMIT, compile, ringmark, tool};
use ringmark_tests::process::READS_INPUT;
use ringmark_tests::{Finished, Running, require_tools, run};

use super::server::Server;

/// Waits for its input's end.
const WAITS: &str = "#include <stdio.h>\nint main(void) { while (getchar() != EOF) {} puts(\"ok \"); \
    return 0; }\n";
fn program(
    fixture: &Fixture,
    name: &str,
    code: &str,
    compiler: &str,
    flags: &str,
) -> std::path::PathBuf {
    let source = fixture.path(&format!("{name}.c"));
    std::fs::write(&source, code).expect("a file");
    let mut command = Command::new(compiler);
    command.args(flags.split_whitespace()).arg(&source);
    command.arg("-o").arg(fixture.path(name));
    let _ = run(&mut command, LIMIT).expect("a compiler").expect_code(0);
    fixture.path(name)
}

/// The tool ends with 4 and says this, and the program's code is as in its file.
fn refused(fixture: &Fixture, program: &Path, expected: &[&str]) {
    let mut command = fixture.command(program);
    let mut target = Running::start(command.stdin(Stdio::piped())).expect("a target");
    target.wait_until_in(&[READS_INPUT]);
    let pid = target.id();
    let before = std::fs::read_to_string(format!("/proc/{pid}/maps")).expect("a living process");
    let words = format!("trace start --all-functions -p {pid}");
    expect_said(&ringmark(fixture, &words, &[]), expected);
    let after = std::fs::read_to_string(format!("/proc/{pid}/maps")).expect("a living process");
    assert_eq!(before, after, "its memory has changed");
    drop(target.child().stdin.take());
    let text = target.finish(LIMIT).expect_code(0).stdout_text();
    assert!(text.contains("ok "), "{text}");
}

fn expect_said(said: &Finished, expected: &[&str]) {
    let text = said.stderr_text();
    println!("{}", text.trim());
    assert_eq!(said.code(), 4, "{said:?}");
    for expected in expected {
        assert!(text.contains(expected), "no {expected:?} in {text}");
    }
}

#[test]
fn programs_that_cannot_be_loaded_into_are_refused_by_name() {
    if !require_tools(&["gcc", "setpriv"]) {
        return;
    }
    let fixture = Fixture::new("attach-told");
    let flags = "-O2 -fpatchable-function-entry=5";
    let linked = program(
        &fixture,
        "static",
        WAITS,
        "gcc",
        &format!("{flags} -static"),
    );
    refused(
        &fixture,
        &linked,
        &["statically linked", "link it dynamically"],
    );
    if can_build("musl-gcc", flags) {
        let musl = program(&fixture, "other_libc", WAITS, "musl-gcc", flags);
        refused(
            &fixture,
            &musl,
            &["not glibc (musl", "build the program for glibc"],
        );
    }
}

#[test]
fn a_missing_permission_is_named() {
    if !require_tools(&["gcc", "setpriv"]) {
        return;
    }
    let fixture = Fixture::new("attach-permission");
    let server = Server::start(&fixture, 2);
    let mut other = fixture.command("setpriv");
    other.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"]);
    let tool = tool(&fixture);
    other
        .arg(tool.get_program())
        .envs(tool.get_envs().filter_map(|(k, v)| Some((k, v?))));
    other.args(["trace", "start", "--all-functions", "-p"]);
    other.arg(server.pid().to_string());
    let said = run(&mut other, LIMIT).expect("setpriv");
    expect_said(
        &said,
        &[
            "not permitted: it is a process of ",
            "(run as its user or as root)",
        ],
    );
    server.finish();
}

/// Only a start loads anything. What keeps exits from being seen is said.
#[test]
fn the_status_of_a_program_that_was_not_prepared() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("attach-status");
    let program = compile(
        &fixture,
        "attach_workers.c",
        "workers",
        super::server::SLEDS,
    );
    let server = Server::run(&fixture, &program, 2, None);
    let words = format!("trace status -p {}", server.pid());
    let maps = || std::fs::read_to_string(format!("/proc/{}/maps", server.pid()));
    for words in ["trace status", "trace stop", "functions"] {
        let words = format!("{words} -p {}", server.pid());
        let said = ringmark(&fixture, &words, &[]);
        expect_said(&said, &["runs without the function tracer"]);
        assert!(
            !maps().expect("a process").contains("libringmark"),
            "{words}"
        );
    }
    let start = format!("trace start -F main --for 1ms -p {}", server.pid());
    let _ = ringmark(&fixture, &start, &[]).expect_code(0);
    assert!(maps().expect("a process").contains("libringmark"));
    let said = ringmark(&fixture, &words, &[]).expect_code(0).stdout_text();
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid()));
    let status = status.expect("a living process");
    let features = status
        .lines()
        .find(|line| line.starts_with("x86_Thread_features:"));
    let is_checked =
        features.is_some_and(|line| line.split_whitespace().any(|word| word == "shstk"));
    println!("shadow stacks: {is_checked}\n{said}");
    let expected = if is_checked {
        "; entries only: shadow stacks are on"
    } else {
        "; entries and exits"
    };
    assert!(said.contains(expected), "{said}");
    server.finish();
}
