//! Promise: `cat --span ID --tree` shows one request whole, its spans, events and functions, and nothing of the others;
//! `report --slowest` prints the command. `report --where` with `--paths` or `--callees` shows where the time of chosen
//! ones went, beside all.

use std::process::Command;

use ringmark_tests::fixture::Fixture;
use ringmark_tests::functions::{LIMIT, SITES, tool};
use ringmark_tests::{require_tools, run};
use serde_json::Value;

use crate::c;

const REQUESTS: u64 = 2000;
/// The request that takes longest.
const SLOW: u64 = 41;

/// The trace of requests on four threads.
fn record(fixture: &Fixture) {
    let program = c::compile(
        fixture,
        c::GCC,
        "served.c",
        &format!("-O2 {SITES}"),
        "served",
    );
    let mut record = tool(fixture);
    record.env("RINGMARK", "mode=discard,keep=always,ring=1M,session=16M");
    record.args([
        "run", "--kind", "graph", "-F", "handle", "-F", "query", "-F", "leaf", "-o",
    ]);
    record.arg(fixture.path("a.rmk")).arg("--").arg(program);
    let _ = run(record.args(["4", &REQUESTS.to_string()]), LIMIT)
        .expect("ringmark")
        .expect_code(0);
}

fn shown(fixture: &Fixture, words: &str) -> String {
    let mut command = tool(fixture);
    command.current_dir(fixture.path("."));
    let done = run(command.args(words.split_whitespace()), LIMIT).expect("ringmark");
    done.expect_code(0).stdout_text()
}

/// Of each line how far it is indented, its name, and what its fields say.
fn outline(tree: &str) -> Vec<(usize, String)> {
    let line = |line: &str| {
        let (_, rest) = line.split_once(' ').expect("a time");
        let (_, rest) = rest.split_once(' ').expect("a thread");
        let indent = rest.len() - rest.trim_start().len();
        let (_, rest) = rest.split_once(": ").expect("a target");
        let name = rest.split(' ').next().expect("a name").to_owned();
        let fields = rest.split_once("} ").map_or("", |(_, fields)| fields);
        let fields = fields.split(" (").next().unwrap_or(fields);
        (indent / 2, format!("{name} {fields}").trim_end().to_owned())
    };
    tree.lines().map(line).collect()
}

/// What the program does in a request.
fn expected(id: u64) -> Vec<(usize, String)> {
    let mut lines = vec![
        (0, format!("request id={id}")),
        (1, "handle".to_owned()),
        (2, format!("request.accepted id={id}")),
    ];
    for number in 0..id % 3 {
        lines.push((2, "query".to_owned()));
        lines.push((3, format!("db.query number={number}")));
        lines.push((4, "leaf".to_owned()));
    }
    lines
}

/// The ids of the spans of the requests, by request.
fn spans(fixture: &Fixture) -> Vec<String> {
    let text = shown(fixture, "cat a.rmk --json --name request");
    let lines = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let mut all: Vec<_> = lines
        .map(|span| {
            let id = span["args"]["id"].as_u64().expect("an id");
            (id, span["span"].as_str().expect("a span").to_owned())
        })
        .collect();
    all.sort();
    all.into_iter().map(|(_, span)| span).collect()
}

#[test]
fn one_span_has_all_that_happened_in_it() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("one-request");
    record(&fixture);
    let spans = spans(&fixture);
    assert_eq!(spans.len() as u64, REQUESTS);
    for id in (0..REQUESTS).step_by(97).chain([SLOW]) {
        let span = &spans[id as usize];
        let tree = shown(&fixture, &format!("cat a.rmk --tree --span {span}"));
        assert_eq!(outline(&tree), expected(id), "{tree}");
        // The same in the order of the records, where a call has two.
        let flat = shown(&fixture, &format!("cat a.rmk --span {span}"));
        let calls = 1 + 2 * (id % 3);
        let lines = 2 + id % 3 + 2 * calls;
        assert_eq!(flat.lines().count() as u64, lines, "{flat}");
        // What is chosen by a value has all that is in it, too.
        let chosen = shown(
            &fixture,
            &format!("cat a.rmk --tree --name request --where id={id}"),
        );
        assert_eq!(outline(&chosen), expected(id), "{chosen}");
    }
}

#[test]
fn the_slowest_names_the_command() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("one-slowest");
    record(&fixture);
    let text = shown(&fixture, "report a.rmk --name request --slowest 1");
    let line = text
        .lines()
        .find_map(|line| line.trim().strip_prefix("ringmark "));
    let words = line.unwrap_or_else(|| panic!("no command in {text}"));
    let tree = shown(&fixture, words);
    // On a loaded machine that may be another one than the one that sleeps.
    let (_, first) = outline(&tree).swap_remove(0);
    let id = first.strip_prefix("request id=").expect("a request");
    let id: u64 = id.parse().expect("a number");
    assert_eq!(outline(&tree), expected(id), "{words}\n{tree}");
}

#[test]
fn a_span_that_is_not_there_is_said() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("one-none");
    record(&fixture);
    let mut command: Command = tool(&fixture);
    command
        .args(["cat", "--span", "12345"])
        .arg(fixture.path("a.rmk"));
    let done = run(&mut command, LIMIT).expect("ringmark").expect_code(0);
    assert_eq!(done.stdout_text(), "");
    assert!(
        done.stderr_text()
            .contains("--span 12345: no span with this id"),
        "{}",
        done.stderr_text()
    );
}

/// The rows of `report --where` with paths: their cells.
fn rows(text: &str) -> Vec<Vec<String>> {
    let rows = text.lines().skip_while(|line| !line.contains("ALL EACH"));
    let cells = |line: &str| -> Vec<String> {
        let cells = line.split("  ").map(str::trim);
        let cells = cells.filter(|cell| !cell.is_empty());
        cells.map(str::to_owned).collect()
    };
    let rows = rows.skip(1).map(cells);
    rows.filter(|cells| cells.len() == 9).collect()
}

/// How many were chosen, how many there are, and the name, of each row.
fn counts(rows: &[Vec<String>]) -> Vec<(&str, &str, &str)> {
    let counts = rows
        .iter()
        .map(|row| (&row[0][..], &row[4][..], &row[7][..]));
    counts.collect()
}

#[test]
fn the_time_of_chosen_requests_is_beside_that_of_all() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("one-chosen");
    record(&fixture);
    let chosen = format!("report a.rmk --name request --where id={SLOW} --paths");
    let found = rows(&shown(&fixture, &chosen));
    // Each third request has no query, each third one, each third two.
    let expected = [
        ("1", "2,000", "request"),
        ("1", "2,000", "handle"),
        ("2", "1,999", "query"),
        ("2", "1,999", "db.query"),
        ("2", "1,999", "leaf"),
    ];
    assert_eq!(counts(&found), expected, "{found:#?}");
    // It sleeps twice, 20 ms each, in its leaves.
    let own = &found[4][3];
    let (number, unit) = own.split_once(' ').expect("a time");
    let number: f64 = number.parse().expect("a number");
    assert!(unit == "s" || unit == "ms" && number >= 40.0, "{own}");
    // Another one has no query: that is of the others alone.
    let without = rows(&shown(
        &fixture,
        "report a.rmk --name request --where id=0 --paths",
    ));
    let expected = [
        ("1", "2,000", "request"),
        ("1", "2,000", "handle"),
        ("-", "1,999", "query"),
        ("-", "1,999", "db.query"),
        ("-", "1,999", "leaf"),
    ];
    assert_eq!(counts(&without), expected, "{without:#?}");
    let callees = format!("report a.rmk --callees request --where id={SLOW}");
    let callees = rows(&shown(&fixture, &callees));
    assert_eq!(counts(&callees), [("1", "2,000", "handle")], "{callees:#?}");
    // Calls can be chosen, too: by how long they took.
    let calls = rows(&shown(
        &fixture,
        "report a.rmk --callees handle --where took>=40ms",
    ));
    let query = calls.iter().find(|row| row[7] == "query");
    assert!(
        query.is_some_and(|row| row[0] != "-" && row[4] == "1,999"),
        "{calls:#?}"
    );
}
