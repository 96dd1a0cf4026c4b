//! Promise: a program's own events and its functions are recorded together, whichever copies of the
//! library the process holds and whenever the function tracer comes; by raw tick each event lies
//! inside the call that emitted it, where the program emitted it.

use crate::with_events;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use ringmark_decoder::Dump;
use ringmark_format::slot::state;
use ringmark_reader::{Access, Session};
use ringmark_tests::fixture::Fixture;
use ringmark_tests::functions::{library, tool};
use ringmark_tests::recording::{decode, read};
use ringmark_tests::{Running, is_long, require_tools, run, wait_until};
use with_events::order::{Part, check};
use with_events::program::{Copy, LIMIT, Program, Work};

/// How long a program has run when the tracer comes late.
const LATE: Duration = Duration::from_secs(5);

/// Rings that hold all, so that no reader has to come in time.
fn settings() -> &'static str {
    match is_long() {
        true => "mode=discard,keep=always,ring=32M,session=512M",
        false => "mode=discard,keep=always,ring=1M,session=16M",
    }
}

/// Started by `ringmark run`: the dump of all its sessions.
fn run_by_tool(fixture: &Fixture, program: &Program, work: &Work) -> Dump {
    let dump = fixture.path("run.rmk");
    let mut command = tool(fixture);
    command.env("RINGMARK", settings());
    command.args(["run", "--kind", "graph", "--args", "1", "-o"]);
    command
        .arg(&dump)
        .arg("--")
        .arg(&program.path)
        .args(&program.words);
    command.args(work.arguments());
    let _ = run(&mut command, LIMIT).expect("ringmark").expect_code(0);
    decode(&[dump])
}

/// Started without function tracing, which is switched on once each thread has emitted events.
fn attached(
    fixture: &Fixture,
    program: &Program,
    work: &Work,
    prepared: Option<&Path>,
    after: Duration,
) -> Dump {
    let command = program.command(fixture, work, settings(), prepared);
    let mut started = program.start(command, work);
    std::thread::sleep(after);
    let mut start = tool(fixture);
    start.args([
        "trace",
        "start",
        "--detach",
        "--all-functions",
        "--args",
        "1",
        "-p",
    ]);
    start.arg(started.id().to_string());
    // The program's threads wait until it is done.
    let _ = run(&mut start, LIMIT).expect("ringmark").expect_code(0);
    started.go();
    let _ = started.finish();
    read(&fixture.ring_files())
}

fn all_ways(copy: Copy) {
    if !require_tools(&["gcc"]) {
        return;
    }
    let work = Work::new(copy);
    let built = Fixture::new("fn-events-built");
    let program = Program::build(&built, copy, "");
    let fixture = Fixture::new("fn-events-run");
    let dump = run_by_tool(&fixture, &program, &work);
    check(&dump, &work, copy, Part::Whole, "run");
    drop(fixture);
    let none = Duration::ZERO;
    for (prepared, after) in [(Some(library()), none), (None, none), (None, LATE)] {
        let fixture = Fixture::new("fn-events-attach");
        let dump = attached(&fixture, &program, &work, prepared, after);
        let is_prepared = prepared.is_some();
        let what = format!("attached after {after:?}, prepared {is_prepared}");
        check(&dump, &work, copy, Part::Whole, &what);
    }
}

#[test]
fn in_rust() {
    all_ways(Copy::Rust);
}

#[test]
fn in_c_linked_statically() {
    all_ways(Copy::Static);
}

#[test]
fn in_c_with_the_shared_library() {
    all_ways(Copy::Shared);
}

#[test]
fn in_a_plugin() {
    all_ways(Copy::Plugin);
}

#[test]
fn in_a_program_and_in_its_plugin() {
    all_ways(Copy::Both);
}

/// The program's own copy prepares rings for threads to come; the preloaded one takes no memory for
/// threads that may never call a traced function.
#[test]
fn a_preloaded_copy_prepares_no_rings() {
    let fixture = Fixture::new("fn-no-warm");
    let program = Program::build(&fixture, Copy::Rust, "");
    let work = Work::new(Copy::Rust);
    let settings = "mode=discard,ring=64K,session=16M,warm=3";
    let command = program.command(&fixture, &work, settings, Some(library()));
    let mut started = program.start(command, &work);
    let prepared = |file: &PathBuf| {
        let session = Session::open(file, Access::Observe).expect("a session");
        let ring = session.ring();
        let slots = (0..ring.slots_used()).filter_map(|index| ring.slot(index));
        slots.filter(|slot| slot.state() == state::WARM).count()
    };
    let prepared = wait_until(LIMIT, "rings of the program's own copy", || {
        let mut all: Vec<_> = fixture.ring_files().iter().map(prepared).collect();
        all.sort_unstable();
        (all.last() == Some(&3)).then_some(all)
    });
    assert_eq!(prepared, [0, 3]);
    started.go();
    let _ = started.finish();
}

/// A program that starts its own session with another clock than the function tracer's.
fn with_another_clock(fixture: &Fixture, command: &mut Command, own: &str) -> Running {
    command.env("RINGMARK", "1").env("OWN_SETTINGS", own);
    command.stdin(std::process::Stdio::piped());
    let running = Running::start(command).expect("it starts");
    wait_until(LIMIT, "its note", || {
        let entries = std::fs::read_dir(fixture.sessions()).into_iter().flatten();
        let mut names = entries.flatten().map(|entry| entry.file_name());
        names
            .any(|name| name.to_string_lossy().ends_with(".off"))
            .then_some(())
    });
    running
}

#[test]
fn another_clock_is_refused_where_a_person_sees_it() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let built = Fixture::new("fn-clocks-built");
    let program = Program::build(&built, Copy::Static, "").path;
    let reasons = [
        ("clock=coarse", "clock: found coarse, expected "),
        ("clock=none", "clock: found none, expected "),
    ];
    for (own, reason) in reasons {
        let fixture = Fixture::new("fn-clocks");
        let mut command = fixture.command(&program);
        command
            .args(["1", "10", "1", "0"])
            .env("LD_PRELOAD", library());
        let running = with_another_clock(&fixture, &mut command, own);
        let listed = run(tool(&fixture).arg("list"), LIMIT).expect("ringmark");
        let listed = listed.expect_code(0).stdout_text();
        assert!(listed.contains(reason), "{listed}");
        assert_eq!(fixture.ring_files().len(), 1);
        drop(running);
        // And in the end by the command that recorded it, which then fails.
        let mut command = tool(&fixture);
        command.args(["run", "--kind", "graph", "--all-functions", "-o"]);
        command.arg(fixture.path("run.rmk")).arg("--").arg(&program);
        command.args(["1", "10", "1", "0"]).env("OWN_SETTINGS", own);
        let finished = run(&mut command, LIMIT).expect("ringmark").expect_code(1);
        let text = finished.stderr_text();
        let told = "the program's own events were NOT recorded, only its functions";
        assert!(text.contains(told) && text.contains(reason), "{text}");
    }
}
