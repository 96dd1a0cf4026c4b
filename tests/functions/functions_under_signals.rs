//! Promise: signals may interrupt traced calls at any instruction, and their handlers may unwind, switch
//! stacks, cancel the thread, need much stack or look through it: the program does what it does untraced,
//! whether it is traced from its start or while it runs.

use std::process::{Command, Stdio};

use crate::calls;

use calls::Program;
use ringmark_tests::compiler::can_build;
use ringmark_tests::functions::ringmark;
use ringmark_tests::{Finished, Running, is_long, require_tools};

const ROOM: &str = "mode=overwrite,page=4K,ring=64K,session=64M";
const FLAGS: &str = "-O2 -fexceptions -fpatchable-function-entry=5";
const COLLECTED: &str = "-DCOLLECTED -Wl,--no-as-needed -lgc";

/// Parts of the program, and how often something is done in them every day.
const PARTS: [(&str, u32); 8] = [
    ("profiler", 200),
    ("watchdog", 200),
    ("cancel", 100),
    ("nested-small", 200),
    ("nested-large", 200),
    ("large-handler", 200),
    ("green", 20),
    ("small", 10),
];

/// Its functions with patch sites. Others may be reached by a jump in padding, which lies in no unwind entry: where a
/// signal comes there, the stack ends.
const TRACED: [&str; 6] = ["leaf", "deep", "clean", "spins", "waits", "cancelled"];
/// Those of the part with a collector.
const COLLECTING: [&str; 4] = ["node", "tree", "sum_of", "grows"];

fn start(mut command: Command, (part, times): (&str, u32)) -> Running {
    let times = if is_long() { 10 * times } else { times };
    command.args([part, &times.to_string()]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    Running::start(&mut command).expect("it starts")
}

/// It works when its standard input ends.
fn finish(mut running: Running) -> Finished {
    drop(running.child().stdin.take());
    running.finish(calls::LIMIT)
}

fn compare(traced: &Finished, plain: &Finished, told: &str) {
    let told = format!("{told}: {}", traced.stderr_text());
    assert_eq!(traced.code(), 0, "{told}");
    assert_eq!(traced.stdout_text(), plain.stdout_text(), "{told}");
}

/// Runs a part in each kind of tracing, and by both ways.
fn check(program: &Program, part: (&str, u32)) {
    let plain = finish(start(program.fixture().command(program.path()), part));
    assert_eq!(plain.code(), 0, "untraced: {}", plain.stderr_text());
    for kind in ["graph", "function", "profile"] {
        let wishes = format!("tracer={kind};filter=*@{}", program.name());
        let traced = finish(start(program.command(ROOM, &wishes), part));
        compare(&traced, &plain, &format!("{kind} {part:?}"));
        let attached = start(program.fixture().command(program.path()), part);
        attached.wait_until_in(&["7 "]); // It polls its standard input.
        let collecting = COLLECTING.iter().filter(|_| part.0 == "collector");
        let names = TRACED.iter().chain(collecting);
        let names: Vec<_> = names
            .map(|name| format!("-F {name}@{}", program.name()))
            .collect();
        let words = format!(
            "trace start -p {} -T own --kind {kind} {} --detach",
            attached.id(),
            names.join(" ")
        );
        let answer = ringmark(program.fixture(), &words, &[]).expect_code(0);
        println!("{}", answer.stdout_text());
        compare(
            &finish(attached),
            &plain,
            &format!("{kind} {part:?}, attached"),
        );
    }
}

fn parts(names: &[&str]) {
    if !require_tools(&["gcc"]) {
        return;
    }
    let program = Program::new("gcc", "under_signals.c", FLAGS);
    for part in PARTS.iter().filter(|(name, _)| names.contains(name)) {
        check(&program, *part);
    }
}

#[test]
fn handlers_that_unwind_find_who_works() {
    parts(&["profiler", "watchdog"]);
}

#[test]
fn threads_are_cancelled_anywhere() {
    parts(&["cancel"]);
}

#[test]
fn handlers_have_the_stack_that_they_have_untraced() {
    parts(&["nested-small", "nested-large", "large-handler"]);
}

#[test]
fn coroutines_have_their_stacks_for_themselves() {
    parts(&["green", "small"]);
}

#[test]
fn a_collector_finds_its_roots() {
    if !require_tools(&["gcc"]) || !can_build("gcc", COLLECTED) {
        return;
    }
    let flags = format!("{FLAGS} {COLLECTED}");
    let program = Program::new("gcc", "under_signals.c", &flags);
    check(&program, ("collector", 20));
}
