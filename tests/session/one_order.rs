//! Promise: a filter by a span's fields records one request of 10,000 to an axum server whole, on every thread, and
//! nothing else; one command shows it.

use std::path::Path;

use crate::slow::run_it;

use ringmark_tests::binary::{self, built};
use ringmark_tests::fixture::Fixture;
use serde_json::Value;

const REQUESTS: usize = 10_000;
/// The order that is recorded: part of it runs on a thread for blocking work.
const ORDER: usize = 4242;

/// Records the server with this filter.
fn record(fixture: &Fixture, filter: &str, trace: &Path) {
    let fate = |number| match number {
        ORDER => 'b',
        number if number % 100 == 7 => 'c',
        number if number % 100 == 42 => 'b',
        _ => 'q',
    };
    let fates: String = (0..REQUESTS).map(fate).collect();
    let mut record = fixture.command(binary::path());
    record.args(["record", "-o"]).arg(trace).arg("--");
    record.arg(built("axum-server")).arg(&fates);
    record.env("RINGMARK", "1").env("RINGMARK_FILTER", filter);
    let done = run_it(&mut record).expect_code(0);
    let answered = fates
        .chars()
        .filter(|fate| *fate != 'c')
        .count()
        .to_string();
    assert_eq!(done.stdout_text().lines().next(), Some(&answered[..]));
}

fn shown(fixture: &Fixture, trace: &Path, words: &[&str]) -> String {
    let mut cat = fixture.command(binary::path());
    run_it(cat.arg("cat").arg(trace).args(words))
        .expect_code(0)
        .stdout_text()
}

/// The spans of a trace, in which nothing else is: `query`, `request` and `resize`.
fn spans(fixture: &Fixture, trace: &Path) -> [Value; 3] {
    let text = shown(fixture, trace, &["--json"]);
    let lines = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let mut spans: Vec<_> = lines.collect();
    spans.sort_by_key(|span| span["name"].to_string());
    let names: Vec<_> = spans
        .iter()
        .map(|span| span["name"].as_str().unwrap_or(""))
        .collect();
    assert_eq!(names, ["query", "request", "resize"], "{text}");
    spans.try_into().expect("three spans")
}

#[test]
fn one_order_is_recorded_whole_and_nothing_else() {
    let fixture = Fixture::new("one-order");
    let trace = fixture.path("one.rmk");
    record(
        &fixture,
        &format!("request[path=/orders/{ORDER}]=info"),
        &trace,
    );
    let [query, request, resize] = spans(&fixture, &trace);
    assert_eq!(request["args"]["path"], format!("/orders/{ORDER}"));
    assert_eq!(request["args"]["number"], ORDER as u64);
    assert_eq!(request["args"]["status"], 200);
    assert_eq!(resize["args"]["number"], ORDER as u64);
    for inner in [&query, &resize] {
        assert_eq!(inner["parent"], request["span"], "{inner}");
    }
    assert_ne!(resize["tid"], request["tid"], "it ran on another thread");
    let span = request["span"].as_str().expect("a span");
    let tree = shown(&fixture, &trace, &["--tree", "--span", span]);
    let indented = |name: &str| {
        tree.lines()
            .find(|line| line.contains(name))
            .map(|line| line.find(name))
    };
    assert_eq!(tree.lines().count(), 3, "{tree}");
    assert!(
        indented(": request").is_some() && indented(": query").is_some(),
        "{tree}"
    );
    assert!(indented(": resize").is_some(), "{tree}");
}

/// The handler gives the span its number when it begins.
#[test]
fn an_order_is_recorded_from_the_value_on_that_names_it() {
    let fixture = Fixture::new("one-order-late");
    let trace = fixture.path("one.rmk");
    record(&fixture, &format!("request[number={ORDER}]=info"), &trace);
    let [query, request, resize] = spans(&fixture, &trace);
    assert_eq!(request["args"]["number"], ORDER as u64);
    assert_eq!([&query["parent"], &resize["parent"]], [&request["span"]; 2]);
}
