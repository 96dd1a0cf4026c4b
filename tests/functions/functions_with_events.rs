//! Promise: a program's own events and its functions are recorded together, whichever copies of the
//! library the process holds and whenever the function tracer comes; by raw tick each event lies
//! inside the call that emitted it.

#[path = "../session/c/mod.rs"]
#[expect(dead_code, reason = "compilers other than gcc")]
mod c;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use ringmark_decoder::{Dump, Event, Output, Value};
use ringmark_tests::binary::built_with;
use ringmark_tests::fixture::Fixture;
use ringmark_tests::functions::{SITES, library, tool};
use ringmark_tests::process::READS_INPUT;
use ringmark_tests::recording::{decode, read};
use ringmark_tests::{Running, is_long, require_tools, run, wait_until};

/// For a machine on which much else runs.
const LIMIT: Duration = Duration::from_secs(300);
/// How long a start in a running process may take; it takes milliseconds.
const START_WITHIN: Duration = Duration::from_secs(5);
const EARLY: u64 = 8;

/// What a program is to do.
#[derive(Debug, Clone, Copy)]
struct Work {
    threads: u64,
    rounds: u64,
    leaves: u64,
    pause_us: u64,
}

impl Work {
    /// Long: 120,000 events, 1.3 million calls, more than 10 s.
    fn new() -> Self {
        let (rounds, leaves, pause_us) = match is_long() {
            true => (30_000, 10, 35_000),
            false => (500, 4, 0),
        };
        Self {
            threads: 4,
            rounds,
            leaves,
            pause_us,
        }
    }

    fn arguments(&self) -> [String; 4] {
        [self.threads, self.rounds, self.leaves, self.pause_us].map(|number| number.to_string())
    }

    fn calls_of_work(&self) -> u64 {
        self.threads * self.rounds
    }
}

/// Rings that hold all, so that no reader has to come in time.
fn settings() -> &'static str {
    match is_long() {
        true => "mode=discard,keep=always,ring=32M,session=512M",
        false => "mode=discard,keep=always,ring=1M,session=16M",
    }
}

/// How a program has its copy of the library.
#[derive(Debug, Clone, Copy)]
enum Copy {
    Rust,
    Static,
    Shared,
    Plugin,
}

/// The program, with the words in front of its own arguments.
fn build(fixture: &Fixture, copy: Copy) -> (PathBuf, Vec<PathBuf>) {
    let compile = |sources, flags: &str, output| {
        c::compile(
            fixture,
            c::GCC,
            sources,
            &format!("{SITES} {flags}"),
            output,
        )
    };
    match copy {
        Copy::Rust => {
            let name = "functions-with-events";
            (
                built_with("ringmark-test-functions", name, "functions"),
                Vec::new(),
            )
        }
        Copy::Static => {
            let sources = "with_functions.c -l:libringmark.a";
            (compile(sources, "-Wl,--as-needed", "static"), Vec::new())
        }
        Copy::Shared => (compile("with_functions.c", "", "shared"), Vec::new()),
        Copy::Plugin => {
            let plugin = compile("with_functions.c", "-DSHARED -shared -fPIC", "plugin.so");
            let host = compile("host_of_functions.c", "-Wl,--as-needed", "host");
            (host, vec![plugin])
        }
    }
}

/// Ticks of a call's entry and exit.
type Span = (u64, u64);

/// What a thread has recorded, in the order of its rings.
#[derive(Debug, Default)]
struct Thread {
    work: Vec<Span>,
    leaves: u64,
    open: Vec<u64>,
    done: Vec<(u64, u64)>,
    early: u64,
}

fn number(event: &Event<'_>) -> u64 {
    match event.args().next() {
        Some((_, Value::U64(n))) => n,
        other => panic!("{other:?}"),
    }
}

/// The threads of all sessions in a dump, by thread id; nothing is lost.
fn threads(dump: &Dump) -> BTreeMap<u32, Thread> {
    let mut threads: BTreeMap<u32, Thread> = BTreeMap::new();
    for item in dump.events() {
        let event = match item {
            Output::Event(event) => event,
            Output::Lost(lost) => panic!("lost {:?}", lost.loss),
        };
        let thread = threads.entry(event.page.header.tid).or_default();
        match (event.ty.function, event.name()) {
            (None, b"work.done") => thread.done.push((number(&event), event.tick)),
            (None, b"work.early") => thread.early += 1,
            (Some(of), _) => {
                let symbol = event
                    .function()
                    .map_or(&b""[..], |function| &function.symbol);
                let is = |name: &str| symbol.escape_ascii().to_string().contains(name);
                match (is("work"), is("leaf"), of.exit) {
                    (true, _, false) => thread.open.push(event.tick),
                    (true, _, true) => {
                        let entered = thread.open.pop().expect("an entry before the exit");
                        thread.work.push((entered, event.tick));
                    }
                    (_, true, true) => thread.leaves += 1,
                    _ => {}
                }
            }
            _ => {}
        }
    }
    threads
}

/// Checks numbers and places of everything that `work` says was done.
fn check(dump: &Dump, work: &Work, what: &str) {
    assert_eq!(dump.sessions.len(), 2, "{what}");
    let headers = dump
        .sessions
        .iter()
        .map(|session| session.header.expect("a header"));
    let zeros: BTreeSet<_> = headers
        .map(|header| {
            (
                header.pid,
                header.tick_zero,
                header.mono_zero_ns,
                header.tick_mult,
            )
        })
        .collect();
    assert_eq!(zeros.len(), 1, "{what}: one zero and one rate: {zeros:?}");
    let mut all = threads(dump);
    all.retain(|_, thread| thread.early > 0);
    assert_eq!(all.len() as u64, work.threads, "{what}");
    let (mut calls, mut outside) = (0, 0);
    let (mut first, mut last) = (u64::MAX, 0);
    for (tid, thread) in &all {
        let what = format!("{what}, thread {tid}");
        assert_eq!(thread.early, EARLY, "{what}");
        assert_eq!(
            thread.work.len() as u64,
            work.rounds,
            "{what}: calls of work"
        );
        assert_eq!(
            thread.leaves,
            work.rounds * work.leaves,
            "{what}: calls of leaf"
        );
        let numbers: Vec<u64> = thread.done.iter().map(|(n, _)| *n).collect();
        assert!(numbers.iter().copied().eq(0..work.rounds), "{what}: events");
        for ((_, tick), (entered, left)) in thread.done.iter().zip(&thread.work) {
            outside += u64::from(!(entered <= tick && tick <= left));
            (first, last) = (first.min(*entered), last.max(*left));
        }
        calls += thread.work.len() as u64 + thread.leaves;
    }
    let rate = dump.sessions[0].header.map_or(0.0, |h| {
        h.tick_mult as f64 / 2_f64.powi(h.tick_shift as i32)
    });
    println!(
        "{what}: {} events, {calls} calls in {:.1} s, {outside} events outside of their calls",
        work.calls_of_work(),
        (last - first) as f64 * rate / 1e9
    );
    assert_eq!(outside, 0, "{what}: each event lies inside its call");
}

fn command(fixture: &Fixture, program: &(PathBuf, Vec<PathBuf>), work: &Work) -> Command {
    let mut command = fixture.program(&program.0.to_string_lossy(), settings());
    command.args(&program.1).args(work.arguments());
    command.env("LD_BIND_NOW", "1");
    command
}

/// Started by `ringmark run`: the dump of both sessions.
fn run_by_tool(fixture: &Fixture, program: &(PathBuf, Vec<PathBuf>), work: &Work) -> Dump {
    let dump = fixture.path("run.rmk");
    let mut command = tool(fixture);
    command.env("RINGMARK", settings());
    command.args(["run", "--kind", "graph", "--all-functions", "-o"]);
    command
        .arg(&dump)
        .arg("--")
        .arg(&program.0)
        .args(&program.1);
    command.args(work.arguments());
    let _ = run(&mut command, LIMIT).expect("ringmark").expect_code(0);
    decode(&[dump])
}

/// Started without function tracing, which is switched on once each thread has emitted events.
fn attached(
    fixture: &Fixture,
    program: &(PathBuf, Vec<PathBuf>),
    work: &Work,
    prepared: Option<&Path>,
) -> Dump {
    let mut command = command(fixture, program, work);
    command.envs(prepared.map(|library| ("LD_PRELOAD", library)));
    command.stdin(Stdio::piped());
    let mut running = Running::start(&mut command).expect("it starts");
    // Each thread has emitted its early events.
    running.wait_until_in(&[READS_INPUT]);
    let mut start = tool(fixture);
    start.args(["trace", "start", "--detach", "--all-functions", "-p"]);
    start.arg(running.id().to_string());
    let begun = Instant::now();
    let _ = run(&mut start, LIMIT).expect("ringmark").expect_code(0);
    let took = begun.elapsed();
    println!("started in {} ms", took.as_millis());
    assert!(took < START_WITHIN, "{took:?}");
    let mut input = running.child().stdin.take().expect("its input");
    input.write_all(b"\n").expect("it goes on");
    let _ = running.finish(LIMIT).expect_code(0);
    read(&fixture.ring_files())
}

fn all_ways(copy: Copy) {
    if !require_tools(&["gcc"]) {
        return;
    }
    let work = Work::new();
    let built = Fixture::new("fn-events-built");
    let program = build(&built, copy);
    let fixture = Fixture::new("fn-events-run");
    check(
        &run_by_tool(&fixture, &program, &work),
        &work,
        &format!("{copy:?}, run"),
    );
    for prepared in [Some(library()), None] {
        let fixture = Fixture::new("fn-events-attach");
        let dump = attached(&fixture, &program, &work, prepared);
        check(
            &dump,
            &work,
            &format!("{copy:?}, attached, prepared {}", prepared.is_some()),
        );
    }
}

#[test]
fn in_rust() {
    all_ways(Copy::Rust);
}

#[test]
fn in_c_linked_statically() {
    all_ways(Copy::Static);
}

#[test]
fn in_c_with_the_shared_library() {
    all_ways(Copy::Shared);
}

#[test]
fn in_a_plugin() {
    all_ways(Copy::Plugin);
}

/// A program that starts its own session with another clock than the function tracer's.
fn with_another_clock(fixture: &Fixture, command: &mut Command, own: &str) -> Running {
    command.env("RINGMARK", "1").env("OWN_SETTINGS", own);
    command.stdin(Stdio::piped());
    let running = Running::start(command).expect("it starts");
    wait_until(LIMIT, "its note", || {
        let entries = std::fs::read_dir(fixture.sessions()).into_iter().flatten();
        let mut names = entries.flatten().map(|entry| entry.file_name());
        names
            .any(|name| name.to_string_lossy().ends_with(".off"))
            .then_some(())
    });
    running
}

#[test]
fn another_clock_is_refused_where_a_person_sees_it() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let built = Fixture::new("fn-clocks-built");
    let (program, _) = build(&built, Copy::Static);
    let reasons = [
        ("clock=coarse", "clock: found coarse, expected "),
        ("clock=none", "clock: found none, expected "),
    ];
    for (own, reason) in reasons {
        let fixture = Fixture::new("fn-clocks");
        let mut command = fixture.command(&program);
        command
            .args(["1", "10", "1", "0"])
            .env("LD_PRELOAD", library());
        let running = with_another_clock(&fixture, &mut command, own);
        let listed = run(tool(&fixture).arg("list"), LIMIT).expect("ringmark");
        let listed = listed.expect_code(0).stdout_text();
        assert!(listed.contains(reason), "{listed}");
        assert_eq!(fixture.ring_files().len(), 1);
        drop(running);
        // And in the end by the command that recorded it, which then fails.
        let mut command = tool(&fixture);
        command.args(["run", "--kind", "graph", "--all-functions", "-o"]);
        command.arg(fixture.path("run.rmk")).arg("--").arg(&program);
        command.args(["1", "10", "1", "0"]).env("OWN_SETTINGS", own);
        let finished = run(&mut command, LIMIT).expect("ringmark").expect_code(1);
        let text = finished.stderr_text();
        let told = "the program's own events were NOT recorded, only its functions";
        assert!(text.contains(told) && text.contains(reason), "{text}");
    }
}
