//! Promise: the page of `report --html` shows in a browser what our decoder finds: spans, events,
//! losses, open spans. It asks the network for nothing and reports no error.

use crate::pictured;

use std::collections::BTreeMap;
use std::path::Path;

use pictured::pages_removed;
use ringmark_decoder::{Dump, Output};
use ringmark_format::schema::Shape;
use ringmark_reader::Codec;
use ringmark_reader::stream::Address;
use ringmark_tests::browser::{browser, html_of, shown};
use ringmark_tests::collecting::{Collecting, options, stream};
use ringmark_tests::fixture::{Fixture, SOON};
use ringmark_tests::recording::decode;
use ringmark_tests::{Running, is_long, ringmark, run, wait_until};
use serde_json::Value;

/// The number that the page gives for this.
fn fact(dom: &str, name: &str) -> u64 {
    let mark = format!("data-fact=\"{name}\"");
    let (_, rest) = dom
        .split_once(&mark)
        .unwrap_or_else(|| panic!("{name} in {dom}"));
    let (_, rest) = rest.split_once('>').expect("an element");
    let (text, _) = rest.split_once('<').expect("its end");
    text.replace(',', "").parse().expect("a number")
}

/// Compares the page with the records of the trace.
fn compare(fixture: &Fixture, browser: &str, file: &Path) -> (u64, u64) {
    let page = fixture.path("page.html");
    let mut command = ringmark();
    command
        .arg("report")
        .arg(file)
        .arg("--html")
        .arg("-o")
        .arg(&page);
    let done = run(&mut command, SOON).expect("the tool");
    assert!(done.code() <= 1, "{}", done.stderr_text());
    let found = shown(fixture, browser, &page);
    let dom = found["html"].as_str().expect("HTML").to_owned();
    let dump = decode(&[file.to_owned()]);
    compare_threads(&found["threads"], &dump);
    compare_percentiles(&found["spans"], &dump);
    let (spans, events, open) = truth(&dump);
    let found = dump.verify();
    let not_here = found.lost + found.overwritten + found.missing;
    assert!(spans + events + not_here > 0);
    assert_eq!(fact(&dom, "spans and calls"), spans);
    assert_eq!(fact(&dom, "events"), events);
    assert_eq!(fact(&dom, "open at the end"), open);
    assert_eq!(fact(&dom, "events not here"), not_here);
    (open, not_here)
}

/// The rows of a table below its heads, each by its first cell, and the place of the column with this head.
fn column(table: &Value, head: &str) -> BTreeMap<String, String> {
    let rows: Vec<Vec<String>> = serde_json::from_value(table.clone()).expect("cells");
    let at = rows
        .first()
        .and_then(|heads| heads.iter().position(|h| h == head));
    let at = at.unwrap_or_else(|| panic!("{head} in {rows:?}"));
    rows[1..]
        .iter()
        .map(|row| (row[0].clone(), row[at].clone()))
        .collect()
}

/// Compares the events of each thread with those of the trace.
fn compare_threads(table: &Value, dump: &Dump) {
    let mut expected = BTreeMap::<String, u64>::new();
    for output in dump.events() {
        let Output::Event(event) = output else {
            continue;
        };
        let is_event = event
            .ty
            .shape
            .is_none_or(|shape| shape != Shape::Span && !shape.is_part_of_span());
        if is_event {
            *expected.entry(format!("[{}]", event.tid())).or_default() += 1;
        }
    }
    let shown = column(table, "events");
    for (thread, events) in &expected {
        let row = shown.iter().find(|(label, _)| label.ends_with(thread));
        let (_, text) = row.unwrap_or_else(|| panic!("{thread} in {shown:?}"));
        assert_eq!(text.replace(',', "").parse(), Ok(*events), "{thread}");
    }
    assert!(shown.len() >= expected.len(), "{expected:?} {shown:?}");
}

/// Compares the P99 of spans that a thread is in from the first to the last moment.
fn compare_percentiles(table: &Value, dump: &Dump) {
    let mut took = BTreeMap::<String, Vec<u64>>::new();
    for output in dump.events() {
        let Output::Event(event) = output else {
            continue;
        };
        if event.ty.shape == Some(Shape::Span)
            && let Some(ns) = event.duration_ns()
        {
            let name = String::from_utf8_lossy(event.name()).into_owned();
            took.entry(name).or_default().push(ns);
        }
    }
    if took.is_empty() {
        return;
    }
    let shown = column(table, "P99");
    for (name, mut all) in took {
        all.sort_unstable();
        let expected = all[(all.len() * 99).div_ceil(100) - 1] as f64;
        let found = nanoseconds(&shown[&name]);
        assert!(
            (found - expected).abs() <= 0.006 * expected + 0.5,
            "{name}: {found} for {expected}"
        );
    }
}

/// A duration as the page writes it.
pub(crate) fn nanoseconds(text: &str) -> f64 {
    let (number, unit) = text.split_once(' ').expect("a number and a unit");
    let ns = match unit {
        "ns" => 1.0,
        "us" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        other => panic!("{other} in {text}"),
    };
    number.parse::<f64>().expect("a number") * ns
}

/// Spans, events and open spans of a trace without functions.
fn truth(dump: &Dump) -> (u64, u64, u64) {
    let (mut finished, mut made, mut closed, mut events) = (0, 0, 0, 0);
    let mut known = std::collections::HashSet::new();
    for output in dump.events() {
        let Output::Event(event) = output else {
            continue;
        };
        match event.ty.shape {
            Some(Shape::Span) => finished += 1,
            Some(Shape::SpanNew) => {
                made += 1;
                known.insert((event.session.uuid, event.span));
            }
            Some(Shape::SpanClose) => {
                closed += u64::from(known.remove(&(event.session.uuid, event.span)));
            }
            Some(shape) if shape.is_part_of_span() => {}
            _ => events += 1,
        }
    }
    let threads = dump.open_spans();
    let open = threads.iter().flat_map(|thread| &thread.spans);
    let native = open
        .filter(|span| span.ty.shape == Some(Shape::Span))
        .count() as u64;
    (finished + made + native, events, made - closed + native)
}

#[test]
fn what_the_page_shows_is_what_the_trace_holds() {
    let Some(browser) = browser() else { return };
    let fixture = Fixture::new("page-orders");
    let whole = fixture.path("whole.rmk");
    let mut command = ringmark();
    command.env("RINGMARK_DIR", fixture.sessions());
    command.arg("record").arg("-o").arg(&whole).arg("--");
    command
        .arg(ringmark_tests::program!("orders"))
        .args(["11", "300"]);
    let _ = run(&mut command, SOON).expect("the tool").expect_code(0);
    compare(&fixture, browser, &whole);
    let bytes = std::fs::read(&whole).expect("a trace file");
    let seeds = if is_long() { 10 } else { 1 };
    let mut not_here = 0;
    for seed in (1..=seeds).map(Some).chain([None]) {
        let path = fixture.path("cut.rmk");
        std::fs::write(&path, pages_removed(&bytes, seed)).expect("a trace file");
        not_here += compare(&fixture, browser, &path).1;
    }
    assert!(not_here > 0);
}

#[test]
fn spans_that_a_killed_program_was_in_are_open() {
    let Some(browser) = browser() else { return };
    let fixture = Fixture::new("page-open");
    let (ready, file) = (fixture.path("ready"), fixture.path("killed.rmk"));
    let mut command = fixture.program(ringmark_tests::program!("in_spans"), "mode=overwrite");
    command.arg("hold").arg(&ready);
    let program = Running::start(&mut command).expect("a program");
    wait_until(SOON, "a program in its spans", || {
        ready.exists().then_some(())
    });
    let living = fixture.path("living.html");
    let mut command = ringmark();
    command.env("RINGMARK_DIR", fixture.sessions());
    command.args(["report", "--html", "-p", &program.id().to_string()]);
    let done = run(command.arg("-o").arg(&living), SOON).expect("the tool");
    assert!(done.code() <= 1, "{}", done.stderr_text());
    let living = html_of(&fixture, browser, &living);
    let _ = program.kill().expect("a program that was there");
    let mut command = ringmark();
    command.env("RINGMARK_DIR", fixture.sessions());
    command.arg("snapshot").arg("-o").arg(&file);
    let _ = run(&mut command, SOON).expect("the tool");
    let (open, _) = compare(&fixture, browser, &file);
    assert!(open > 0);
    assert_eq!(fact(&living, "open at the end"), open, "while it ran");
}

/// The summary of a page of a program that ended in this way, and its pid.
fn summary_of_end(fixture: &Fixture, browser: &str, way: &str) -> (String, u32) {
    let file = fixture.path("end.rmk");
    let mut command = ringmark();
    command.env("RINGMARK_DIR", fixture.sessions());
    command.arg("record").arg("-o").arg(&file).arg("--");
    command
        .arg(ringmark_tests::program!("ways_to_end"))
        .arg(way);
    let _ = run(&mut command, SOON).expect("the tool");
    let dump = decode(std::slice::from_ref(&file));
    let page = fixture.path("end.html");
    let mut command = ringmark();
    command.arg("report").arg(&file).args(["--html", "-o"]);
    let _ = run(command.arg(&page), SOON).expect("the tool");
    let pid = dump.sessions.first().expect("a session").pid();
    (html_of(fixture, browser, &page), pid)
}

#[test]
fn the_thread_that_ended_the_program_is_named_if_it_is_known() {
    let Some(browser) = browser() else { return };
    let fixture = Fixture::new("page-ends");
    let (dom, pid) = summary_of_end(&fixture, browser, "panic");
    let panicked = format!("data-fact=\"panicked\" class=\"alarm\">ways_to_end [{pid}]<");
    assert!(dom.contains(&panicked), "{panicked} in {dom}");
    assert!(!dom.contains("Which thread got"), "{dom}");
    let (dom, pid) = summary_of_end(&fixture, browser, "segv");
    let sentence =
        format!("Which thread got SIGSEGV is not recorded; ways_to_end[{pid}] did something last.");
    assert!(dom.contains(&sentence), "{sentence} in {dom}");
    assert!(!dom.contains("data-fact=\"panicked\""), "{dom}");
    // Signals of a whole process have no thread.
    let (dom, _) = summary_of_end(&fixture, browser, "kill");
    assert!(
        dom.contains("SIGKILL") && !dom.contains("Which thread got"),
        "{dom}"
    );
}

#[test]
fn a_store_has_a_page_that_goes_to_a_pipe() {
    let Some(browser) = browser() else { return };
    let fixture = Fixture::new("page-store");
    let ringmark_says = "mode=discard,ring=1M,session=16M,keep=always";
    let program = fixture.start(ringmark_tests::program!("emit"), ringmark_says, "2 150");
    let _ = program.finish(SOON).expect_code(0);
    let (socket, store) = (fixture.path("socket"), fixture.path("store"));
    let collecting = Collecting::with(options(Address::Unix(socket.clone()), &store));
    let _ = stream(&fixture.ring_file(), &socket, Codec::None);
    let stored = collecting.stored().verify();
    drop(collecting);
    let mut command = ringmark();
    command
        .arg("report")
        .arg(&store)
        .args(["--html", "-o", "-"]);
    let done = run(&mut command, SOON).expect("the tool");
    assert!(done.code() <= 1, "{}", done.stderr_text());
    let page = fixture.path("page.html");
    std::fs::write(&page, done.stdout).expect("a page");
    let dom = html_of(&fixture, browser, &page);
    assert_eq!(stored.events, 300);
    assert_eq!(fact(&dom, "events"), stored.events);
}
