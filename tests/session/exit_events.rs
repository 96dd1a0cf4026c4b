//! Promise: what a program emits after its exit has begun, in exit handlers and other threads, is
//! delivered or counted by whatever is beside it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;

use ringmark_decoder::Dump;
use ringmark_ring::consumer_lease;
use ringmark_tests::collecting::Collecting;
use ringmark_tests::delivery::Delivery;
use ringmark_tests::fixture::{Fixture, SOON, wait_until_mapped};
use ringmark_tests::recording::decode;
use ringmark_tests::{Running, ringmark, run, wait_until};
use rustix::process::Signal;

const ENDS: &str = ringmark_tests::program!("ends");
const MODES: [&str; 2] = ["mode=discard", "mode=overwrite"];

/// A program whose exit begins when its standard input ends. Its ring file stays: whatever is beside
/// it may look at it and close it again before it opens it for good.
fn program(fixture: &Fixture, mode: &str) -> Running {
    // Built first: the program's ring would be full, or overwritten, before it is looked at.
    let _ = ringmark();
    let mut command = fixture.program(ENDS, &format!("{mode},keep=always"));
    command.arg("late-exit").stdin(Stdio::piped());
    Running::start(&mut command).unwrap()
}

/// Ends it when `by` has opened its session; returns the number of its events.
fn end(fixture: &Fixture, mut program: Running, by: &Running) -> u64 {
    wait_until_mapped(by, &fixture.ring_file());
    drop(program.child().stdin.take());
    number(&program.finish(SOON).expect_code(0).stdout_text())
}

fn number(text: &str) -> u64 {
    text.trim().parse().expect("a number of events")
}

/// That of the events of a program none is missing, and that it is known that no more will come.
fn expect(dump: &Dump, emitted: u64, what: &str) {
    let account = Delivery::of(dump);
    account.expect_no_errors();
    let counted = account.delivered() + account.lost();
    assert_eq!(counted, emitted, "{what}: delivered and counted, of all");
    assert!(emitted >= 102, "{what}: {emitted} events");
    assert!(dump.sessions.iter().all(|s| s.is_final()), "{what}");
}

fn tool(fixture: &Fixture, arguments: &[&str], last: &Path) -> Running {
    let mut command = fixture.command(ringmark().get_program());
    Running::start(command.args(arguments).arg(last)).unwrap()
}

#[test]
fn a_command_is_recorded_to_its_end() {
    for mode in MODES {
        let fixture = Fixture::new("command");
        let dump = fixture.path("a.rmk");
        let mut command = fixture.program(ringmark().get_program().to_str().unwrap(), mode);
        command.args(["record", "-o"]).arg(&dump);
        let _ = command.args(["--", ENDS, "late-exit"]);
        let done = run(&mut command, SOON).unwrap().expect_code(0);
        let emitted = number(&done.stdout_text());
        expect(&decode(&[dump]), emitted, mode);
        assert!(fixture.ring_files().is_empty());
    }
}

#[test]
fn a_process_is_recorded_to_its_end() {
    for mode in MODES {
        let fixture = Fixture::new("process");
        let dump = fixture.path("a.rmk");
        let program = program(&fixture, mode);
        let _ = fixture.ring_file();
        let pid = program.id().to_string();
        let recorder = tool(&fixture, &["record", "-p", &pid, "-o"], &dump);
        let emitted = end(&fixture, program, &recorder);
        let _ = recorder.finish(SOON).expect_code(0);
        expect(&decode(&[dump]), emitted, mode);
    }
}

#[test]
fn a_process_is_streamed_to_its_end() {
    for mode in MODES {
        let fixture = Fixture::new("stream");
        let socket = fixture.path("socket");
        let collecting = Collecting::start(&socket, &fixture.path("store"));
        let program = program(&fixture, mode);
        let _ = fixture.ring_file();
        let pid = program.id().to_string();
        let to = format!("unix://{}", socket.display());
        let streamer = tool(&fixture, &["stream", "-p", &pid, "--to"], to.as_ref());
        let emitted = end(&fixture, program, &streamer);
        let _ = streamer.finish(SOON).expect_code(0);
        expect(&collecting.stored(), emitted, mode);
    }
}

#[test]
fn a_process_is_followed_to_its_end() {
    for mode in MODES {
        let fixture = Fixture::new("follow");
        let program = program(&fixture, mode);
        let _ = fixture.ring_file();
        let pid = program.id().to_string();
        let follower = tool(&fixture, &["cat", "--follow", "-p"], pid.as_ref());
        let emitted = end(&fixture, program, &follower);
        let shown = follower.finish(SOON).expect_code(0).stdout_text();
        let lines = shown.lines().filter(|line| line.contains("ends.tick"));
        assert_eq!(lines.count() as u64, emitted, "{mode}: {shown}");
    }
}

/// Before its exit such a program has nothing to be read: only what it emits then is to be had.
#[test]
fn a_program_that_emits_in_its_exit_only_is_recorded_beside_all_others() {
    for mode in MODES {
        let fixture = Fixture::new("late-only");
        let dump = fixture.path("a.rmk");
        fs::create_dir_all(fixture.sessions()).unwrap();
        fs::set_permissions(fixture.sessions(), fs::Permissions::from_mode(0o700)).unwrap();
        let recorder = tool(&fixture, &["record", "--all", "-o"], &dump);
        let dir = fixture.sessions();
        wait_until(SOON, "a recorder of all", || {
            consumer_lease::is_held(&dir).then_some(())
        });
        let mut emitted = 0;
        for _ in 0..5 {
            let mut command = fixture.program(ENDS, mode);
            let done = run(command.arg("late-only"), SOON).unwrap().expect_code(0);
            emitted += number(&done.stdout_text());
        }
        wait_until(SOON, "all taken", || {
            fixture.ring_files().is_empty().then_some(())
        });
        recorder.signal(Signal::TERM).unwrap();
        let _ = recorder.finish(SOON).expect_code(0);
        expect(&decode(&[dump]), emitted, mode);
    }
}
