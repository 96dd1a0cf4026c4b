//! Promise: `top` shows what living programs do with exact counts, does what its keys say, and gives the
//! terminal back however it ends; it neither stops nor slows the programs.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use ringmark_tests::fixture::{Fixture, SOON};
use ringmark_tests::functions::{self, LIMIT, SITES, compile};
use ringmark_tests::json_schema::checked;
use ringmark_tests::tmux::Tmux;
use ringmark_tests::{Running, binary, require_tools, run, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

const SIZE: (u16, u16) = (80, 24);

fn busy(fixture: &Fixture, ringmark: &str, arguments: &str) -> (Running, PathBuf) {
    let ready = fixture.path("ready");
    let mut command = fixture.program(ringmark_tests::program!("busy"), ringmark);
    command.args(arguments.split_whitespace()).arg(&ready);
    let program = Running::start(&mut command).expect("it starts");
    let _ = fixture.ring_file();
    (program, ready)
}

/// A shell in tmux that knows `ringmark` and the sessions of this fixture.
fn shell(fixture: &Fixture, label: &str) -> Tmux {
    let directory = fixture.path("here");
    fs::create_dir_all(&directory).expect("a directory");
    let tmux = Tmux::start(label, &directory, SIZE);
    let path = binary::path();
    let folder = path.parent().expect("a folder").display().to_string();
    let sessions = fixture.sessions().display().to_string();
    tmux.enter(&format!(
        "PATH={folder}:$PATH RINGMARK_DIR={sessions}; export RINGMARK_DIR"
    ));
    tmux.enter("stty -a > before; clear");
    tmux
}

fn file(fixture: &Fixture, name: &str) -> String {
    let path = fixture.path("here").join(name);
    wait_until(SOON, name, || {
        fs::read_to_string(&path)
            .ok()
            .filter(|text| !text.is_empty())
    })
}

fn signal(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(pid as i32).expect("a pid");
    kill_process(pid, signal).expect("it lives");
}

/// The pid of `top`, once its screen is there.
fn top(tmux: &Tmux, line: &str) {
    tmux.enter(line);
    tmux.wait_for("the screen", |screen| {
        screen.contains("q end") && screen.contains("burst")
    });
}

#[test]
fn rows_and_keys() {
    if !require_tools(&["tmux", "stty"]) {
        return;
    }
    let fixture = Fixture::new("top-keys");
    let (program, _) = busy(&fixture, "mode=overwrite", "3 5 2000 1000000");
    let pid = program.id();
    let tmux = shell(&fixture, "keys");
    top(&tmux, &format!("ringmark top -p {pid} --interval 200ms"));
    let screen = tmux.wait_for("all tables", |screen| {
        ["request", "query", "accepted", "worker-2", "open spans in"]
            .iter()
            .all(|word| screen.contains(word))
    });
    assert!(screen.starts_with(&format!("busy[{pid}] on ")), "{screen}");
    assert!(screen.contains("overwrite, 3 rings"), "{screen}");
    assert!(screen.contains("nothing lost"), "{screen}");
    assert!(screen.contains("by self"), "{screen}");
    tmux.press(&["s"]);
    tmux.wait_for("another order", |screen| screen.contains("by total"));
    tmux.press(&["/", "q", "u", "e", "r", "y", "Enter"]);
    tmux.wait_for("the filter", |screen| {
        screen.contains("only rows with \"query\"") && !screen.contains("accepted")
    });
    tmux.press(&[
        "/", "BSpace", "BSpace", "BSpace", "BSpace", "BSpace", "Enter",
    ]);
    tmux.wait_for("no filter", |screen| screen.contains("accepted"));
    tmux.press(&["?"]);
    tmux.wait_for("the help", |screen| screen.contains("any key goes back"));
    tmux.press(&["Space"]);
    tmux.press(&["Tab"]);
    tmux.wait_for("a table alone", |screen| !screen.contains("open spans"));
    tmux.press(&["Escape"]);
    tmux.wait_for("all tables again", |screen| screen.contains("open spans"));
    tmux.resize((120, 40));
    tmux.wait_for("a wide screen", |screen| {
        screen.lines().any(|line| line.chars().count() > 80) && screen.lines().count() == 40
    });
    tmux.resize(SIZE);
    tmux.press(&["w"]);
    let said = tmux.wait_for("a snapshot", |screen| screen.contains(", 0 lost"));
    let name = said
        .split_whitespace()
        .find(|word| word.starts_with("top-"));
    let name = name.expect("a file").trim_end_matches(':');
    let mut verify = Command::new(binary::path());
    verify.arg("verify").arg(fixture.path("here").join(name));
    let _ = run(&mut verify, LIMIT).expect("ringmark").expect_code(0);
    tmux.press(&["t"]);
    tmux.wait_for("an answer", |screen| {
        screen.contains("no function tracer is loaded")
    });
    tmux.press(&["q"]);
    tmux.wait_for("the shell", |screen| screen.trim_end().ends_with('$'));
}

#[test]
fn the_terminal_is_given_back() {
    if !require_tools(&["tmux", "stty"]) {
        return;
    }
    let fixture = Fixture::new("top-ends");
    let (program, _) = busy(&fixture, "mode=overwrite", "3 5 2000 1000000");
    let pid = program.id();
    let tmux = shell(&fixture, "ends");
    let before = file(&fixture, "before");
    assert!(
        before.contains("icanon") && before.contains(" echo "),
        "{before}"
    );
    // A line that is still there when the screen has gone.
    tmux.enter("echo what was there");
    let line = format!("sh -c 'echo $$ > pid; exec ringmark top -p {pid}'");
    let ended = |name: &str, status: &str| {
        tmux.wait_for("the shell", |screen| {
            screen.contains("what was there") && screen.trim_end().ends_with('$')
        });
        tmux.enter(&format!("echo status=$?; stty -a > {name}"));
        tmux.wait_for("the status", |screen| screen.contains(status));
        assert_eq!(file(&fixture, name), before, "{name}");
    };
    top(&tmux, &line);
    signal(
        file(&fixture, "pid").trim().parse().expect("a pid"),
        Signal::TERM,
    );
    ended("terminated", "status=0");
    top(&tmux, &format!("ringmark top -p {pid}"));
    tmux.press(&["C-z"]);
    ended("stopped", "status=");
    tmux.enter("fg");
    tmux.wait_for("the screen", |screen| screen.contains("q end"));
    tmux.press(&["C-c"]);
    ended("interrupted", "status=0");
    // The program dies: its end is told, and what it was in.
    top(
        &tmux,
        &format!("clear; echo what was there; ringmark top -p {pid}"),
    );
    signal(pid, Signal::KILL);
    let how = format!("busy[{pid}]: ");
    tmux.wait_for("its end", |screen| {
        screen.contains("burst number=") && screen.contains(&how)
    });
    tmux.enter("clear; echo what was there; false; true");
    ended("dead", "status=0");
    // It is dead by now, and that is told at once.
    tmux.enter(&format!("clear; ringmark top -p {pid}"));
    tmux.wait_for("its end", |screen| screen.contains("burst number="));
}

#[test]
fn tracers_are_switched_off_and_on() {
    if !require_tools(&["tmux", "gcc", "stty"]) {
        return;
    }
    let fixture = Fixture::new("top-tracers");
    let program = compile(&fixture, "nested.c", "nested", SITES);
    let program = functions::start(&fixture, &program);
    let pid = program.id();
    let trace = |words: &str| {
        let done = functions::ringmark(&fixture, &format!("trace {words} -p {pid}"), &[]);
        done.expect_code(0).stdout_text()
    };
    let _ = trace("start --filter m* --filter leaf --detach");
    let tmux = shell(&fixture, "tracers");
    tmux.enter(&format!("ringmark top -p {pid} --interval 200ms"));
    tmux.wait_for("functions", |screen| {
        screen.contains("  leaf") && screen.contains("  middle")
    });
    tmux.press(&["t"]);
    tmux.wait_for("an answer", |screen| screen.contains("off: "));
    assert!(trace("status").contains("0 of 5 patch sites enabled"));
    tmux.press(&["t"]);
    tmux.wait_for("an answer", |screen| screen.contains("on: "));
    assert!(trace("status").contains("3 of 5 patch sites enabled"));
}

fn once(fixture: &Fixture, words: &str) -> Vec<Value> {
    let mut command = fixture.command(binary::path());
    command.args(["top", "--once", "--interval", "300ms", "--json"]);
    command.args(words.split_whitespace());
    let done = run(&mut command, LIMIT).expect("ringmark").expect_code(0);
    checked(&done.stdout_text())
}

#[test]
fn counts_are_those_of_the_program() {
    const THREADS: u64 = 4;
    const REQUESTS: u64 = 7 * 3000;
    let fixture = Fixture::new("top-exact");
    // Small rings in discard mode without a reader: most events are lost.
    let (program, ready) = busy(&fixture, "mode=discard,ring=16K,page=4K", "4 7 0 3000");
    wait_until(SOON, "its events", || ready.exists().then_some(()));
    let objects = once(&fixture, &format!("-p {}", program.id()));
    let [session] = objects.as_slice() else {
        panic!("{objects:?}")
    };
    // Each request two spans and an event, each burst a span.
    let emitted = THREADS * (3 * REQUESTS + 3000);
    let number = |object: &Value, key: &str| object[key].as_u64().expect("a number");
    assert!(number(session, "lost") > 0, "{session}");
    assert_eq!(number(session, "events") + number(session, "lost"), emitted);
    let workers: Vec<_> = session["threads"]
        .as_array()
        .expect("threads")
        .iter()
        .filter(|ring| {
            ring["thread"]
                .as_str()
                .is_some_and(|name| name.starts_with("worker"))
        })
        .collect();
    assert_eq!(workers.len() as u64, THREADS);
    for ring in workers {
        let all = number(ring, "events") + number(ring, "lost");
        assert_eq!(all, emitted / THREADS, "{ring}");
    }
    let open = session["open_spans"].as_array().expect("open spans");
    let held = open
        .iter()
        .filter(|thread| thread["spans"][0]["name"] == "held");
    assert_eq!(held.count() as u64, THREADS, "{session}");
}

#[test]
fn everything_that_little_is_written_of_is_met() {
    let fixture = Fixture::new("top-all");
    let (program, _) = busy(&fixture, "mode=overwrite", "2 5 20000 1000000");
    let objects = once(&fixture, "");
    let session = &objects[0];
    assert_eq!(session["pid"], program.id());
    assert_eq!(session["sampled_percent"], 100.0, "{session}");
    let names = session["names"].as_array().expect("names");
    let per_s = |name: &str| {
        let found = names.iter().find(|row| row["name"] == name);
        found.expect(name)["per_s"].as_f64().expect("a number")
    };
    let (requests, events) = (per_s("request"), session["events_per_s"].as_f64());
    assert!(requests > 0.0 && (per_s("query") - requests).abs() < requests / 2.0);
    let sum: f64 = ["burst", "request", "query", "accepted"]
        .map(per_s)
        .iter()
        .sum();
    let events = events.expect("a number");
    // Both are of the same events, over times that differ by a moment.
    assert!(
        (sum - events).abs() < 0.1 * events + 1.0,
        "{sum} of {events}"
    );
}

/// CPU time of a process in ns, as the scheduler counts it.
fn cpu_ns(pid: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/schedstat")).expect("it lives");
    let first = text.split_whitespace().next();
    first.and_then(|ns| ns.parse().ok()).expect("a number")
}

/// Part of a core that `top` takes for 5 s, in percent.
fn cost(fixture: &Fixture, label: &str, program: u32, shown: &str) -> f64 {
    let tmux = shell(fixture, label);
    tmux.enter(&format!(
        "sh -c 'echo $$ > pid; exec ringmark top -p {program}'"
    ));
    tmux.wait_for("the screen", |screen| screen.contains(shown));
    let pid = file(fixture, "pid").trim().parse().expect("a pid");
    let before = cpu_ns(pid);
    let begin = Instant::now();
    thread::sleep(Duration::from_secs(5));
    let took = cpu_ns(pid) - before;
    println!("{}", tmux.screen());
    100.0 * took as f64 / begin.elapsed().as_nanos() as f64
}

#[test]
fn looking_costs_little() {
    if !require_tools(&["tmux", "stty"]) {
        return;
    }
    let fixture = Fixture::new("top-cost");
    // A million events a second, where there is a processor for it.
    let (program, _) = busy(&fixture, "mode=overwrite", "64 52 10000 1000000");
    let percent = cost(&fixture, "cost", program.id(), "64 rings");
    println!("top beside 64 busy rings: {percent:.2} % of a core (bar: 2 %)");
    // With caches that belong to others a look takes several times as long.
    assert!(percent < 10.0, "{percent:.2} % of a core");
    drop(program);
    let fixture = Fixture::new("top-cost-idle");
    let (program, ready) = busy(&fixture, "mode=overwrite", "64 52 0 10");
    wait_until(SOON, "its events", || ready.exists().then_some(()));
    let percent = cost(&fixture, "idle", program.id(), "held");
    println!("top beside 64 idle rings: {percent:.2} % of a core (bar: 1 %)");
    assert!(percent < 5.0, "{percent:.2} % of a core");
}

#[test]
fn text_for_scripts_is_plain() {
    let fixture = Fixture::new("top-once");
    let (program, _) = busy(&fixture, "mode=overwrite", "2 5 2000 1000000");
    let top = |words: &str| {
        let mut command = fixture.command(binary::path());
        command.arg("top").args(words.split_whitespace());
        run(&mut command, LIMIT).expect("ringmark")
    };
    let pid = program.id();
    let text = top(&format!("-p {pid} --once --interval 200ms"));
    let text = text.expect_code(0).stdout_text();
    assert!(!text.contains('\x1b') && !text.contains('█'), "{text}");
    for wanted in [
        "1 session\n",
        "by self",
        "open spans in",
        "2 rings",
        "  request\n",
    ] {
        assert!(text.contains(wanted), "{wanted:?} in {text}");
    }
    let refused = top(&format!("-p {pid}")).expect_code(2).stderr_text();
    assert!(refused.contains("expected one, or --once"), "{refused}");
    let all = top("--once --interval 200ms").expect_code(0).stdout_text();
    assert!(all.contains("1 session\n"), "{all}");
    let _ = top("-p 4194304 --once").expect_code(4);
}
