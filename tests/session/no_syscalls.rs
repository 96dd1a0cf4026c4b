//! Promise: an attached thread makes no system call and no allocation to emit, whatever its reader
//! does.

use std::fs;
use std::path::Path;

use ringmark_tests::fixture::{Fixture, SOON};
use ringmark_tests::{Running, require_tools, wait_until};
use rustix::process::Signal;

const QUIET: &str = ringmark_tests::program!("quiet");
const RECORDER: &str = ringmark_tests::program!("recorder");
const EVENTS: u64 = 100_000;

/// System calls between the markers, and allocations.
#[derive(Debug, PartialEq, Eq)]
struct Noise {
    calls: Vec<String>,
    allocations: u64,
}

const NONE: Noise = Noise {
    calls: Vec::new(),
    allocations: 0,
};

fn start(fixture: &Fixture, ringmark: &str, how: &str, log: &Path) -> Running {
    let mut command = fixture.program("strace", ringmark);
    command.args(["-f", "-o"]).arg(log);
    command.args([QUIET, how, &EVENTS.to_string()]);
    Running::start(&mut command).unwrap()
}

fn noise(program: Running, log: &Path) -> Noise {
    let said = program.finish(3 * SOON).expect_code(0).stdout_text();
    let (attached, allocations) = said.trim().split_once(' ').unwrap();
    assert_eq!(attached, "true");
    Noise {
        calls: calls_between_markers(&fs::read_to_string(log).unwrap()),
        allocations: allocations.parse().unwrap(),
    }
}

/// What the thread that made the first marker called until its last one.
fn calls_between_markers(log: &str) -> Vec<String> {
    let first = log
        .lines()
        .find(|line| line.contains("getsid("))
        .expect("a marker");
    let thread = first.split(' ').next().unwrap();
    let own = log
        .lines()
        .filter(|line| line.split(' ').next() == Some(thread));
    let own: Vec<_> = own.map(|line| line[thread.len()..].trim()).collect();
    let is_marker = |line: &&str| line.starts_with("getsid(");
    let from = own.iter().position(is_marker).unwrap();
    let to = own.iter().rposition(is_marker).unwrap();
    assert!(to > from, "the second marker is missing");
    // Signals that come are no calls; a marker's end may stand on a line of its own.
    let between = own[from + 1..to]
        .iter()
        .filter(|line| !line.starts_with("---") && !line.starts_with("<... getsid resumed>"));
    between.map(|line| (*line).to_owned()).collect()
}

fn run(ringmark: &str, how: &str) -> Noise {
    let fixture = Fixture::new("quiet");
    let log = fixture.path("log");
    noise(start(&fixture, ringmark, how, &log), &log)
}

#[test]
fn the_event_path_is_quiet_in_both_modes_with_every_clock() {
    if !require_tools(&["strace"]) {
        return;
    }
    for clock in ["tsc", "monotonic", "coarse", "none"] {
        // Overwriting turns pages all the time; discard without a reader loses most.
        for mode in [
            "overwrite,page=4K,ring=64K",
            "discard,ring=64K",
            "overwrite,control=off",
        ] {
            let ringmark = format!("mode={mode},clock={clock}");
            assert_eq!(run(&ringmark, "events"), NONE, "{ringmark}");
        }
    }
}

#[test]
fn it_is_quiet_with_a_reader_and_with_one_that_stands_still() {
    if !require_tools(&["strace"]) {
        return;
    }
    for is_stopped in [false, true] {
        let fixture = Fixture::new("quiet");
        let log = fixture.path("log");
        let dump = fixture.path("a.rmk");
        let ringmark = "mode=discard,page=4K,ring=64K";
        let program = start(&fixture, ringmark, "events", &log);
        let ring_file = fixture.ring_file();
        let recorder = fixture.recorder(RECORDER, &dump, Some(&ring_file)).unwrap();
        let opened = || fs::metadata(&dump).is_ok_and(|m| m.len() > 0).then_some(());
        wait_until(SOON, "the recorder", opened);
        if is_stopped {
            recorder.signal(Signal::STOP).unwrap();
        }
        assert_eq!(noise(program, &log), NONE);
        recorder.signal(Signal::CONT).unwrap();
        let _ = recorder.finish(SOON).expect_code(0);
        assert!(fs::metadata(&dump).unwrap().len() > 4096);
    }
}

#[test]
fn a_call_and_an_allocation_would_be_seen() {
    if !require_tools(&["strace"]) {
        return;
    }
    let called = run("mode=overwrite", "call");
    // A call that another thread interrupted takes two lines.
    assert!(called.calls.len() as u64 >= EVENTS);
    assert_eq!(run("mode=overwrite", "allocate").allocations, EVENTS);
}
