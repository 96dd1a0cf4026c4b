//! Promise: what a program reports by `tracing` is in its trace as `fmt` has it, line by line and field by field:
//! all fields, absent ones, long texts, spans with their parents, in several registries, whatever is switched
//! meanwhile.

use std::collections::{BTreeMap, HashMap};

use ringmark_tests::binary::built;
use ringmark_tests::fixture::Fixture;
use ringmark_tests::{is_long, program, recording, ringmark, run};
use serde_json::Value;

use crate::c::LIMIT;

type Fields = BTreeMap<String, String>;

/// An event: level, target, the spans that it is in, outermost first, and its fields.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Line {
    level: String,
    target: String,
    spans: Vec<(String, Fields)>,
    fields: Fields,
}

/// `␞name␟value` for each field; one that comes again has its last value.
fn fields(text: &str) -> Fields {
    let each = text.split('␞').skip(1);
    let pairs = each.map(|field| field.split_once('␟').expect("a value"));
    let pair = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
    pairs.map(pair).collect()
}

/// A line of `fmt`. Spans that were made while all was off are not recorded.
fn of_fmt(line: &str) -> Line {
    let parts: Vec<&str> = line.split('│').collect();
    let [level, target, spans @ .., own] = &parts[..] else {
        panic!("{line}");
    };
    let spans = spans.iter().map(|span| {
        let name = span.split('␞').next().unwrap_or_default();
        (name.to_owned(), fields(span))
    });
    Line {
        level: level.to_lowercase(),
        target: (*target).to_owned(),
        spans: spans.filter(|(name, _)| name != "ghost").collect(),
        fields: fields(own),
    }
}

fn text(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

fn arguments(object: &Value) -> Fields {
    let there = object["args"].as_object().expect("arguments").iter();
    let there = there.filter(|(_, value)| !value.is_null());
    there
        .map(|(name, value)| (name.clone(), text(value)))
        .collect()
}

/// The events of the trace, in the spans that their ids say.
fn of_trace(all: &[Value]) -> Vec<Line> {
    let of_kind = |kind: &'static str| all.iter().filter(move |object| object["kind"] == kind);
    let spans: HashMap<String, &Value> = of_kind("span")
        .map(|span| (text(&span["span"]), span))
        .collect();
    let line = |event: &Value| {
        let mut around = Vec::new();
        let mut id = event["span"].as_str();
        while let Some(inner) = id {
            let span = spans
                .get(inner)
                .unwrap_or_else(|| panic!("{event}: no end of {inner}"));
            around.push((text(&span["name"]), arguments(span)));
            id = span["parent"].as_str();
        }
        around.reverse();
        Line {
            level: text(&event["level"]),
            target: text(&event["target"]),
            spans: around,
            fields: arguments(event),
        }
    };
    of_kind("event").map(line).collect()
}

/// What a fixture's only session holds, as JSON.
fn traced(fixture: &Fixture) -> Vec<Value> {
    let dump = fixture.path("beside.rmk");
    recording::record(&fixture.ring_file(), &dump);
    let mut cat = ringmark();
    cat.args(["cat", "--json"]).arg(&dump);
    let cat = run(&mut cat, LIMIT).expect("ringmark").expect_code(0);
    let parse = |line: &str| serde_json::from_str(line).expect("a line of JSON");
    cat.stdout_text().lines().map(parse).collect()
}

/// The lines of a log, without what is said while all is off.
fn said(log: &str) -> Vec<Line> {
    let lines = log.lines().map(of_fmt);
    lines.filter(|line| line.target != "while_off").collect()
}

#[test]
fn the_trace_says_what_fmt_says() {
    let fixture = Fixture::new("beside-fmt");
    let settings = "mode=discard,keep=always,ring=8M,session=64M";
    let mut command = fixture.program(program!("beside_fmt"), settings);
    let done = run(&mut command, LIMIT).expect("it starts").expect_code(0);
    let all = traced(&fixture);
    let (said, traced) = (said(&done.stdout_text()), of_trace(&all));
    for (said, traced) in said.iter().zip(&traced) {
        assert_eq!(said, traced);
    }
    assert_eq!(said.len(), traced.len());
    assert!(said.len() > 100, "{}", said.len());
    // Spans: each has an end, and no more were begun than fmt knows.
    let spans = all.iter().filter(|object| object["kind"] == "span").count();
    assert_eq!(spans, 7 + 6 + 3 * 3);
}

/// The lines of threads that run at once come in any order.
#[test]
fn the_trace_of_an_axum_server_says_what_its_log_says() {
    let fixture = Fixture::new("beside-fmt-axum");
    let settings = "mode=discard,keep=always,ring=16M,session=512M";
    let mut command = fixture.program(&built("axum-server").to_string_lossy(), settings);
    let requests = if is_long() { 5000 } else { 200 };
    command.arg("wqwbw".repeat(requests / 5));
    let done = run(&mut command, LIMIT).expect("it starts").expect_code(0);
    let answered = done.stdout_text();
    assert_eq!(answered.lines().next(), Some(&*requests.to_string()));
    let all = traced(&fixture);
    let [mut said, mut traced] = [said(&done.stderr_text()), of_trace(&all)];
    // A request's status is known when its last line is written.
    for (_, fields) in said
        .iter_mut()
        .chain(&mut traced)
        .flat_map(|line| &mut line.spans)
    {
        fields.remove("status");
    }
    said.sort();
    traced.sort();
    for (said, traced) in said.iter().zip(&traced) {
        assert_eq!(said, traced);
    }
    let wide = requests / 5 * 3;
    // Eight lines of a wide request and two of its client; four in each of ten rounds of switches.
    assert_eq!((said.len(), traced.len()), (10 * wide + 40, 10 * wide + 40));
}
