//! Promise: `export --format otlp` has every span with its times and its parent, and `otlp-logs` every event in its
//! span.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use ringmark_tests::binary::{self, built, ringmark};
use ringmark_tests::fixture::{Fixture, SOON};
use ringmark_tests::run;
use serde_json::Value;

use crate::pictured::programs::record_axum;

/// A span by what it is: its name and how long it took, and the same of the span around it.
type Known = (String, u64, Option<(String, u64)>);

fn lines(command: &[&str], trace: &Path) -> Vec<Value> {
    let mut whole = ringmark();
    let done = run(whole.args(command).arg(trace), SOON).unwrap();
    let text = done.expect_code(0).stdout_text();
    let lines = text.lines().map(serde_json::from_str);
    lines.collect::<Result<_, _>>().unwrap()
}

/// All items of messages: spans, or records of logs.
fn items(messages: &[Value], [resources, scopes, items]: [&str; 3]) -> Vec<Value> {
    let list = |value: &Value, key: &str| value[key].as_array().unwrap().clone();
    let resources = messages.iter().flat_map(|message| list(message, resources));
    let scopes = resources.flat_map(|resource| {
        let attributes = list(&resource["resource"], "attributes");
        let of = |key| attributes.iter().find(|found| found["key"] == key);
        assert_eq!(
            of("service.name").unwrap()["value"]["stringValue"],
            "axum-server"
        );
        list(&resource, scopes)
    });
    scopes.flat_map(|scope| list(&scope, items)).collect()
}

fn ns(value: &Value) -> u64 {
    value.as_str().unwrap().parse().unwrap()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

#[test]
fn spans_of_an_axum_server_have_their_times_and_parents() {
    let fixture = Fixture::new("export-otlp-axum");
    let trace = fixture.path("axum.rmk");
    let served = record_axum(&fixture, &trace);
    let messages = lines(&["export", "--format", "otlp", "-o", "-"], &trace);
    let spans = items(&messages, ["resourceSpans", "scopeSpans", "spans"]);
    let took = |span: &Value| ns(&span["endTimeUnixNano"]) - ns(&span["startTimeUnixNano"]);
    let by_id: BTreeMap<String, &Value> = spans
        .iter()
        .map(|span| (text(&span["spanId"]), span))
        .collect();
    assert_eq!(by_id.len(), spans.len(), "an id of its own each");
    let known = |span: &Value| (text(&span["name"]), took(span));
    let mut found: Vec<Known> = Vec::new();
    for span in &spans {
        let around = span["parentSpanId"].as_str().map(|id| by_id[id]);
        if let Some(around) = around {
            assert_eq!(around["traceId"], span["traceId"]);
        }
        let (name, took) = known(span);
        found.push((name, took, around.map(known)));
    }
    let mut expected = of_cat(&lines(&["cat", "--json"], &trace));
    found.sort();
    expected.sort();
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(&expected) {
        assert_eq!(found, expected);
    }
    let roots = spans.iter().filter(|span| span["parentSpanId"].is_null());
    let traces: BTreeSet<_> = spans.iter().map(|span| text(&span["traceId"])).collect();
    assert_eq!(
        traces.len(),
        roots.count(),
        "a trace for each outermost span"
    );
    assert!(found.iter().any(|span| span.2.is_some()));
    for said in &served.spans {
        let count = found.iter().filter(|span| span.0 == said.name).count() as u64;
        assert_eq!(count, said.count, "{}", said.name);
    }
}

/// A slow request reports an event: it is in the span of that request.
#[test]
fn events_of_an_axum_server_are_in_their_spans() {
    let fixture = Fixture::new("export-otlp-logs");
    let trace = fixture.path("axum.rmk");
    let mut record = fixture.command(binary::path());
    record.args(["record", "-o"]).arg(&trace).arg("--");
    let done = run(record.arg(built("axum-server")).arg("qsq"), SOON);
    let _ = done.unwrap().expect_code(0);
    let messages = lines(&["export", "--format", "otlp", "-o", "-"], &trace);
    let spans = items(&messages, ["resourceSpans", "scopeSpans", "spans"]);
    let messages = lines(&["export", "--format", "otlp-logs", "-o", "-"], &trace);
    let logs = items(&messages, ["resourceLogs", "scopeLogs", "logRecords"]);
    let slow = |log: &&Value| log["body"]["stringValue"] == "too slow";
    let log = logs.iter().find(slow).expect("its event");
    assert_eq!(log["severityText"], "INFO");
    let around = spans.iter().find(|span| span["spanId"] == log["spanId"]);
    let around = around.expect("a span");
    assert_eq!(
        (&around["name"], &around["traceId"]),
        (&"request".into(), &log["traceId"])
    );
    let begin = ns(&around["startTimeUnixNano"]);
    assert!((begin..=ns(&around["endTimeUnixNano"])).contains(&ns(&log["timeUnixNano"])));
}

/// The spans that `cat` prints. An id is given again: the span around is the one that lasted then.
fn of_cat(lines: &[Value]) -> Vec<Known> {
    let spans: Vec<_> = lines.iter().filter(|line| line["kind"] == "span").collect();
    let ended = |line: &Value| ns(&line["ts_ns"]);
    let took = |line: &Value| line["dur_ns"].as_u64().unwrap();
    let known = |line: &Value| (text(&line["name"]), took(line));
    let begin = |line: &Value| ended(line) - took(line);
    let of = |line: &&Value| {
        let around = line["parent"].as_str().and_then(|id| {
            let its = spans.iter().filter(|span| span["span"] == id);
            let mut lasting =
                its.filter(|span| begin(span) <= begin(line) && begin(line) <= ended(span));
            lasting.next()
        });
        let (name, took) = known(line);
        (name, took, around.map(|around| known(around)))
    };
    spans.iter().map(of).collect()
}
