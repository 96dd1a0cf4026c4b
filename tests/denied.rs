//! Promise: whichever system call of a start fails, and however, the program goes on and prints
//! nothing; tracing is off or smaller.

use std::collections::BTreeMap;
use std::fs;

use ringmark_tests::stage::{SOON, Stage};
use ringmark_tests::{Finished, is_long, require_tools, run};

const EMIT: &str = env!("CARGO_BIN_EXE_emit");

/// Runs the program under strace with these options; its log is kept beside the session directory.
fn trace(stage: &Stage, ringmark: &str, options: &[&str]) -> Finished {
    let mut command = stage.program("strace", ringmark);
    command
        .arg("-f")
        .args(options)
        .arg("-o")
        .arg(stage.path("log"));
    run(command.args([EMIT, "0", "10"]), SOON).unwrap()
}

/// How often each system call is made.
fn calls(ringmark: &str) -> BTreeMap<String, usize> {
    let stage = Stage::new("calls");
    let _ = trace(&stage, ringmark, &[]).expect_code(0);
    let log = fs::read_to_string(stage.path("log")).unwrap();
    let mut calls = BTreeMap::new();
    for line in log.lines() {
        // `PID name(arguments…`; a call that is resumed was counted when it began.
        let (_, call) = line.split_once(' ').unwrap_or_default();
        let name = call.trim_start().split('(').next().unwrap_or_default();
        if !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
            *calls.entry(name.to_owned()).or_default() += 1;
        }
    }
    calls
}

/// Calls that an untraced program needs just as well, or that end it.
fn is_the_programs_own(name: &str) -> bool {
    [
        "execve",
        "exit",
        "exit_group",
        "arch_prctl",
        "set_tid_address",
    ]
    .contains(&name)
}

fn survives(ringmark: &str, injection: &str) -> Result<(), String> {
    let stage = Stage::new("denied");
    let done = trace(&stage, ringmark, &["-e", injection]);
    let said = done.stderr_text();
    // Some calls strace cannot make fail, and says so.
    let is_its_own = said.starts_with("strace: ") && said.lines().count() == 1;
    if done.code() == 0 && (said.is_empty() || is_its_own) {
        return Ok(());
    }
    Err(format!(
        "{injection}: exit code {}, said {said:?}",
        done.code()
    ))
}

#[test]
fn every_system_call_of_a_start_may_fail() {
    if !require_tools(&["strace"]) {
        return;
    }
    let errors: &[_] = if is_long() {
        &["EPERM", "ENOSYS", "ENOMEM", "EINVAL"]
    } else {
        &["EPERM", "ENOSYS"]
    };
    for ringmark in ["1", "mode=lossless,control=off"] {
        let untraced = calls("0");
        let (mut tried, mut hurt) = (0, Vec::new());
        for (name, count) in calls(ringmark) {
            if is_the_programs_own(&name) {
                continue;
            }
            let before = untraced.get(&name).copied().unwrap_or(0);
            for number in 1..=count {
                for error in errors {
                    let injection = format!("inject={name}:error={error}:when={number}");
                    // What the program itself cannot live without is no business of ours.
                    if number <= before && survives("0", &injection).is_err() {
                        continue;
                    }
                    tried += 1;
                    hurt.extend(survives(ringmark, &injection).err());
                }
            }
        }
        println!("{ringmark}: {tried} calls failed, {} hurt", hurt.len());
        assert!(tried > 60, "{tried}");
        assert!(hurt.is_empty(), "{ringmark}: {hurt:#?}");
    }
}
