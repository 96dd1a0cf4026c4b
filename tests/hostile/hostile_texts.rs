//! Promise: a text that a program recorded does nothing in any output, at whatever place it stands:
//! it drives no terminal, reorders nothing, ends no string early, and runs nowhere.

use crate::corpus;

use std::path::Path;
use std::process::Command;

use corpus::everywhere::everywhere;
use corpus::{corpus, is_harmful};
use ringmark_decoder::escape;
use ringmark_tests::browser::{browser, html_of};
use ringmark_tests::fixture::{Fixture, SOON};
use ringmark_tests::trace_processor::{ask, trace_processor};
use ringmark_tests::{Running, require_tools, ringmark, run, wait_until};
use serde_json::Value;

/// Command lines that show a trace file.
const OF_FILE: [&str; 20] = [
    "cat a.rmk",
    "cat a.rmk -v --wide",
    "cat a.rmk --raw",
    "cat a.rmk --tree",
    "cat a.rmk --name no-such-name",
    "list a.rmk -v",
    "events a.rmk",
    "verify a.rmk",
    "graph a.rmk",
    "graph a.rmk --wide",
    "report a.rmk",
    "report a.rmk --slowest 5",
    "report a.rmk --paths",
    "report a.rmk --diff a.rmk",
    "report a.rmk --name no-such-name",
    "export a.rmk --format folded -o -",
    "report a.rmk --by name,thread,target",
    "export a.rmk --format csv -o -",
    "export a.rmk --format csv -o - --name *",
    "report a.rmk --by name,thread,target --csv",
];

/// The same as JSON, a value a line.
const AS_JSON: [&str; 7] = [
    "cat a.rmk --json",
    "cat a.rmk --json --raw",
    "list a.rmk --json",
    "events a.rmk --json",
    "verify a.rmk --json",
    "graph a.rmk --json",
    "report a.rmk --json",
];

/// Command lines that show a living process; PID is its id.
const OF_PROCESS: [&str; 12] = [
    "list",
    "list -v",
    "list --json",
    "list -v -p PID",
    "list -v -p PID --json",
    "events -p PID",
    "cat -p PID",
    "cat -p PID --json",
    "report -p PID",
    "trace status -p PID",
    "export -p PID --format folded -o -",
    "clean",
];

/// The fixture with the trace that has every text at every place.
fn stage(name: &str) -> Fixture {
    let fixture = Fixture::new(name);
    std::fs::write(fixture.path("a.rmk"), everywhere()).expect("a trace file");
    fixture
}

/// What a command line prints: output, then messages.
fn printed(fixture: &Fixture, line: &str) -> [Vec<u8>; 2] {
    let mut command = ringmark();
    command.env("RINGMARK_DIR", fixture.sessions());
    command.current_dir(fixture.path("."));
    let done = run(command.args(line.split(' ')), SOON).expect("the tool");
    // The living program has no function tracer to ask.
    let is_refused = line.starts_with("trace status");
    let code = done.code();
    assert!(code <= 1 || is_refused, "{line}: {}", done.stderr_text());
    [done.stdout, done.stderr]
}

/// Takes away what colours text: the tool's own.
fn without_colours(text: &str) -> String {
    let mut pieces = text.split("\x1b[");
    let mut plain = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let end = piece.find(|c: char| !c.is_ascii_digit() && c != ';');
        match end.and_then(|end| piece[end..].strip_prefix('m')) {
            Some(rest) => plain.push_str(rest),
            None => plain.extend(["\x1b[", piece]),
        }
    }
    plain
}

/// What harm these bytes do on a terminal.
fn harm(bytes: &[u8]) -> Option<String> {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return Some("no UTF-8".to_owned());
    };
    let found = text.char_indices().find(|(_, c)| is_harmful(*c));
    found.map(|(at, _)| format!("{:?}", text[at..].chars().take(40).collect::<String>()))
}

fn is_table(line: &str) -> bool {
    line.contains("csv")
}

/// What a command line prints, without the CR that ends each line of a table, before the line feed.
fn with_plain_ends(line: &str, bytes: &[u8]) -> Vec<u8> {
    if !is_table(line) {
        return bytes.to_vec();
    }
    let lines = bytes.split(|byte| *byte == b'\n');
    let lines = lines.map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    lines.collect::<Vec<_>>().join(&b'\n')
}

fn is_inert(fixture: &Fixture, line: &str) -> Vec<u8> {
    let [out, said] = printed(fixture, line);
    assert!(!out.is_empty() || !said.is_empty(), "{line}: nothing");
    assert_eq!(harm(&said), None, "{line}: messages");
    assert_eq!(harm(&with_plain_ends(line, &out)), None, "{line}");
    out
}

#[test]
fn a_text_that_is_not_escaped_would_be_found() {
    let harmful: Vec<_> = corpus()
        .into_iter()
        .filter(|text| harm(text).is_some())
        .collect();
    assert!(harmful.len() >= 6, "{} of the corpus", harmful.len());
    for text in harmful {
        let mut shown = Vec::new();
        escape::text(&text, &mut shown);
        assert_eq!(harm(&shown), None);
        let planted = [&shown, &b" "[..], &text, b" ", &shown].concat();
        assert!(harm(&planted).is_some());
    }
    assert_eq!(
        without_colours("\x1b[1;31mred\x1b[0m \x1b[2J"),
        "red \x1b[2J"
    );
}

#[test]
fn nothing_drives_a_terminal() {
    let fixture = stage("texts-terminal");
    for line in OF_FILE {
        let _ = is_inert(&fixture, line);
        let [out, said] = printed(&fixture, &format!("--color always {line}"));
        for bytes in [out, said] {
            let text = String::from_utf8(with_plain_ends(line, &bytes)).expect("UTF-8");
            assert_eq!(harm(without_colours(&text).as_bytes()), None, "{line}");
        }
    }
}

#[test]
fn every_line_of_json_is_json() {
    let fixture = stage("texts-json");
    for line in AS_JSON {
        let out = String::from_utf8(is_inert(&fixture, line)).expect("UTF-8");
        let mut values = 0;
        for line in out.lines() {
            let value: Value = serde_json::from_str(line).expect(line);
            assert_eq!(value.get("made"), None, "{line}");
            values += 1;
        }
        assert!(values > 0, "{line}");
    }
}

/// Cells of CSV: what is between quotes, and what is not.
fn cells(text: &str) -> Vec<String> {
    let (mut cells, mut cell, mut is_quoted) = (Vec::new(), String::new(), false);
    for c in text.chars() {
        match c {
            '"' => is_quoted = !is_quoted,
            ',' | '\r' | '\n' if !is_quoted => cells.push(std::mem::take(&mut cell)),
            c => cell.push(c),
        }
    }
    assert!(!is_quoted, "a quote without an end");
    cells
}

#[test]
fn no_cell_of_a_table_is_a_formula() {
    let fixture = stage("texts-table");
    for line in OF_FILE.iter().filter(|line| is_table(line)) {
        let out = String::from_utf8(is_inert(&fixture, line)).expect("UTF-8");
        let lines: Vec<_> = out.split("\r\n").collect();
        assert!(
            lines.len() > 10 && !out.replace("\r\n", "").contains(['\r', '\n']),
            "{line}"
        );
        for cell in cells(&out) {
            let is_formula = cell.starts_with(['=', '+', '-', '@', '\t', '\u{FF1D}']);
            let is_number = cell.parse::<f64>().is_ok();
            assert!(!is_formula || is_number, "{line}: {cell:?}");
        }
    }
    let formulas = corpus().into_iter().filter(|text| text.starts_with(b"="));
    assert!(formulas.count() > 0, "the corpus has none");
}

/// A program with such names: its own, its threads', its events'.
#[test]
fn a_living_program_drives_no_terminal() {
    let fixture = Fixture::new("texts-living");
    let program = fixture.path("=\x1b[31m\u{202e}x");
    let _ = std::fs::copy(ringmark_tests::program!("rude_names"), &program).expect("a copy");
    let ready = fixture.path("ready");
    let mut command = fixture.program(program.to_str().expect("UTF-8"), "mode=overwrite");
    let running = Running::start(command.arg(&ready)).expect("it starts");
    wait_until(SOON, "its session", || ready.exists().then_some(()));
    let pid = running.id().to_string();
    for line in OF_PROCESS {
        let _ = is_inert(&fixture, &line.replace("PID", &pid));
    }
    let _ = running.kill().expect("it was there");
    for line in ["list", "clean"] {
        let _ = is_inert(&fixture, line);
    }
}

#[test]
fn the_page_runs_nothing() {
    let Some(browser) = browser() else { return };
    let fixture = stage("texts-page");
    let _ = printed(&fixture, "report a.rmk --html -o page.html");
    let page = fixture.path("page.html");
    let html = html_of(&fixture, browser, &page);
    assert_eq!(harm(html.as_bytes()), None);
    // The script of the page, its data and its texts, and no other element that could act.
    let whole = std::fs::read_to_string(&page).expect("a page");
    assert_eq!(whole.matches("<script").count(), 3);
    assert_eq!(html.matches("<script").count(), 1, "the data is taken out");
    assert!(!html.contains("<img"), "an element of the trace's");
}

/// What babeltrace2 prints of a folder; it complains about nothing.
fn babeltrace(folder: &Path) -> String {
    let mut command = Command::new("babeltrace2");
    let done = run(command.arg(folder), SOON).expect("babeltrace2");
    assert_eq!(done.stderr_text(), "", "babeltrace2 complains");
    done.expect_code(0).stdout_text()
}

#[test]
fn babeltrace2_reads_the_names() {
    if !require_tools(&["babeltrace2"]) {
        return;
    }
    let fixture = stage("texts-ctf");
    let _ = printed(&fixture, "export a.rmk --format ctf -o ctf");
    let text = babeltrace(&fixture.path("ctf"));
    assert_eq!(harm(text.as_bytes()), None);
    // What has no name is told apart by nothing.
    for name in corpus().into_iter().filter(|name| !name.is_empty()) {
        let mut shown = Vec::new();
        escape::text(&name[..name.len().min(1000)], &mut shown);
        let shown = String::from_utf8(shown).expect("UTF-8");
        let event = format!(") {shown}: {{");
        // An event, a value, a span, and four records of a span over threads.
        assert_eq!(text.matches(&event).count(), 7, "{shown}");
    }
}

#[test]
fn the_trace_processor_reads_the_names() {
    let Some(folder) = trace_processor() else {
        return;
    };
    let fixture = stage("texts-perfetto");
    let _ = printed(&fixture, "export a.rmk -o a.pftrace");
    const NAMES: &str = "select name, count(*) from slice group by name";
    const TEXTS: &str = "select distinct coalesce(string_value, '') from args";
    const THREADS: &str =
        "select distinct coalesce(name, '') from thread union select name from process";
    let file = fixture.path("a.pftrace");
    let [names, texts, threads] = &ask(folder, &file, &[NAMES, TEXTS, THREADS])[..] else {
        panic!("three answers");
    };
    for row in names.iter().chain(texts).chain(threads) {
        let text = row[0].as_str().unwrap_or_default();
        assert_eq!(harm(text.as_bytes()), None);
        assert!(!text.contains('\n'), "{text}");
    }
    for text in corpus() {
        let (mut name, mut argument) = (Vec::new(), Vec::new());
        escape::text(&text[..text.len().min(1000)], &mut name);
        escape::text(&text, &mut argument);
        let is = |row: &&Vec<Value>, text: &[u8]| row[0].as_str().map(str::as_bytes) == Some(text);
        // An event, a message, a span, one over threads, a call, an open one.
        let found = names.iter().find(|row| is(row, &name));
        assert!(text.is_empty() || found.is_some(), "{text:?}");
        assert!(texts.iter().any(|row| is(&row, &argument)), "{text:?}");
    }
}
