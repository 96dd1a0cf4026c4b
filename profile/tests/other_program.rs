//! A process that executes another program while it is looked at.

use std::io::Write;
use std::process::{Command, Stdio};
use std::thread;

use ringmark_profile::{LOOK_EVERY, Profiler};

/// Looks until a thread waits in `read` in code of that program. The runner of the tests limits the time.
fn look_until_it_reads(profiler: &mut Profiler, program: &str) {
    loop {
        assert!(profiler.look(), "it lives");
        let waits = profiler.profile().waits;
        let is_there = waits.iter().any(|wait| {
            let is_in = wait.stack.iter().any(|of| of.module.starts_with(program));
            wait.wait.call == "read" && is_in
        });
        if is_there {
            return;
        }
        thread::sleep(LOOK_EVERY);
    }
}

#[test]
fn another_program_in_the_same_process_has_names_of_its_own() {
    let mut shell = Command::new("bash")
        .args(["--norc", "-c", "read line; exec cat"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut profiler = Profiler::attach(shell.id(), 99).unwrap();
    look_until_it_reads(&mut profiler, "bash");
    let mut stdin = shell.stdin.take().unwrap();
    stdin.write_all(b"\n").unwrap();
    look_until_it_reads(&mut profiler, "cat");
    assert_eq!(profiler.name(), "cat");
    drop(stdin);
    assert!(shell.wait().unwrap().success());
}

#[test]
fn a_pipe_in_the_place_of_a_file_of_functions_is_not_waited_for() {
    let mut cat = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
    let place = format!("/tmp/perf-{}.map", cat.id());
    let made = Command::new("mkfifo").arg(&place).status().unwrap();
    assert!(made.success());
    let mut profiler = Profiler::attach(cat.id(), 99).unwrap();
    look_until_it_reads(&mut profiler, "cat");
    std::fs::remove_file(place).unwrap();
    drop(cat.stdin.take());
    assert!(cat.wait().unwrap().success());
}
