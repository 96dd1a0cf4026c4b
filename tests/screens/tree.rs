//! Promise: `cat --tree` has the lines of `cat`, each below the span that it lies in.

use std::process::Command;

use ringmark_tests::fixture::{Fixture, SOON};
use ringmark_tests::functions::LIMIT;
use ringmark_tests::{Running, binary, run, wait_until};

/// Lines of `cat` without their times.
fn shown(fixture: &Fixture, words: &str) -> Vec<String> {
    let mut cat = ringmark(fixture, words);
    let text = run(&mut cat, LIMIT).expect("ringmark").stdout_text();
    let without_time = |line: &str| line.split_once(' ').expect("a time").1.to_owned();
    text.lines().map(without_time).collect()
}

fn ringmark(fixture: &Fixture, words: &str) -> Command {
    let mut command = fixture.command(binary::path());
    command
        .current_dir(fixture.path("."))
        .args(words.split_whitespace());
    command
}

/// A line of the tree: how far it is indented, and the line of `cat`.
fn unindented(line: &str) -> (usize, String) {
    let (thread, rest) = line.split_once(' ').expect("a thread");
    let words = rest.trim_start_matches(' ');
    ((rest.len() - words.len()) / 2, format!("{thread} {words}"))
}

fn id<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    let (_, rest) = line.split_once(&format!(" {key}="))?;
    rest.split([' ', '}']).next()
}

/// The id of the span that a line lies in, and that of its own span.
fn ids(line: &str) -> (Option<&str>, Option<&str>) {
    match line.contains("{event ") {
        true => (id(line, "span"), None),
        false => (id(line, "parent"), id(line, "span")),
    }
}

/// Each line lies below the span that its ids name, as deep as that says.
fn expect_nested(tree: &[String]) {
    let mut around: Vec<String> = Vec::new();
    for line in tree {
        let (depth, line) = unindented(line);
        assert!(depth <= around.len(), "{line}\n{tree:#?}");
        around.truncate(depth);
        let (outer, own) = ids(&line);
        assert_eq!(outer, around.last().map(String::as_str), "{line}");
        around.push(own.unwrap_or("no span").to_owned());
    }
}

/// Tasks of `tracing` that change threads, then native spans.
fn record_orders(fixture: &Fixture) {
    let mut record = ringmark(fixture, "record -o a.rmk --");
    let _ = run(
        record.args([ringmark_tests::program!("orders"), "3", "300"]),
        LIMIT,
    )
    .expect("ringmark")
    .expect_code(0);
}

#[test]
fn each_line_is_below_its_span() {
    let fixture = Fixture::new("tree");
    record_orders(&fixture);
    let tree = shown(&fixture, "cat a.rmk --tree");
    expect_nested(&tree);
    let deepest = tree.iter().map(|line| unindented(line).0).max();
    assert_eq!(deepest, Some(2), "order, db_query, query done");
    let mut flat = shown(&fixture, "cat a.rmk");
    let mut same: Vec<_> = tree.iter().map(|line| unindented(line).1).collect();
    flat.sort();
    same.sort();
    assert_eq!(same, flat);
}

#[test]
fn filters_and_limits_choose_lines() {
    let fixture = Fixture::new("tree-filter");
    record_orders(&fixture);
    // What is chosen is shown with all that is in it, as far as its level passes.
    let orders = shown(&fixture, "cat a.rmk --tree --name order --level info");
    let whole = shown(&fixture, "cat a.rmk --tree");
    let is_of_order = |lines: &[String]| -> Vec<String> {
        let mut is_in = false;
        let lines = lines.iter().filter(|line| {
            let (depth, text) = unindented(line);
            is_in = if depth == 0 {
                text.contains(": order {")
            } else {
                is_in
            };
            is_in
        });
        lines.cloned().collect()
    };
    assert_eq!(orders, is_of_order(&whole));
    // What was in a span without a line is where that would be.
    let done = shown(&fixture, "cat a.rmk --tree --where rows>=0");
    assert!(
        !done.is_empty() && done.iter().all(|line| unindented(line).0 == 0),
        "{done:#?}"
    );
    let errors = shown(&fixture, "cat a.rmk --tree --name order --level error");
    assert_eq!(errors, [""; 0]);
    let first = shown(&fixture, "cat a.rmk --tree -n 7");
    assert_eq!(first.len(), 7);
    assert_eq!(first, shown(&fixture, "cat a.rmk --tree")[..7]);
    let mut json = ringmark(&fixture, "cat a.rmk --tree --json");
    let _ = run(&mut json, LIMIT).expect("ringmark").expect_code(2);
}

#[test]
fn spans_that_are_open_have_what_is_in_them() {
    let fixture = Fixture::new("tree-open");
    let ready = fixture.path("ready");
    let mut held = fixture.program(ringmark_tests::program!("in_spans"), "mode=overwrite");
    let held = Running::start(held.arg("hold").arg(&ready)).expect("it starts");
    wait_until(SOON, "its spans", || ready.exists().then_some(()));
    let mut tree = ringmark(&fixture, &format!("cat -p {} --tree", held.id()));
    let tree = run(&mut tree, LIMIT).expect("ringmark").stdout_text();
    let place = |what: &str| tree.lines().position(|line| line.contains(what));
    let checkout = place("checkout {span_new").expect("it began");
    let inside: Vec<_> = tree.lines().skip(checkout + 1).take(2).collect();
    assert!(
        inside[0].contains("]   info") && inside[0].contains(": paid {span "),
        "{tree}"
    );
    assert!(
        inside[1].contains("]   info") && inside[1].contains(": stock {span_new"),
        "{tree}"
    );
    assert!(place("open spans") > Some(checkout), "{tree}");
}
