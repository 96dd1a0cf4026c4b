//! Promise: how often a thread waited and was preempted is exactly what the kernel counts, however short the waits are.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use ringmark_profile::{Missing, Profiler};
use ringmark_tests::fixture::{Fixture, SOON};
use ringmark_tests::functions::compile;
use ringmark_tests::{is_long, log_skip, require_tools, wait_until};

/// Voluntary and other switches of each thread so far, by number.
fn counted(pid: u32) -> BTreeMap<u32, (u64, u64)> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).expect("it lives");
    let of = |task: fs::DirEntry| {
        let status = fs::read_to_string(task.path().join("status")).expect("it lives");
        let number = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|rest| rest.trim().parse().ok())
                .expect("a number")
        };
        let tid = task
            .file_name()
            .to_string_lossy()
            .parse()
            .expect("a number");
        let voluntary = number("voluntary_ctxt_switches:");
        (tid, (voluntary, number("nonvoluntary_ctxt_switches:")))
    };
    tasks.map(|task| of(task.expect("an entry"))).collect()
}

/// Waits until all threads of the process are off their processors, in `read`.
fn wait_until_all_read(pid: u32) {
    wait_until(SOON, "threads that wait", || {
        let mut tasks = fs::read_dir(format!("/proc/{pid}/task")).ok()?;
        let reads = |task: std::io::Result<fs::DirEntry>| {
            let text = fs::read_to_string(task.ok()?.path().join("syscall")).ok()?;
            text.starts_with("0 ").then_some(())
        };
        tasks.all(|task| reads(task).is_some()).then_some(())
    });
}

#[test]
fn are_those_that_the_kernel_counts() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let rounds: u64 = if is_long() { 200_000 } else { 3_000 };
    let fixture = Fixture::new("profile-switches");
    let program = compile(&fixture, "../c/ping_pong.c", "ping_pong", "-O2 -pthread");
    let mut child = Command::new(program)
        .arg(rounds.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a program");
    let mut said = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut says = |expected: &str| {
        let mut line = String::new();
        said.read_line(&mut line).expect("text");
        assert_eq!(line.trim(), expected);
    };
    says("ready");
    wait_until_all_read(child.id());
    let mut profiler = Profiler::attach(child.id(), 99).expect("it is there");
    let before = counted(child.id());
    let mut input = child.stdin.take().expect("a pipe");
    input.write_all(b"\n").expect("it reads");
    says("done");
    wait_until_all_read(child.id());
    let after = counted(child.id());
    let profile = profiler.profile();
    drop(input);
    assert!(child.wait().expect("its end").success());
    if let Some(Missing::Running(why)) = profile.missing.first() {
        log_skip(&format!("switches are refused here: {why}"));
        return;
    }
    assert_eq!(profile.missing, []);
    for thread in &profile.threads {
        let (was, is) = (before[&thread.tid], after[&thread.tid]);
        let found = thread.switches.expect("it has switched");
        println!("{}: {found:?}", thread.name);
        assert_eq!(found.waits, is.0 - was.0, "{}: waits", thread.name);
        assert_eq!(
            found.preemptions,
            is.1 - was.1,
            "{}: preemptions",
            thread.name
        );
        // How often depends on who is put off when: what is written meanwhile is not waited for.
        assert!(found.waits > 0, "{}: it waited", thread.name);
        let longest = found.longest_wait_ns;
        assert!(
            longest > 0 && longest <= profile.ns,
            "{}: {longest}",
            thread.name
        );
    }
}
