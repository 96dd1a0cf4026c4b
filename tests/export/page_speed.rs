//! Promise: the page of `report --html` stays smooth with a million spans that each have a text of their
//! own, on 64 threads, drawn in software; and the slowest of them is reached by keys alone.
//!
//! A small trace every day, for what is shown. With `RINGMARK_LONG=1` the million, and the bars.

use crate::many_spans;

use many_spans::{ManySpans, many_spans};
use ringmark_tests::browser::{browser, look};
use ringmark_tests::fixture::{Fixture, SOON};
use ringmark_tests::{is_long, ringmark, run};
use serde_json::Value;

/// Bytes of a page with a million spans.
const PAGE_BYTES_MAX: u64 = 25 << 20;
const OPEN_MS_MAX: f64 = 2000.0;
const FRAME_P95_MS_MAX: f64 = 33.4;
const FRAME_WORST_MS_MAX: f64 = 100.0;
const SEARCH_MS_MAX: f64 = 200.0;

/// Writes the page of a trace.
fn page_of(fixture: &Fixture, made: &ManySpans) -> std::path::PathBuf {
    let (trace, page) = (fixture.path("many.rmk"), fixture.path("many.html"));
    std::fs::write(&trace, &made.bytes).expect("a trace file");
    let mut command = ringmark();
    command.arg("report").arg(&trace).arg("--html");
    let done = run(command.arg("-o").arg(&page), 4 * SOON).expect("the tool");
    assert_eq!(done.code(), 0, "{}", done.stderr_text());
    page
}

fn digits(text: &Value) -> u64 {
    let text = text.as_str().expect("text");
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    digits.parse().expect("a number")
}

#[test]
fn a_million_spans_are_shown_smoothly() {
    let Some(browser) = browser() else { return };
    let groups = if is_long() { 1954 } else { 4 };
    let made = many_spans(64, groups);
    let fixture = Fixture::new("page-speed");
    let page = page_of(&fixture, &made);
    // Each text has a number of its own in its thread.
    let found = look(
        &fixture,
        browser,
        "page_figures.mjs",
        &page,
        &["order-000017"],
    );
    let bytes = page.metadata().expect("a page").len();
    println!("{} spans, {bytes} bytes, {found}", made.spans);
    assert_eq!(digits(&found["facts"]["spans and calls"]), made.spans);
    assert_eq!(digits(&found["matches"]), 64);
    assert_eq!(found["slowest"]["arguments"], slowest_text(&made));
    assert_eq!(found["requests"], Value::Array(Vec::new()));
    assert_eq!(found["errors"], Value::Array(Vec::new()));
    assert!(bytes <= PAGE_BYTES_MAX, "{bytes} bytes");
    if is_long() {
        assert_bars(&found);
    }
}

fn slowest_text(made: &ManySpans) -> String {
    format!("path=\"{}\"", made.slowest.0)
}

fn assert_bars(found: &Value) {
    let ms = |value: &Value| value.as_f64().expect("ms");
    assert!(ms(&found["open_ms"]) <= OPEN_MS_MAX, "opens too late");
    for path in ["zoom", "pan", "pan_one_percent"] {
        assert!(ms(&found[path]["p95"]) <= FRAME_P95_MS_MAX, "{path}");
        assert!(ms(&found[path]["worst"]) <= FRAME_WORST_MS_MAX, "{path}");
    }
    assert!(ms(&found["search_ms"]) <= SEARCH_MS_MAX, "search");
}
