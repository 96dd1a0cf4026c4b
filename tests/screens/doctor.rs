//! Promise: `doctor` says what works, what does not and what to do: of the place of sessions, limits,
//! the function tracer, and a process; its exit code says which it is.

use std::fs;
use std::path::Path;
use std::process::Command;

use ringmark_tests::fixture::{Fixture, SOON};
use ringmark_tests::functions::{LIMIT, SITES, compile, library, tool};
use ringmark_tests::json_schema::checked;
use ringmark_tests::process::SLEEPS;
use ringmark_tests::{Finished, Running, require_tools, run, wait_until};
use serde_json::Value;

/// The findings of a command, and its exit code.
fn findings(command: &mut Command) -> (Vec<Value>, i32) {
    let finished = run(command, LIMIT).expect("it starts");
    assert_eq!(
        finished.stderr_text(),
        "",
        "nothing is wrong with the command itself"
    );
    (checked(&finished.stdout_text()), finished.code())
}

fn doctor(fixture: &Fixture, words: &str) -> Command {
    let mut command = tool(fixture);
    command.arg("doctor").args(words.split_whitespace());
    command
}

/// The finding about something.
fn about<'f>(findings: &'f [Value], about: &str) -> &'f Value {
    let found = findings.iter().find(|finding| finding["about"] == about);
    found.unwrap_or_else(|| panic!("nothing about {about}: {findings:?}"))
}

#[track_caller]
fn expect(findings: &[Value], name: &str, verdict: &str, found: &str) {
    let finding = about(findings, name);
    assert_eq!(finding["verdict"], verdict, "{finding}");
    let text = finding["found"].as_str().expect("a text");
    assert!(text.contains(found), "{finding}: expected {found:?}");
    assert_eq!(finding["advice"].is_null(), verdict == "ok", "{finding}");
}

#[test]
fn what_is_sound_is_found_so() {
    let fixture = Fixture::new("doctor-sound");
    let (found, code) = findings(&mut doctor(&fixture, "--json"));
    expect(&found, "directory", "ok", "the first program makes it");
    expect(&found, "function tracer", "ok", env!("CARGO_PKG_VERSION"));
    expect(&found, "formats", "ok", "format 1.");
    for name in [
        "file system",
        "session size",
        "file size",
        "open files",
        "address space",
        "locked memory",
        "clock",
        "kernel",
        "container",
        "ends",
        "ptrace",
        "seccomp",
        "C library",
        "gcc",
        "clang",
        "waits",
        "samples",
    ] {
        let finding = about(&found, name);
        assert!(
            finding["found"].as_str().is_some_and(|text| text.len() > 3),
            "{finding}"
        );
    }
    // The worst finding decides.
    let has = |verdict| found.iter().any(|finding| finding["verdict"] == verdict);
    let expected = if has("fails") {
        4
    } else {
        i32::from(has("limited"))
    };
    assert_eq!(code, expected, "{found:?}");
    let text = run(&mut doctor(&fixture, ""), LIMIT)
        .expect("it starts")
        .stdout_text();
    assert!(
        text.starts_with("sessions\n  ok       directory       "),
        "{text}"
    );
    assert!(
        text.ends_with('\n') && text.contains("programs can be traced here"),
        "{text}"
    );
    assert!(!fixture.sessions().exists(), "it looks, and makes nothing");
}

#[test]
fn a_place_that_cannot_be_used_fails() {
    let fixture = Fixture::new("doctor-place");
    fs::write(fixture.path("file"), "").expect("a file");
    let mut command = doctor(&fixture, "--json");
    let (found, code) = findings(command.env("RINGMARK_DIR", fixture.path("file")));
    expect(
        &found,
        "directory",
        "fails",
        "is not a directory of its own",
    );
    assert_eq!(code, 4);
    let text = run(
        doctor(&fixture, "").env("RINGMARK_DIR", fixture.path("file")),
        LIMIT,
    );
    let text = text.expect("it starts").expect_code(4).stdout_text();
    assert!(
        text.contains("→ set RINGMARK_DIR to a directory of yours"),
        "{text}"
    );
    assert!(text.contains("1 failure, see above what to do"), "{text}");
}

/// Runs it in a shell with a limit.
fn limited(fixture: &Fixture, limit: &str) -> Vec<Value> {
    let inner = doctor(fixture, "--json");
    let mut command = fixture.command("bash");
    command.args(["-c", &format!("{limit}; exec \"$@\""), "bash"]);
    command.arg(inner.get_program()).args(inner.get_args());
    findings(command.env("RINGMARK_LIB", library())).0
}

#[test]
fn limits_that_are_too_low_are_named() {
    if !require_tools(&["bash"]) {
        return;
    }
    let fixture = Fixture::new("doctor-limits");
    let found = limited(&fixture, "ulimit -f 2048");
    expect(&found, "file size", "limited", "2 MiB");
    expect(
        &found,
        "session size",
        "limited",
        "2 MiB in place of 16 MiB: the limit on file sizes",
    );
    expect(
        &limited(&fixture, "ulimit -n 64"),
        "open files",
        "limited",
        "64",
    );
}

#[test]
fn a_function_tracer_of_another_release_is_named() {
    let fixture = Fixture::new("doctor-object");
    for (content, found) in [
        ("ringmark library 9.8.7\0", "9.8.7, "),
        ("no object", "does not state its version"),
    ] {
        fs::write(fixture.path("other.so"), content).expect("a file");
        let mut command = doctor(&fixture, "--json");
        let (findings, _) = findings(command.env("RINGMARK_LIB", fixture.path("other.so")));
        expect(&findings, "function tracer", "limited", found);
    }
    let mut command = doctor(&fixture, "--json");
    let (found, code) = findings(command.env("RINGMARK_LIB", fixture.path("nowhere")));
    expect(
        &found,
        "function tracer",
        "limited",
        "is not there, looked for",
    );
    assert_ne!(code, 0);
}

fn of_process(fixture: &Fixture, pid: u32) -> (Vec<Value>, i32) {
    let (found, code) = findings(&mut doctor(fixture, &format!("--json -p {pid}")));
    let of_process = found
        .into_iter()
        .filter(|finding| finding["topic"] == "process");
    let found: Vec<_> = of_process.collect();
    assert!(
        found.iter().all(|finding| finding["pid"] == pid),
        "{found:?}"
    );
    (found, code)
}

#[test]
fn a_process_is_looked_at_and_left_as_it_is() {
    if !require_tools(&["gcc", "sleep"]) {
        return;
    }
    let fixture = Fixture::new("doctor-process");
    // One with events, without patch sites of its compiler.
    let ready = fixture.path("ready");
    let mut program = fixture.program(ringmark_tests::program!("in_spans"), "mode=overwrite");
    let program = Running::start(program.arg("churn").arg(&ready)).expect("it starts");
    wait_until(SOON, "its session", || ready.exists().then_some(()));
    let (found, _) = of_process(&fixture, program.id());
    expect(&found, "events", "ok", "has 1 session");
    expect(&found, "functions", "ok", "can load the function tracer");
    // One with patch sites, without a session.
    let source = compile(&fixture, "nested.c", "nested", SITES);
    let mut looping = fixture.command(source);
    let looping = Running::start(looping.args(["-1", "200"])).expect("it starts");
    let maps = || fs::read_to_string(format!("/proc/{}/maps", looping.id())).expect("maps");
    // Until its loader is done, it maps more and more.
    looping.wait_until_in(&SLEEPS);
    let before = maps();
    let (found, _) = of_process(&fixture, looping.id());
    expect(&found, "functions", "ok", "can load the function tracer");
    expect(&found, "events", "absent", "it has no ringmark session");
    assert_eq!(maps(), before, "nothing was loaded");
    // One with neither, and none.
    let asleep = Running::start(Command::new("sleep").arg("600")).expect("it starts");
    let (found, _) = of_process(&fixture, asleep.id());
    expect(&found, "functions", "ok", "can load the function tracer");
    let _: Finished = run(&mut doctor(&fixture, "-p 4194304"), LIMIT)
        .expect("it starts")
        .expect_code(4);
    assert!(Path::new(&format!("/proc/{}", asleep.id())).exists());
}
