//! A server that was started without Ringmark: traced under load, to the call.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Stdio;
use std::time::{Duration, Instant};

use ringmark_decoder::Output;
use ringmark_tests::fixture::{Fixture, SOON};
use ringmark_tests::functions::{ringmark, tool};
use ringmark_tests::recording::decode;
use ringmark_tests::{Running, is_long, require_tools, wait_until};
use rustix::process::Signal;

use super::load::{Answered, Load, longest};
use super::server::Server;

const THREADS: usize = 5;

/// Calls by function and the number of their request, and what is said to be lost.
#[derive(Debug, Default)]
struct TracedCalls {
    calls: BTreeMap<String, BTreeMap<u32, u32>>,
    lost: u64,
    others: BTreeSet<String>,
}

fn found_in(dump: &std::path::Path) -> TracedCalls {
    let dump = decode(&[dump.to_owned()]);
    let mut found = TracedCalls::default();
    for item in dump.events() {
        match item {
            Output::Lost(lost) => found.lost += lost.loss.count,
            Output::Event(event) => {
                let name = String::from_utf8_lossy(event.name()).into_owned();
                let Some(meaning) = event.ty.function else {
                    found.others.insert(name);
                    continue;
                };
                // Caller, first argument.
                let words = event.payload.as_chunks::<8>().0;
                if let (false, [_, first, ..]) = (meaning.exit, words) {
                    let number = u64::from_le_bytes(*first) as u32;
                    let calls = found.calls.entry(name).or_default();
                    *calls.entry(number).or_default() += 1;
                }
            }
        }
    }
    found
}

impl TracedCalls {
    /// How many calls of the requests between start and stop are not there. `mix_round` is called
    /// with a number of its own.
    fn missing(&self, within: &[Answered]) -> u64 {
        let none = BTreeMap::new();
        let of = |name| self.calls.get(name).unwrap_or(&none);
        let missing = ["serve_request", "serve_finish"].map(|name| {
            let here = |one: &&Answered| of(name).get(&one.number) != Some(&1);
            within.iter().filter(here).count() as u64
        });
        let mut rounds = of("mix_round").clone();
        let mut missing_rounds = 0;
        for one in within {
            for number in (0..one.number % 3).map(|i| one.number + i) {
                match rounds.get_mut(&number).filter(|count| **count > 0) {
                    Some(count) => *count -= 1,
                    None => missing_rounds += 1,
                }
            }
        }
        missing.iter().sum::<u64>() + missing_rounds
    }
}

#[test]
fn a_server_that_was_not_prepared_is_traced_under_load() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let rounds = if is_long() { 10 } else { 2 };
    for _ in 0..rounds {
        traced_under_load();
    }
}

fn traced_under_load() {
    let fixture = Fixture::new("attach-served");
    // Built before there is load.
    let mut recorder = tool(&fixture);
    let server = Server::start(&fixture, THREADS);
    let pid = server.pid();
    let load = Load::start(&server.socket, THREADS - 1, Duration::from_micros(500));
    load.goes_on(500);
    let ask = |words: &str| ringmark(&fixture, &format!("{words} -p {pid}"), &[]).expect_code(0);

    let begun = Instant::now();
    let first = ask("trace start -T early --kind graph -F main --detach");
    let attached = Instant::now();
    println!("{}", first.stderr_text().trim());
    assert!(
        first
            .stderr_text()
            .contains("function tracer loaded by thread")
    );

    let _ = ask("trace remove -T early");
    let dump = fixture.path("served.rmk");
    recorder
        .args(["record", "-p", &pid.to_string(), "-o"])
        .arg(&dump);
    let recorder = Running::start(recorder.stdin(Stdio::null())).expect("a recorder");
    wait_until(SOON, "the recorder's dump", || dump.exists().then_some(()));

    let said = ask("trace start -F serve_* -F mix_* -N serve_connection --args 1 --detach");
    let started = Instant::now();
    let expected = "3 functions matched, 3 patch sites changed, 3 enabled; 0 refused\n";
    assert_eq!(said.stdout_text(), expected);
    load.goes_on(500);
    see_it_live(&fixture, pid);
    let stopping = Instant::now();
    let said = ask("trace stop").stdout_text();
    assert!(said.ends_with(" 0 enabled; 0 refused\n"), "{said}");
    let stopped = Instant::now();
    load.goes_on(100);
    recorder.signal(Signal::INT).expect("a recorder");
    let recorded = recorder.finish(SOON);
    // 1: done, and something was lost.
    assert!(matches!(recorded.code(), 0 | 1), "{recorded:?}");
    let all = load.finish();
    server.finish();

    let times = Times {
        begun,
        attached,
        started,
        stopping,
        stopped,
    };
    expect_calls_of(&all, &found_in(&dump), &times);
}

/// When the tracer was loaded, and when functions were traced.
struct Times {
    begun: Instant,
    attached: Instant,
    started: Instant,
    stopping: Instant,
    stopped: Instant,
}

/// Requests between start and stop were recorded, each once, but for counted losses.
fn expect_calls_of(all: &[Answered], found: &TracedCalls, times: &Times) {
    let Times {
        begun,
        attached,
        started,
        stopping,
        stopped,
    } = *times;
    let within = |one: &Answered| one.asked >= started && one.answered <= stopping;
    let inside: Vec<_> = all.iter().copied().filter(within).collect();
    let missing = found.missing(&inside);
    let names: Vec<_> = found.calls.keys().cloned().collect();
    let lengths = [
        (all[0].asked, begun),
        (begun, attached),
        (started, stopping),
    ];
    let [before, attaching, tracing] = lengths.map(|(from, to)| longest(all, from, to));
    println!(
        "{} requests, 0 failed; {} between start and stop, {missing} of their calls not there, {} \
         records lost; longest request: {before:?} before, {attaching:?} while attaching, {tracing:?} \
         while traced",
        all.len(),
        inside.len(),
        found.lost
    );
    assert_eq!(names, ["mix_round", "serve_finish", "serve_request"]);
    assert!(!inside.is_empty());
    assert!(missing <= found.lost, "{missing} calls are missing");
    // Nothing was called that had not been asked for, nor outside of start and stop.
    for (number, count) in &found.calls["serve_request"] {
        let one = all.iter().find(|one| one.number == *number);
        let one = one.expect("a request that was made");
        assert_eq!(*count, 1, "calls of request {number}");
        assert!(one.answered >= attached && one.asked <= stopped, "{number}");
    }
}

/// `cat` and `graph` of the process, while it is traced.
fn see_it_live(fixture: &Fixture, pid: u32) {
    let text = ringmark(fixture, &format!("cat -p {pid} -n 2000"), &[]).stdout_text();
    for expected in ["serve_request+0x0/", " <-- serve_request+0x", " arg1=0x"] {
        assert!(text.contains(expected), "no {expected:?} in:\n{text}");
    }
    let text = ringmark(fixture, &format!("graph -p {pid}"), &[]).stdout_text();
    for expected in [
        "| serve_request(0x",
        "|   mix_round(0x",
        "|   serve_finish(0x",
    ] {
        assert!(text.contains(expected), "no {expected:?} in:\n{text}");
    }
}
