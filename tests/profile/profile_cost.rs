//! Promise: a look at 400 threads that wait costs no more than to read once how long each has run, and the program that is
//! looked at nothing.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use ringmark_tests::fixture::Fixture;
use ringmark_tests::process::SLEEPS;
use ringmark_tests::{Running, is_long, require_tools, ringmark};

use crate::many_threads::Threads;

const IDLE: u64 = 400;

/// ns of a processor that all threads of a process have had.
fn ran_ns(pid: u32) -> u64 {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).expect("it lives");
    let ran = |task: std::io::Result<fs::DirEntry>| {
        let text = fs::read_to_string(task.ok()?.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<u64>().ok()
    };
    tasks.filter_map(ran).sum()
}

/// Sleeps of a process so far: it looks once between two of them.
fn sleeps(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("it lives");
    let line = status
        .lines()
        .find(|line| line.starts_with("voluntary_ctxt_switches:"));
    let number = line.and_then(|line| line.split_whitespace().last());
    number.and_then(|word| word.parse().ok()).expect("a number")
}

/// ns of a processor that it takes to read once how long each thread of a process has run.
fn floor_ns(pid: u32) -> u64 {
    const ROUNDS: u64 = 50;
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).expect("it lives");
    let open =
        |task: std::io::Result<fs::DirEntry>| File::open(task.ok()?.path().join("schedstat")).ok();
    let files: Vec<File> = tasks.filter_map(open).collect();
    let own_ns = || {
        let text = fs::read_to_string("/proc/thread-self/schedstat").expect("its own");
        let ran = text.split_whitespace().next().map(str::parse::<u64>);
        ran.expect("a number").expect("a number")
    };
    let (before, mut text) = (own_ns(), [0; 64]);
    for _ in 0..ROUNDS {
        // As after the looker's sleep, others have used the caches meanwhile.
        thread::sleep(Duration::from_millis(50));
        for file in &files {
            let _ = file.read_at(&mut text, 0).expect("it lives");
        }
    }
    (own_ns() - before) / ROUNDS
}

#[test]
fn four_hundred_idle_threads_cost_as_much_as_to_read_them_once() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let looks = if is_long() { 600 } else { 100 };
    let fixture = Fixture::new("profile-cost");
    let program = Threads::start(&fixture, IDLE, 0);
    let mut command = ringmark();
    command.args(["profile", "--for", "10m", "-p", &program.0.id().to_string()]);
    let looker = Running::start(command.stdin(Stdio::null())).expect("ringmark");
    looker.wait_until_in(&SLEEPS);
    // Its start, and reading each thread's wait once, is another matter; threads that begin to wait are looked at often.
    looker.wait_for_sleeps(120);
    let (pid, begun) = (looker.id(), Instant::now());
    let (before, program_before) = (ran_ns(pid), ran_ns(program.0.id()));
    let first = sleeps(pid);
    while sleeps(pid) < first + looks {
        thread::sleep(Duration::from_millis(20));
    }
    let (looked, took) = (sleeps(pid) - first, begun.elapsed());
    let each_us = (ran_ns(pid) - before) / 1000 / looked;
    let program_ns = ran_ns(program.0.id()) - program_before;
    let floor_us = floor_ns(program.0.id()) / 1000;
    println!(
        "{looked} looks in {took:?}: {each_us} us each, floor {floor_us}; the program ran {program_ns} ns"
    );
    // With 20 looks a second 1 % of a core is 500 us.
    assert!(
        each_us <= 2 * floor_us,
        "{each_us} us a look, expected at most twice {floor_us} us"
    );
    assert_eq!(program_ns, 0, "the program was not left alone");
    drop(looker);
}
