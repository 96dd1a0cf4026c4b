//! Makes system calls of a traced program fail, one after the other: `deny once|always ERRNO FIRST
//! STEP LIMIT_MS PROGRAM [ARGUMENT…]`. Run N fails the Nth call that the program makes between its
//! marks (see `phases`), or that call and all of its kind from there on. Prints a line for each run
//! that hurt, then `calls=… tried=… NAME…`.
//!
//! A tracer of its own: thousands of runs in the time that strace takes for hundreds.

mod deny {
    pub(crate) mod client;
    pub(crate) mod tracer;
}

use std::collections::BTreeSet;
use std::fs;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use deny::tracer::{Plan, Run, run};

/// What is left in the session directory after a run, and removed.
fn leftovers() -> Vec<PathBuf> {
    let dir = std::env::var_os("RINGMARK_DIR").expect("RINGMARK_DIR");
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let paths: Vec<_> = entries.map(|entry| entry.path()).collect();
    for path in &paths {
        let _ = fs::remove_file(path);
    }
    paths
}

/// What a run did wrong.
fn wrong(run: &Run, always: bool) -> Option<String> {
    let left = leftovers();
    if run.timed_out {
        return Some("it hangs".to_owned());
    }
    if run.status != 0 {
        return Some(format!("wait status {:#x}", run.status));
    }
    if run.helper_calls > 300 {
        return Some(format!("{} calls of the helper thread", run.helper_calls));
    }
    if !run.errors.is_empty() {
        return Some(format!("it printed {:?}", run.errors));
    }
    // A descriptor that cannot be closed stays.
    let spare = if run.denied == Some(libc::SYS_close as u64) {
        99
    } else {
        0
    };
    let is_off = found(run, "on=false", 0..=spare) && run.output.ends_with(" threads=1\n");
    if !is_off && !found(run, "on=true", 1..=1 + spare) {
        return Some(format!("it found {:?}", run.output));
    }
    if is_off
        && run.denied_in_start
        && !has_note(&left)
        && !(always && run.denied.is_some_and(is_needed_for_a_note))
    {
        return Some("no reason was left".to_owned());
    }
    let draft = left
        .iter()
        .find(|path| path.extension().is_some_and(|e| e == "starting"));
    draft.map(|path| format!("{} is left", path.display()))
}

/// Whether the program says so, with as many descriptors more than before its session.
fn found(run: &Run, on: &str, mut more: RangeInclusive<u32>) -> bool {
    more.any(|n| run.output.starts_with(&format!("{on} descriptors=+{n} ")))
}

/// Where such calls fail again and again, no note can be left.
fn is_needed_for_a_note(number: u64) -> bool {
    let calls = [
        libc::SYS_openat,
        libc::SYS_mkdir,
        libc::SYS_statx,
        libc::SYS_newfstatat,
        libc::SYS_write,
        libc::SYS_geteuid,
        libc::SYS_getpid,
    ];
    calls.contains(&(number as i64))
}

fn has_note(left: &[PathBuf]) -> bool {
    left.iter()
        .any(|path| path.extension().is_some_and(|e| e == "off"))
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [how, error, first, step, limit, command @ ..] = &arguments[..] else {
        panic!("once|always ERRNO FIRST STEP LIMIT_MS PROGRAM");
    };
    let number = |text: &str| text.parse::<u64>().expect("a number");
    let plan = |at| Plan {
        at,
        always: how == "always",
        error: number(error) as i32,
        limit_ms: number(limit),
    };
    let whole = run(&plan(u64::MAX), command);
    if let Some(wrong) = wrong(&whole, false) {
        println!("nothing denied: {wrong}");
    }
    let (mut tried, mut names, mut at) = (0, BTreeSet::new(), number(first).max(1));
    // Some runs make a few calls more than others.
    while at <= whole.calls + 5 {
        let run = run(&plan(at), command);
        if let Some(name) = run.denied {
            tried += 1;
            names.insert(name);
            if let Some(wrong) = wrong(&run, how == "always") {
                println!("call {at} (number {name}): {wrong}");
            }
        } else {
            leftovers();
        }
        at += number(step);
    }
    println!("calls={} tried={tried} {names:?}", whole.calls);
}
