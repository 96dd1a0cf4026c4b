//! Promise: a wait says its system call, its file or peer, and who has the lock. The program under test knows what each of
//! its threads waits for, and says it.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread;

use ringmark_profile::{LOOK_EVERY, Profile, Profiler, SeenWait, WaitTimes, WaitWatch};
use ringmark_tests::fixture::Fixture;
use ringmark_tests::functions::{LIMIT, compile};
use ringmark_tests::{require_tools, ringmark, run};

/// The program, ended by the end of its input.
struct Waiting {
    child: Child,
    input: Option<ChildStdin>,
    /// Function, and what it waits for.
    truth: Vec<(String, String)>,
}

impl Waiting {
    fn start(fixture: &Fixture) -> Self {
        let program = compile(fixture, "../c/known_waits.c", "known_waits", "-O2 -pthread");
        let mut child = Command::new(program)
            .arg(fixture.path("locked"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a program");
        let said = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut truth = Vec::new();
        for line in said.lines() {
            let line = line.expect("text");
            let (function, words) = line.split_once('\t').expect("two columns");
            truth.push((function.to_owned(), words.to_owned()));
            if function == "main" {
                break;
            }
        }
        Self {
            input: child.stdin.take(),
            child,
            truth,
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.child.wait();
    }
}

/// The wait that has a function in its stack.
fn wait_in<'p>(profile: &'p Profile, function: &str) -> Option<&'p WaitTimes> {
    let is_there = |wait: &&WaitTimes| wait.stack.iter().any(|of| of.name == function);
    profile.waits.iter().find(is_there)
}

#[test]
fn each_thread_waits_for_what_it_says() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("known-waits");
    let program = Waiting::start(&fixture);
    assert!(program.truth.len() >= 19, "{:?}", program.truth);
    if !program
        .truth
        .iter()
        .any(|(function, _)| function == "touches_page")
    {
        ringmark_tests::log_skip("waits in a page fault: need userfaultfd");
    }
    let mut profiler = Profiler::attach(program.child.id(), 99).expect("it is there");
    // The runner of the tests limits the time.
    let profile = loop {
        assert!(profiler.look(), "it lives");
        let profile = profiler.profile();
        let is_there = |(function, _): &(String, String)| wait_in(&profile, function).is_some();
        if program.truth.iter().all(is_there) {
            break profile;
        }
        thread::sleep(LOOK_EVERY);
    };
    for (function, words) in &program.truth {
        let wait = wait_in(&profile, function).expect("it was there");
        assert_eq!(wait.wait.words(), *words, "{function}");
        assert!(wait.is_whole, "{function}: {wait:?}");
        assert_eq!(wait.times, 1, "{function} waits once");
    }
    // Nothing else waits, and all of the time is known.
    assert_eq!(
        profile.waits.len(),
        program.truth.len(),
        "{:#?}",
        profile.waits
    );
    let waited: u64 = profile.waits.iter().map(|wait| wait.ns).sum();
    assert_eq!(waited + profile.unseen_ns, profile.times().waiting_ns);
}

/// Lines of a wait that was seen: what for, and the functions.
fn lines(seen: &SeenWait) -> (&str, Vec<&str>) {
    let mut lines = seen.text.lines();
    (lines.next().unwrap_or_default(), lines.collect())
}

#[test]
fn each_wait_is_given_out_with_what_it_is_for() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("seen-waits");
    let program = Waiting::start(&fixture);
    let truth = program.truth.clone();
    let mut watch = WaitWatch::attach(program.child.id()).expect("it is there");
    let mut seen: Vec<SeenWait> = Vec::new();
    let is_seen = |seen: &[SeenWait], function: &str| {
        seen.iter().any(|wait| lines(wait).1.contains(&function))
    };
    // The runner of the tests limits the time.
    while !truth.iter().all(|(function, _)| is_seen(&seen, function)) {
        seen.extend(watch.take());
        thread::sleep(LOOK_EVERY);
    }
    drop(program);
    seen.extend(watch.take_rest());
    for wait in &seen {
        let (what, functions) = lines(wait);
        let known = truth
            .iter()
            .find(|(function, _)| functions.contains(&function.as_str()));
        assert_eq!(
            known.map(|(_, words)| words.as_str()),
            Some(what),
            "{wait:?}"
        );
        assert!(wait.from_mono_ns <= wait.to_mono_ns, "{wait:?}");
    }
    seen.sort_by_key(|wait| (wait.tid, wait.from_mono_ns));
    let follows = |pair: &[SeenWait]| {
        pair[0].tid != pair[1].tid || pair[0].to_mono_ns <= pair[1].from_mono_ns
    };
    assert!(seen.windows(2).all(follows), "one wait at a time");
}

/// Rows of waits, as the command shows them with an option.
fn rows(program: &Waiting, option: &[&str]) -> usize {
    let mut command = ringmark();
    let pid = program.child.id().to_string();
    command.args(["profile", "--for", "300ms", "-p", &pid]);
    let said = run(command.args(option), LIMIT).expect("ringmark");
    let said = said.expect_code(0).stdout_text();
    let lines = said
        .lines()
        .skip_while(|line| !line.trim_start().starts_with("WAITED"));
    let rows = lines.skip(1).take_while(|line| !line.is_empty());
    rows.filter(|line| !line.contains("more row")).count()
}

#[test]
fn as_many_rows_are_shown_as_are_asked_for() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("known-waits-rows");
    let program = Waiting::start(&fixture);
    assert_eq!(rows(&program, &[]), 15);
    assert_eq!(rows(&program, &["-n", "3"]), 3);
    assert!(rows(&program, &["-n", "40"]) >= 19);
}
