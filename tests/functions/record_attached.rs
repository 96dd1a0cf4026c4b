//! Promise: one command records a running program with its functions: it loads the function tracer,
//! switches it on, takes what is recorded, switches it off and reports. Whatever becomes of the
//! command, no function stays traced; what cannot be traced is said, and costs no trace file.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use ringmark_tests::fixture::{Fixture, SOON};
use ringmark_tests::functions::{LIMIT, SITES, calls, compile, expect_error, ringmark, tool};
use ringmark_tests::{Finished, Running, require_tools, run, wait_until};
use rustix::process::Signal;

/// Calls functions until it is killed, a thousand rounds at a time.
const LOOP: &str = "#include <unistd.h>\n\
    __attribute__((noinline)) int leaf(int n) { __asm__ volatile(\"\" : \"+r\"(n)); return n + 1; }\n\
    __attribute__((noinline)) int middle(int n) { return leaf(n) + leaf(n); }\n\
    int main(void) { volatile int sum = 0; for (;;) {\n\
    for (int i = 0; i < 100; i++) sum += middle(i);\n\
    usleep(1000); } }\n";

fn build(fixture: &Fixture, flags: &str) -> PathBuf {
    let source = fixture.path("loop.c");
    fs::write(&source, LOOP).expect("a file");
    compile(fixture, &source.to_string_lossy(), "loop", flags)
}

fn start(fixture: &Fixture, flags: &str) -> Running {
    let program = build(fixture, flags);
    Running::start(&mut fixture.command(program)).expect("it starts")
}

fn record(fixture: &Fixture, pid: u32, words: &str) -> Command {
    let mut command = tool(fixture);
    command.args(["record", "-p", &pid.to_string(), "--kind", "graph"]);
    // Each call of them counts.
    command.args(["--budget", "off", "-o"]);
    command
        .arg(fixture.path("run.rmk"))
        .args(words.split_whitespace());
    command
}

fn recorded(fixture: &Fixture, pid: u32, words: &str) -> Finished {
    run(&mut record(fixture, pid, words), LIMIT).expect("ringmark starts")
}

fn status(fixture: &Fixture, pid: u32) -> String {
    ringmark(fixture, &format!("trace status -p {pid}"), &[]).stdout_text()
}

#[test]
fn a_running_program_is_recorded_for_a_time() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("record-attached");
    let program = start(&fixture, SITES);
    let told = recorded(&fixture, program.id(), "--for 500ms")
        .expect_code(0)
        .stderr_text();
    for part in [
        "function tracer loaded by thread",
        "3 functions matched",
        "COUNT",
        "middle",
    ] {
        assert!(told.contains(part), "no {part:?} in {told}");
    }
    assert!(status(&fixture, program.id()).contains("0 of 3 patch sites enabled"));
    let found = calls(&fixture, "", &fixture.path("run.rmk"));
    // Their sites are not switched at the same moment.
    assert!(found["middle"] > 0 && found["leaf"] > 0, "{found:?}");
    for words in ["report", "graph"] {
        let text = ringmark(&fixture, words, &[&fixture.path("run.rmk")]).expect_code(0);
        let text = text.stdout_text();
        let head = text.lines().next().unwrap_or_default();
        assert!(
            head.trim_start_matches("# ").starts_with("covers "),
            "{head}"
        );
    }
    // Once more, only some of them; the rings are there.
    let told = recorded(&fixture, program.id(), "--filter lea* --for 100ms").expect_code(0);
    let told = told.stderr_text();
    assert!(told.contains("before the recording left out"), "{told}");
    let found = calls(&fixture, "", &fixture.path("run.rmk"));
    // The last page of before was not full: its records are in this trace file, too, and left out. One call
    // may have been open when its tracer was switched off.
    let earlier = found.get("middle").copied().unwrap_or(0);
    assert!(found["leaf"] > 0 && earlier <= 1, "{found:?}");
    assert!(fixture.path("run.rmk.old").exists());
    drop(program.kill());
}

/// Where functions are not named, those that cost too much are given up, and the trace is not called complete.
#[test]
fn all_functions_of_a_running_program_have_a_budget() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("record-attached-budget");
    let program = compile(&fixture, "budget.c", "budget", SITES);
    let program = Running::start(&mut fixture.command(program)).expect("it starts");
    let pid = program.id().to_string();
    let file = fixture.path("run.rmk");
    let mut command = tool(&fixture);
    command.args(["record", "-p", &pid, "--kind", "graph", "-o"]);
    let recorder = Running::start(command.arg(&file)).expect("it starts");
    wait_until(SOON, "a function that is given up", || {
        let said = status(&fixture, program.id());
        (said.contains("budget 10.0 %") && said.contains("switched off")).then_some(())
    });
    recorder.signal(Signal::INT).expect("it lives");
    let told = recorder.finish(SOON).stderr_text();
    for part in [
        "switched off for its cost: hot",
        "tracing took ",
        "the budget is 10.0 %",
    ] {
        assert!(told.contains(part), "no {part:?} in {told}");
    }
    let verify = |words: &str| ringmark(&fixture, words, &[&file]).stdout_text();
    let text = verify("verify");
    assert!(
        text.contains("functions_switched_off: 1: for their cost"),
        "{text}"
    );
    assert!(text.contains("complete: no"), "{text}");
    assert!(verify("cat --name function_switched_off").contains("function=\"hot\""));
    drop(program.kill());
}

#[test]
fn the_rings_are_as_large_as_they_are_wanted() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("record-attached-ring");
    let program = start(&fixture, SITES);
    let pid = program.id();
    let _ = recorded(&fixture, pid, "--ring 512K --for 100ms").expect_code(0);
    let told = recorded(&fixture, pid, "--for 100ms")
        .expect_code(0)
        .stderr_text();
    assert!(
        told.contains("with rings of 512 KiB in discard mode"),
        "{told}"
    );
    let larger = recorded(&fixture, pid, "--ring 8M --for 100ms");
    expect_error(
        larger,
        4,
        "--ring: the function tracer is there already, with rings of 512 KiB",
    );
    let words = format!("trace start --all-functions --ring 8M --for 1ms -p {pid}");
    expect_error(ringmark(&fixture, &words, &[]), 4, "--ring");
    let words = format!("trace start --all-functions --ring 512K --for 1ms -p {pid}");
    let _ = ringmark(&fixture, &words, &[]).expect_code(0);
    expect_error(
        recorded(&fixture, pid, "--ring 5000"),
        2,
        "expected a multiple of 4K",
    );
    drop(program.kill());
}

#[test]
fn a_killed_recording_leaves_nothing_patched() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("record-attached-killed");
    let program = start(&fixture, SITES);
    let pid = program.id();
    let recorder = Running::start(&mut record(&fixture, pid, "")).expect("it starts");
    let enabled = |wanted: &str| {
        let wanted = format!("{wanted} of 3 patch sites enabled");
        wait_until(SOON, &wanted, || {
            status(&fixture, pid).contains(&wanted).then_some(())
        });
    };
    enabled("3");
    let also = recorded(&fixture, pid, "--for 100ms");
    expect_error(also, 4, "recorded by");
    assert_eq!(recorder.kill().expect("it runs").code(), 137);
    enabled("0");
    // Until then no recorder emptied the rings: what they could not take is lost, and said.
    let next = recorded(&fixture, pid, "--for 100ms");
    let told = next.stderr_text();
    assert!(told.contains("COUNT"), "{told}");
    let _ = next.expect_code(i32::from(told.contains("events lost")));
    // One that another command has switched on is left alone.
    let words = format!("trace start --filter leaf --detach -p {pid}");
    let _ = ringmark(&fixture, &words, &[]).expect_code(0);
    expect_error(
        recorded(&fixture, pid, "--for 100ms"),
        4,
        "graph is on already",
    );
    assert!(status(&fixture, pid).contains("1 of 3 patch sites enabled"));
    drop(program.kill());
}

#[test]
fn what_cannot_be_recorded_is_said_and_costs_no_trace_file() {
    if !require_tools(&["gcc", "setpriv"]) {
        return;
    }
    let fixture = Fixture::new("record-attached-refused");
    let file = fixture.path("run.rmk");
    fs::write(&file, "of before").expect("a file");
    let program = start(&fixture, "-O2");
    expect_error(
        recorded(&fixture, program.id(), "--filter nothing --for 1s"),
        4,
        "no function that can be traced is meant",
    );
    drop(program.kill());
    let program = start(&fixture, SITES);
    let pid = program.id();
    expect_error(
        recorded(&fixture, pid, "--filter nothing --for 1s"),
        4,
        "nothing",
    );
    let mut other = fixture.command("setpriv");
    other.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"]);
    let wanted = tool(&fixture);
    other.arg(wanted.get_program());
    other.envs(
        wanted
            .get_envs()
            .filter_map(|(key, value)| Some((key, value?))),
    );
    let words = [
        "record",
        "-p",
        &pid.to_string(),
        "--kind",
        "graph",
        "-o",
        "/dev/null",
    ];
    let refused = run(other.args(words), LIMIT).expect("setpriv");
    expect_error(refused, 4, "not permitted");
    expect_error(
        recorded(&fixture, pid, "--for 1s -- true"),
        2,
        "cannot be used with",
    );
    let mut all = tool(&fixture);
    all.args(["record", "--all", "--kind", "graph"]);
    expect_error(
        run(&mut all, LIMIT).expect("ringmark"),
        2,
        "expected -p PID or -- CMD",
    );
    assert_eq!(fs::read_to_string(&file).expect("a file"), "of before");
    drop(program.kill());
    let gone = recorded(&fixture, pid, "--for 1s");
    expect_error(gone, 4, &pid.to_string());
}

#[test]
fn without_functions_a_recording_ends_after_its_time_too() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("record-for");
    let program = start(&fixture, SITES);
    let _ = recorded(&fixture, program.id(), "--for 50ms").expect_code(0);
    let mut command = tool(&fixture);
    command
        .args(["record", "--all", "--for", "50ms", "-o"])
        .arg(fixture.path("all.rmk"));
    let recorder = Running::start(&mut command).expect("it starts");
    let _ = recorder.finish(Duration::from_secs(30)).expect_code(0);
    drop(program.kill());
}
