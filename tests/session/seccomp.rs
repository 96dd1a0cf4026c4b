//! Promise: a program that forbids itself system calls after the start goes on emitting. With
//! `control=off` and threads attached before, nothing of Ringmark makes a call from then on; with
//! `keep=always` or `memfd=on` its end makes none either. (Strict mode takes the time stamp counter
//! away: `clock=coarse` or `none` there.) A forbidden call that fails instead of killing hurts
//! no one. A thread of ours never keeps a process alive, nor changes how it ended.

use std::fs;
use std::process::Stdio;

use ringmark_tests::delivery::Delivery;
use ringmark_tests::fixture::{Fixture, SOON};
use ringmark_tests::recording::read;
use ringmark_tests::{Finished, Running, run, wait_until};

const SANDBOX: &str = ringmark_tests::program!("sandbox");
const EVENTS: u64 = 50_000;
/// 128 + SIGSYS.
const KILLED: i32 = 128 + libc::SIGSYS;

fn start(fixture: &Fixture, ringmark: &str, how: &str) -> Running {
    let mut command = fixture.program(SANDBOX, ringmark);
    command.args([how, &EVENTS.to_string()]);
    command.stdin(Stdio::piped());
    Running::start(&mut command).unwrap()
}

fn end(mut program: Running) -> Finished {
    drop(program.child().stdin.take());
    program.finish(SOON)
}

#[track_caller]
fn expect_done(done: Finished) {
    let done = done.expect_code(0);
    let said = (done.stdout_text(), done.stderr_text());
    assert_eq!(said, ("done\n".to_owned(), String::new()));
}

/// The newest events of each thread are there, whole.
fn check(fixture: &Fixture, threads: usize) {
    let account = Delivery::of(&read(&fixture.ring_files()));
    assert!(account.delivered() > 1000, "{account:?}");
    println!("{} events of {threads} threads", account.delivered());
}

#[test]
fn attached_threads_emit_in_strict_mode() {
    // That mode takes the time stamp counter away, too.
    for clock in ["coarse", "none"] {
        for control in ["on", "off"] {
            for mode in ["overwrite,page=4K,ring=64K", "discard,ring=64K"] {
                let fixture = Fixture::new("strict");
                let ringmark = format!("mode={mode},clock={clock},control={control}");
                expect_done(end(start(&fixture, &ringmark, "strict")));
                // It was not closed: it is there, and its process is dead.
                check(&fixture, 1);
            }
        }
    }
}

#[test]
fn a_filter_that_kills_kills_nobody_who_is_prepared() {
    for clock in ["tsc", "monotonic", "coarse", "none"] {
        for (how, control) in [("kill", "on"), ("kill", "off"), ("kill-all", "off")] {
            let fixture = Fixture::new("kill");
            let options = format!("clock={clock},control={control}");
            let ringmark = format!("mode=overwrite,page=4K,ring=64K,keep=always,{options}");
            expect_done(end(start(&fixture, &ringmark, how)));
            check(&fixture, 2);
            let ringmark = format!("mode=discard,memfd=on,{options}");
            expect_done(end(start(&fixture, &ringmark, how)));
        }
    }
}

#[test]
fn what_the_documents_warn_of_is_so() {
    // The end removes the file, which is a call.
    let fixture = Fixture::new("warned");
    let done = end(start(&fixture, "mode=overwrite,control=off", "kill"));
    assert_eq!(done.code(), KILLED);
    // The mode takes the counter away; without the helper as well.
    let done = end(start(&fixture, "mode=overwrite,control=off", "strict"));
    assert_ne!(done.code(), 0);
    // The helper thread sleeps, which is one.
    let program = start(&fixture, "mode=overwrite,keep=always", "kill-all");
    assert_eq!(program.finish(SOON).code(), KILLED);
}

#[test]
fn a_filter_that_fails_calls_costs_the_helper_thread_and_no_more() {
    for error in [libc::EPERM, libc::ENOSYS, libc::EINVAL] {
        for mode in ["overwrite,page=4K,ring=64K", "discard"] {
            let fixture = Fixture::new("errno");
            let ringmark = format!("mode={mode},keep=always");
            let mut program = start(&fixture, &ringmark, &format!("{error}-all"));
            let tasks = format!("/proc/{}/task", program.id());
            let count = || fs::read_dir(&tasks).map_or(0, Iterator::count);
            // Emitting is over when both wait for input; the helper has left, it does not spin.
            wait_until(SOON, "the helper's end", || (count() == 2).then_some(()));
            assert!(program.child().try_wait().unwrap().is_none());
            expect_done(end(program));
            check(&fixture, 2);
        }
    }
}

#[test]
fn a_process_whose_other_threads_have_ended_ends() {
    for (ringmark, code) in [("0", 0), ("1", 0), ("1", 7), ("control=off", 7)] {
        let fixture = Fixture::new("alone");
        let mut command = fixture.program(SANDBOX, ringmark);
        let done = run(command.args(["alone", &code.to_string()]), SOON).unwrap();
        let done = done.expect_code(code);
        let said = (done.stdout_text(), done.stderr_text());
        assert_eq!(said, (String::new(), String::new()));
    }
}
