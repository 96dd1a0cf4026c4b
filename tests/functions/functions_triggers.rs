//! Promise: a tracer records from one function's entry or end on, and up to another's, call for call
//! in every thread; a function asks for a snapshot.

use crate::calls;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use calls::{Program, RETURNS, XRAY, clang};
use ringmark_tests::collecting::Collecting;
use ringmark_tests::compiler::can_build;
use ringmark_tests::fixture::{Fixture, SOON, wait_until_mapped};
use ringmark_tests::functions::{
    LIMIT, SITES, calls, compile, expect_error, library, ringmark, tool,
};
use ringmark_tests::recording::decode;
use ringmark_tests::{Running, is_long, log_skip, require_tools, wait_until};
use rustix::process::Signal;

/// As in `triggers.c`.
const INSIDE: u64 = 100;
const OUTSIDE: u64 = 30;

/// Threads and parts.
fn size() -> (u64, u64) {
    if is_long() { (8, 1000) } else { (4, 20) }
}

fn build(fixture: &Fixture) -> PathBuf {
    compile(
        fixture,
        "triggers.c",
        "triggers",
        &format!("{SITES} -pthread"),
    )
}

/// Runs the program from start to end, traced as `words` say.
fn record(fixture: &Fixture, program: &Path, words: &str) -> PathBuf {
    let (threads, parts) = size();
    let dump = fixture.path("run.rmk");
    let mut command = tool(fixture);
    command
        .args(["run", "--kind", "graph"])
        .args(words.split_whitespace());
    command.arg("-o").arg(&dump).arg("--").arg(program);
    command.args([threads.to_string(), parts.to_string()]);
    let finished = ringmark_tests::run(&mut command, LIMIT);
    let _ = finished.expect("ringmark starts").expect_code(0);
    let verify = ringmark(fixture, "verify --json", &[&dump]).stdout_text();
    let found: serde_json::Value = serde_json::from_str(&verify).expect("JSON");
    assert_eq!(found["lost"], 0, "{verify}");
    dump
}

fn expect_calls(found: &BTreeMap<String, u64>, expected: &[(&str, u64)], what: &str) {
    let expected: BTreeMap<_, _> = expected
        .iter()
        .filter(|(_, calls)| *calls > 0)
        .map(|(name, calls)| ((*name).to_owned(), *calls))
        .collect();
    assert_eq!(*found, expected, "{what}");
}

#[test]
fn every_call_between_two_functions_and_no_other() {
    if require_tools(&["gcc"]) {
        let fixture = Fixture::new("fn-between");
        let program = build(&fixture);
        check_between(&fixture, &program, "entries");
    }
}

#[test]
fn the_same_where_exits_are_sites() {
    let check = |compiler: &str, flags: &str| {
        let program = Program::new(compiler, "triggers.c", &format!("-O2 {flags}"));
        check_between(program.fixture(), program.path(), &program.build);
    };
    if require_tools(&["gcc"]) {
        check("gcc", &format!("-fno-pie -no-pie -mnop-mcount {RETURNS}"));
    }
    if let Some(clang) = clang().filter(|clang| can_build(clang, XRAY)) {
        check(&clang, &format!("-DNO_NESTED {XRAY}"));
    }
}

/// Triggers, and the calls of work, leaf, begin_part, leave_part, end_part, main between them.
fn cases() -> [(&'static str, [u64; 6]); 6] {
    let (threads, parts) = size();
    let inside = threads * parts * INSIDE;
    let first = threads * OUTSIDE;
    let later = inside + threads * (parts - 1) * OUTSIDE;
    [
        (
            "begin_part:entry=start end_part:entry=stop",
            [inside, inside + 2 * parts, parts, parts, 0, 0],
        ),
        (
            "begin_part:exit=start end_part:exit=stop",
            [inside, inside + 2 * parts, 0, parts, parts, 0],
        ),
        // Every second of its calls ends by a jump.
        (
            "begin_part:exit=start leave_part:exit=stop",
            [inside, inside + parts, 0, parts, 0, 0],
        ),
        (
            "work@trig*:entry=start begin_part:entry=stop",
            [0, 0, 0, 0, 0, 0],
        ),
        ("begin_part:entry=stop", [first, first, 0, 0, 0, 1]),
        (
            "begin_part:entry=start",
            [later, later + 3 * parts, parts, parts, parts, 0],
        ),
    ]
}

fn check_between(fixture: &Fixture, program: &Path, build: &str) {
    let (threads, parts) = size();
    let (inside, first) = (threads * parts * INSIDE, threads * OUTSIDE);
    for (triggers, expected) in cases() {
        let words: Vec<_> = triggers
            .split(' ')
            .map(|t| format!("--trigger {t}"))
            .collect();
        let dump = record(fixture, program, &format!("--filter * {}", words.join(" ")));
        let found = calls(fixture, "", &dump);
        if triggers.starts_with("work") {
            // Some thread starts it, then only the first part's end is certain.
            assert!(
                found["work"] >= first && !found.contains_key("begin_part"),
                "{found:?}"
            );
            continue;
        }
        let names = [
            "work",
            "leaf",
            "begin_part",
            "leave_part",
            "end_part",
            "main",
        ];
        let expected: Vec<_> = names.into_iter().zip(expected).collect();
        expect_calls(&found, &expected, &format!("{triggers}: {build}"));
    }
    // The functions of the triggers need not be traced themselves.
    let words = "--filter work --trigger begin_part:entry=start --trigger end_part:exit=stop";
    let dump = record(fixture, program, words);
    expect_calls(&calls(fixture, "", &dump), &[("work", inside)], build);
}

#[test]
fn each_tracer_has_its_own_triggers() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("fn-own-triggers");
    let program = build(&fixture);
    let (threads, parts) = size();
    let parts = parts.min(200); // Their rings hold it all.
    let wishes = "tracer=graph;filter=work;filter=leaf;\
        trigger=begin_part:entry=start;trigger=end_part:entry=stop;\
        tracer=all;kind=graph;filter=work;filter=end_part;\
        tracer=between;kind=graph;filter=work;filter=leaf;args=1;\
        trigger=begin_part:entry=stop;trigger=end_part:exit=start;\
        tracer=never;kind=graph;filter=*;trigger=nowhere:entry=start";
    let mut command = fixture.command(&program);
    command.env(
        "RINGMARK",
        "mode=discard,keep=always,page=4K,ring=4M,session=64M",
    );
    command
        .env("RINGMARK_TRACE", wishes)
        .env("LD_PRELOAD", library());
    command.args([threads.to_string(), parts.to_string()]);
    let finished = ringmark_tests::run(&mut command, LIMIT);
    let _ = finished.expect("it starts").expect_code(0);
    let dump = fixture.path("own.rmk");
    let _ = ringmark(&fixture, "snapshot -o", &[&dump]).expect_code(0);
    let of = |tracer: &str| calls(&fixture, &format!("--tracer {tracer}"), &dump);
    let inside = threads * parts * INSIDE;
    let outside = threads * (parts - 1) * OUTSIDE;
    expect_calls(
        &of("graph"),
        &[("work", inside), ("leaf", inside + 2 * parts)],
        "graph",
    );
    let all = inside + threads * parts * OUTSIDE;
    expect_calls(&of("all"), &[("work", all), ("end_part", parts)], "all");
    expect_calls(
        &of("between"),
        &[("work", outside), ("leaf", outside)],
        "between",
    );
    expect_calls(&of("never"), &[], "never");
}

/// The program, in parts without end.
fn endless(fixture: &Fixture, wishes: &str) -> Running {
    let program = build(fixture);
    let mut command = fixture.command(&program);
    command.env("RINGMARK", "mode=overwrite,ring=1M");
    command
        .env("RINGMARK_TRACE", wishes)
        .env("LD_PRELOAD", library());
    command.args(["2", "-1", "1000"]);
    let program = Running::start(&mut command).expect("it starts");
    let _ = fixture.ring_file();
    program
}

#[test]
fn triggers_of_a_running_program() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("fn-triggers");
    let program = endless(&fixture, "");
    let pid = program.id();
    let ask = |words: &str| ringmark(&fixture, &format!("trace {words} -p {pid}"), &[]);
    let said = |words: &str| ask(words).expect_code(0).stdout_text();
    assert_eq!(said("trigger"), "");
    // For a tracer that is off it changes no site.
    assert!(said("trigger begin_part:entry=start end_part:entry=stop").contains(" 0 enabled;"));
    let listed = "TRACER  FUNCTIONS  TRIGGER\n\
        graph           1  begin_part:entry=start\n\
        graph           1  end_part:entry=stop\n";
    assert_eq!(said("trigger"), listed);
    assert_eq!(said("trigger -T function"), "");
    assert!(
        said("start -F work --detach")
            .starts_with("1 function matched, 3 patch sites changed, 3 enabled")
    );
    let status = said("status");
    assert!(status.contains(listed), "{status}");
    wait_until(SOON, "calls of parts", || {
        let dump = fixture.path("now.rmk");
        let _ = ringmark(&fixture, &format!("snapshot -p {pid} -o"), &[&dump]).expect_code(0);
        calls(&fixture, "", &dump)
            .contains_key("work")
            .then_some(())
    });
    // Others replace them; a tracer that waited for a start goes on without one.
    let nowhere = |words| expect_error(ask(words), 4, "\"nothing:entry=start\" is at no function");
    nowhere("start -F work --trigger nothing:entry=start --detach");
    nowhere("trigger nothing:entry=start");
    assert!(said("status").contains("  on, paused "));
    assert!(
        said("trigger --none").contains("1 function matched, 1 patch site changed, 1 enabled;")
    );
    assert!(!said("status").contains("paused"));
    assert_eq!(said("trigger"), "");
}

#[test]
fn triggers_of_a_start_end_with_it() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("fn-triggers-held");
    let program = endless(&fixture, "");
    let pid = program.id();
    let status = || {
        let words = format!("trace status -p {pid}");
        ringmark(&fixture, &words, &[]).expect_code(0).stdout_text()
    };
    let mut holder = tool(&fixture);
    holder.args([
        "trace",
        "start",
        "-F",
        "work",
        "--trigger",
        "*_part:exit=stop",
    ]);
    let holder = Running::start(holder.args(["-p", &pid.to_string()])).expect("it starts");
    wait_until(SOON, "the start", || {
        status()
            .contains("4 of 6 patch sites enabled")
            .then_some(())
    });
    holder.signal(Signal::INT).expect("it lives");
    let _ = holder.finish(SOON).expect_code(0);
    assert!(status().contains("0 of 6 patch sites enabled"));
}

#[test]
fn triggers_that_cannot_be_are_refused() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("fn-triggers-refused");
    let program = endless(&fixture, "");
    let pid = program.id();
    let ask = |words: &str| ringmark(&fixture, &format!("trace {words} -p {pid}"), &[]);
    for (words, code, text) in [
        ("trigger work", 2, "expected FUNCTION:entry=ACTION"),
        (
            "trigger work:entry=go",
            2,
            "expected start, stop or snapshot",
        ),
        (
            "start -F work --trigger work:start",
            2,
            "expected FUNCTION:entry=ACTION",
        ),
        ("trigger -T unknown work:entry=stop", 4, "no tracer"),
    ] {
        expect_error(ask(words), code, text);
    }
    // Each function has a type for each set of tracers that pause: there is an end of that.
    for n in 0..4 {
        let start =
            format!("start -T t{n} --kind graph -F work --trigger work:entry=stop --detach");
        let _ = ask(&start).expect_code(0);
    }
    let _ = ask("start -F work --detach").expect_code(0);
    expect_error(
        ask("start -F work --trigger work:exit=start --detach"),
        4,
        "4 tracers have triggers",
    );
    let triggers = ask("trigger").expect_code(0).stdout_text();
    assert!(!triggers.contains("graph"), "what was refused is not there");
    let _ = ask("remove -T t1").expect_code(0);
    let _ = ask("trigger work:exit=start").expect_code(0);
}

/// Waits for a snapshot.
fn waiter(fixture: &Fixture, program: &Running, dump: &Path) -> Running {
    let mut command = tool(fixture);
    command.args([
        "snapshot",
        "--on-trigger",
        "-p",
        &program.id().to_string(),
        "-o",
    ]);
    Running::start(command.arg(dump)).expect("it starts")
}

#[test]
fn a_function_asks_for_a_snapshot() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("fn-snapshot");
    // From the first end of leave_part on nothing comes that could overwrite what was before it.
    let wishes =
        "tracer=graph;filter=*;trigger=leave_part:exit=stop;trigger=leave_part:exit=snapshot";
    let program = endless(&fixture, wishes);
    let pid = program.id();
    let wait = |waiter: Running| waiter.finish(SOON).expect_code(0).stderr_text();
    let ask = |words: &str| {
        let asked = ringmark(&fixture, &format!("trace {words} -p {pid}"), &[]);
        asked.expect_code(0).stdout_text()
    };
    let wants = || ask("status").contains("wants a snapshot");
    // It is wanted until one is taken, once.
    wait_until(SOON, "a wish", || wants().then_some(()));
    let dump = fixture.path("first.rmk");
    let told = wait(waiter(&fixture, &program, &dump));
    let before = "a trigger of graph wants a snapshot, since before this command began";
    assert!(told.contains(before), "{told}");
    let work = 2 * (OUTSIDE + INSIDE);
    let expected = [
        ("work", work),
        ("leaf", work + 2),
        ("begin_part", 1),
        ("leave_part", 1),
        // Still open.
        ("main", 1),
    ];
    expect_calls(&calls(&fixture, "", &dump), &expected, "up to the trigger");
    assert!(ask("status").contains("on, paused "), "it stopped");
    // A waiter is there before it is wanted.
    let dump = fixture.path("second.rmk");
    let _ = ask("trigger --none");
    assert!(!wants());
    let waiting = waiter(&fixture, &program, &dump);
    wait_until_mapped(&waiting, &fixture.ring_file());
    waiting.wait_for_sleeps(10);
    assert!(!dump.exists());
    let _ = ask("trigger begin_part:entry=snapshot");
    assert!(wait(waiting).contains("a trigger of graph wants a snapshot\n"));
    assert!(calls(&fixture, "", &dump)["work"] > 0);
    // It is called again and again. What is stopped wants none, nor what is started after that.
    wait_until(SOON, "another wish", || wants().then_some(()));
    assert!(ask("stop").contains(" 0 enabled") && !wants());
    let _ = ask("start --detach");
    wait_until(SOON, "a wish after a start", || wants().then_some(()));
    assert!(!ask("trigger --none").is_empty() && !wants());
}

#[test]
fn a_function_has_what_is_there_sent_to_a_collector() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("fn-upload");
    let (socket, store) = (fixture.path("socket"), fixture.path("store"));
    let collecting = Collecting::start(&socket, &store);
    let program = endless(&fixture, "tracer=graph;filter=*");
    let mut command = tool(&fixture);
    command.args(["stream", "--all", "--on-trigger", "--to"]);
    let streamer = Running::start(command.arg(format!("unix://{}", socket.display())));
    let streamer = streamer.expect("it starts");
    wait_until_mapped(&streamer, &fixture.ring_file());
    streamer.wait_for_sleeps(40);
    assert_eq!(collecting.figure("pages_total"), 0, "nothing was asked for");
    let pid = program.id();
    let words = format!("trace trigger begin_part:entry=snapshot -p {pid}");
    let _ = ringmark(&fixture, &words, &[]).expect_code(0);
    let stored = || (collecting.figure("pages_total") > 0).then_some(());
    wait_until(SOON, "pages in the store", stored);
    streamer.signal(Signal::TERM).expect("it lives");
    let told = streamer.finish(SOON).expect_code(0).stderr_text();
    let expected = "a trigger: what the rings hold is sent";
    assert!(told.contains(expected), "{told}");
    assert!(calls(&fixture, "", &store)["work"] > 0);
}

/// What threads did is kept from the start of the command on.
#[test]
fn a_snapshot_that_is_waited_for_has_what_threads_did() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("fn-snapshot-threads");
    let program = endless(&fixture, "tracer=graph;filter=*");
    let pid = program.id();
    let dump = fixture.path("threads.rmk");
    let words = format!("snapshot -p {pid} --on-trigger --sched --waits -o");
    let mut snapshot = tool(&fixture);
    snapshot.args(words.split(' ')).arg(&dump);
    let waiting = Running::start(&mut snapshot).expect("ringmark");
    wait_until_mapped(&waiting, &fixture.ring_file());
    waiting.wait_for_sleeps(10);
    let trigger = format!("trace trigger begin_part:entry=snapshot -p {pid}");
    let _ = ringmark(&fixture, &trigger, &[]).expect_code(0);
    let told = waiting.finish(SOON).expect_code(0).stderr_text();
    assert!(!told.contains("--waits:"), "{told}");
    if told.contains("--sched: what threads do is not recorded") {
        return log_skip(&format!("switches are refused here: {told}"));
    }
    assert!(decode(&[dump]).sessions[0].has_switches(), "{told}");
    let alone = ringmark(&fixture, &format!("snapshot -p {pid} --sched"), &[]);
    expect_error(alone, 2, "--on-trigger");
}

#[test]
fn a_snapshot_that_is_waited_for_is_taken_of_what_a_program_leaves() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("fn-snapshot-left");
    let program = endless(&fixture, "tracer=graph;filter=*");
    let dump = fixture.path("left.rmk");
    let waiting = waiter(&fixture, &program, &dump);
    wait_until_mapped(&waiting, &fixture.ring_file());
    let pid = program.id();
    wait_until(SOON, "calls", || {
        let now = ringmark(&fixture, &format!("graph -p {pid}"), &[]);
        now.stdout_text().contains("end_part").then_some(())
    });
    assert_eq!(program.kill().expect("it lives").code(), 137);
    let told = waiting.finish(SOON).expect_code(0).stderr_text();
    assert!(told.contains("has ended"), "{told}");
    assert!(calls(&fixture, "", &dump)["work"] > 0);
    let of_none = ringmark(&fixture, "snapshot --on-trigger -o", &[&dump]);
    expect_error(of_none, 2, "--pid");
}
