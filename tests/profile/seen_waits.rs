//! Promise: what a slow call waited for stands beside it: which lock and who has it, in which functions, for how long; without
//! events of the kernel, too.

use std::path::{Path, PathBuf};

use ringmark_tests::fixture::Fixture;
use ringmark_tests::functions::{LIMIT, SITES, compile, tool};
use ringmark_tests::recording::decode;
use ringmark_tests::{binary, log_skip, require_tools, run};
use serde_json::Value;

/// Number of `perf_event_open`.
const PERF: &str = "298";

/// The slowest call of `sell`, as the command says it.
fn slowest(fixture: &Fixture, trace: &Path) -> Value {
    let mut report = tool(fixture);
    report.arg("report").arg(trace);
    report.args(["--name", "sell", "--slowest", "1", "--json"]);
    let said = run(&mut report, LIMIT).expect("ringmark");
    let said = said.expect_code(0).stdout_text();
    serde_json::from_str(said.trim()).expect("one object")
}

/// How long it waited for the mutex in all, in ns, and how often: the clerk may take it again before the seller runs.
fn waited_for_the_clerk(slow: &Value) -> (u64, u64) {
    let waits = slow["waited_for"].as_array().expect("waits");
    let [wait] = &waits[..] else { panic!("{slow}") };
    let what = wait["for"].as_str().expect("a text");
    assert!(what.starts_with("mutex of clerk["), "{slow}");
    let functions = wait["functions"].as_array().expect("functions");
    assert_eq!(functions.last(), Some(&"sell".into()), "{slow}");
    let [ns, times] = ["ns", "times"].map(|key| wait[key].as_u64().expect("a number"));
    (ns, times)
}

/// The shop of the guide, with patch sites.
fn shop(fixture: &Fixture) -> PathBuf {
    let flags = format!("{SITES} -pthread");
    compile(fixture, "../c/shop.c", "shop", &flags)
}

#[test]
fn a_slow_call_says_what_it_waited_for() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("seen-waits-slow");
    let shop = shop(&fixture);
    let trace = fixture.path("shop.rmk");
    let mut record = tool(&fixture);
    record.args(["run", "--sched", "--waits", "--kind", "graph", "-o"]);
    let done = run(record.arg(&trace).arg("--").arg(shop), LIMIT).expect("ringmark");
    let said = done.expect_code(0).stderr_text();
    assert!(!said.contains("--waits:"), "{said}");
    let slow = slowest(&fixture, &trace);
    let (waited_ns, times) = waited_for_the_clerk(&slow);
    assert!(waited_ns > 0, "{slow}");
    if !decode(std::slice::from_ref(&trace)).sessions[0].has_switches() {
        return log_skip(&format!("switches are refused here: {said}"));
    }
    // Its switches say how long it was; one that was over at once may not have been seen.
    let waiting_ns = slow["waiting_ns"].as_u64().expect("a number");
    assert!(waited_ns <= waiting_ns, "{slow}");
    assert!(slow["waits"] != times || waited_ns == waiting_ns, "{slow}");
    compare_outputs(&fixture, &trace);
}

/// What the command prints of a trace.
fn printed(fixture: &Fixture, trace: &Path, words: &str) -> String {
    let mut command = tool(fixture);
    command.args(words.split(' ')).arg(trace);
    let done = run(&mut command, LIMIT).expect("ringmark");
    done.expect_code(0).stdout_text()
}

/// All outputs say the same of how long calls of `sell` waited.
fn compare_outputs(fixture: &Fixture, trace: &Path) {
    let calls = printed(fixture, trace, "graph --json");
    let calls = calls
        .lines()
        .map(|line| serde_json::from_str(line).expect("an object"));
    let of_sell = calls.filter(|call: &Value| call["name"] == "sell");
    let waited: u64 = of_sell.filter_map(|call| call["waiting_ns"].as_u64()).sum();
    assert!(waited > 0);
    let folded = printed(
        fixture,
        trace,
        "export --format folded --state waiting -o -",
    );
    let stack = folded
        .lines()
        .find_map(|line| line.split_once(";seller;sell "));
    assert_eq!(
        stack.map(|(_, ns)| ns),
        Some(waited.to_string().as_str()),
        "{folded}"
    );
    let rows = printed(fixture, trace, "export --format csv -o -");
    let mut rows = rows.lines().map(|row| row.split(',').collect::<Vec<_>>());
    let heads = rows.next().expect("a head");
    let place = |name: &str| {
        heads
            .iter()
            .position(|head| *head == name)
            .expect("a column")
    };
    let (name, waiting) = (place("name"), place("waiting_ns"));
    let of_sell = rows.filter(|row| row[name] == "sell");
    let in_rows: u64 = of_sell
        .filter_map(|row| row[waiting].parse::<u64>().ok())
        .sum();
    assert_eq!(in_rows, waited, "csv");
    let graph = printed(fixture, trace, "graph --name sell");
    assert!(graph.contains("/* waits */"), "{graph}");
}

#[test]
fn waits_are_seen_where_the_kernel_gives_no_events() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("seen-waits-refused");
    let filtered = compile(&fixture, "filtered.c", "filtered", "-O1");
    let shop = shop(&fixture);
    let trace = fixture.path("shop.rmk");
    let mut record = fixture.command(&filtered);
    record.args(["fails", PERF, "13"]).arg(binary::path());
    record.args(["run", "--waits", "--kind", "graph", "-o"]);
    let done = run(record.arg(&trace).arg("--").arg(shop), LIMIT).expect("ringmark");
    let said = done.expect_code(0).stderr_text();
    assert!(!said.contains("--waits:"), "{said}");
    let slow = slowest(&fixture, &trace);
    assert_eq!(slow["waiting_ns"], Value::Null, "{slow}");
    let ((waited_ns, _), took_ns) = (waited_for_the_clerk(&slow), slow["dur_ns"].as_u64());
    assert!(Some(waited_ns) <= took_ns, "{slow}");
}
