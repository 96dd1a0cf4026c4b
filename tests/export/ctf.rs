//! Promise: babeltrace2 finds in an export what our decoder finds: events by name, their arguments and
//! times, threads, and what was lost between which times.

use crate::pictured;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use pictured::pages_removed;
use pictured::programs::{LUA_CALLS, REQUESTS, record_axum, record_lua};
use ringmark_decoder::{Event, FunctionUse, FunctionWords, Output, Value};
use ringmark_format::schema::semantic;
use ringmark_tests::fixture::{Fixture, SOON};
use ringmark_tests::recording::decode;
use ringmark_tests::{is_long, require_tools, ringmark, run};

/// What babeltrace2 says of a folder: its lines, and its warnings about what was discarded.
fn babeltrace(folder: &Path) -> (Vec<String>, Vec<String>) {
    let mut command = Command::new("babeltrace2");
    command.arg("--clock-seconds").arg(folder);
    let done = run(&mut command, SOON).expect("babeltrace2").expect_code(0);
    let lines = |text: String| text.lines().map(str::to_owned).collect::<Vec<_>>();
    let warnings = lines(done.stderr_text());
    let unexpected = warnings
        .iter()
        .find(|line| !line.is_empty() && !line.contains("discarded"));
    assert_eq!(unexpected, None, "{warnings:?}");
    (lines(done.stdout_text()), warnings)
}

/// The line that babeltrace2 has to print for an event.
fn line_of(event: &Event<'_>) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let took = event.duration_ns().map(|ns| format!("took_ns = {ns}"));
    let fields = event.ty.fields.iter();
    let others = fields.filter(|field| field.semantic != Some(semantic::DURATION));
    let others = others.map(|field| {
        let value = match field.value(&event.payload) {
            Value::U64(n) => n.to_string(),
            Value::I64(n) => n.to_string(),
            Value::Bool(b) => u8::from(b).to_string(),
            Value::Str(bytes) => format!("\"{}\"", text(bytes)),
            Value::None => "\"none\"".to_owned(),
            value => panic!("{value:?} of {}", text(&field.name)),
        };
        let value = match (field.optional, field.value(&event.payload)) {
            (true, Value::U64(_) | Value::I64(_) | Value::Bool(_)) => format!("\"{value}\""),
            _ => value,
        };
        format!("{} = {value}", text(&field.name))
    });
    let fields: Vec<_> = took.into_iter().chain(others).collect();
    line(event, &text(&event.ty.name), &fields)
}

/// The line of a record of a function.
fn line_of_call(event: &Event<'_>, meaning: FunctionUse) -> String {
    let words = FunctionWords::read(meaning, &event.payload);
    let arguments: Vec<_> = words.arguments().map(|word| word.to_string()).collect();
    let result = words.result.map(|result| format!("result={result}"));
    let said = [arguments.join(" "), result.unwrap_or_default()].concat();
    let fields = [
        format!("caller = {}", words.caller),
        format!("arguments = \"{said}\""),
    ];
    let function = String::from_utf8_lossy(event.name());
    line(event, &format!("{function}:{}", event.ty.kind()), &fields)
}

fn line(event: &Event<'_>, name: &str, fields: &[String]) -> String {
    let ns = event.wall_ns();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let fields = match fields.is_empty() {
        true => String::new(),
        false => format!(", {{ {} }}", fields.join(", ")),
    };
    format!(
        "[{}.{:09}] {name}: {{ tid = {}, thread = \"{}\" }}{fields}",
        ns / 1_000_000_000,
        ns % 1_000_000_000,
        event.tid(),
        text(event.comm()),
    )
}

/// A line of babeltrace2 without the time since the line before, the host and the process.
fn shortened(line: &str) -> String {
    // [1795575286.104810612] (+0.000000010) host:orders:(812) job.part: { … }, { … }
    let (front, rest) = line.split_once(": {").expect("a line");
    let time = front.split(' ').next().expect("a time");
    let name = front.rsplit_once(") ").expect("a name").1;
    format!("{time} {name}: {{{rest}")
}

/// Compares all events, with times, threads and arguments, and what is not here. Returns how many
/// events there are, and how many not.
fn compare(path: &Path, folder: &Path) -> (u64, u64) {
    let _ = std::fs::remove_dir_all(folder);
    let mut command = ringmark();
    command.args(["export", "--format", "ctf"]).arg(path);
    let done = run(command.arg("-o").arg(folder), SOON).expect("the tool");
    assert!(done.code() <= 1, "{}", done.stderr_text());
    let dump = decode(&[path.to_owned()]);
    let found = dump.verify();
    let not_here = found.lost + found.overwritten + found.missing;
    let events = dump.events().filter_map(|output| match output {
        Output::Event(event) => Some(match event.ty.function {
            Some(meaning) => line_of_call(&event, meaning),
            None => line_of(&event),
        }),
        Output::Lost(_) => None,
    });
    let mut expected: Vec<_> = events.collect();
    let (lines, warnings) = babeltrace(folder);
    let mut lines: Vec<_> = lines.iter().map(|line| shortened(line)).collect();
    expected.sort();
    lines.sort();
    for (line, expected) in lines.iter().zip(&expected) {
        assert_eq!(line, expected);
    }
    assert_eq!(lines.len(), expected.len());
    let discarded = warnings.iter().filter_map(|line| {
        let (_, rest) = line.split_once("discarded ")?;
        rest.split_once(' ')?.0.parse::<u64>().ok()
    });
    assert_eq!(discarded.sum::<u64>(), not_here, "{warnings:?}");
    (lines.len() as u64, not_here)
}

#[test]
fn events_and_losses_are_those_of_our_decoder() {
    if !require_tools(&["babeltrace2"]) {
        return;
    }
    let fixture = Fixture::new("export-ctf");
    let whole = fixture.path("whole.rmk");
    let mut command = ringmark();
    command.env("RINGMARK_DIR", fixture.sessions());
    command.arg("record").arg("-o").arg(&whole).arg("--");
    command
        .arg(ringmark_tests::program!("orders"))
        .args(["5", "300"]);
    let _ = run(&mut command, SOON).expect("the tool").expect_code(0);
    compare_cuts(&fixture, &whole);
}

/// Compares a trace, and cuts of it by chance.
fn compare_cuts(fixture: &Fixture, whole: &Path) {
    let (events, lost) = compare(whole, &fixture.path("whole"));
    let made = events + lost;
    let bytes = std::fs::read(whole).expect("a trace file");
    let seeds = if is_long() { 20 } else { 3 };
    for seed in (1..=seeds).map(Some).chain([None]) {
        let path = fixture.path("cut.rmk");
        std::fs::write(&path, pages_removed(&bytes, seed)).expect("a trace file");
        let (events, not_here) = compare(&path, &fixture.path("cut"));
        assert_eq!(events + not_here, made);
    }
}

/// What babeltrace2 says of the records with this name.
fn records(folder: &Path, name: &str) -> Vec<String> {
    let name = format!("] {name}: {{");
    let (lines, _) = babeltrace(folder);
    let lines = lines.iter().map(|line| shortened(line));
    lines.filter(|line| line.contains(&name)).collect()
}

/// The number that a line has of this field.
fn number(line: &str, field: &str) -> Option<u64> {
    let (_, rest) = line.split_once(&format!(" {field} = "))?;
    rest.split([',', ' ']).next()?.parse().ok()
}

/// The time of a line, in ns.
fn at_ns(line: &str) -> u128 {
    let digits = line.chars().take_while(|c| *c != ']');
    let digits: String = digits.filter(char::is_ascii_digit).collect();
    digits.parse().expect("a time")
}

#[test]
fn records_of_an_axum_server_are_those_it_counts() {
    if !require_tools(&["babeltrace2"]) {
        return;
    }
    let fixture = Fixture::new("export-ctf-axum");
    let trace = fixture.path("axum.rmk");
    let served = record_axum(&fixture, &trace);
    compare_cuts(&fixture, &trace);
    let folder = fixture.path("whole");
    // A record makes each request, one has its number, one the status of its answer.
    let requests = records(&folder, "request");
    let numbers = |key| -> Vec<_> { requests.iter().filter_map(|l| number(l, key)).collect() };
    let found = numbers("number");
    let expected = (REQUESTS as usize, REQUESTS * (REQUESTS - 1) / 2);
    assert_eq!((found.len(), found.iter().sum()), expected);
    assert_eq!(numbers("status"), vec![200; served.answered as usize]);
    let closes = records(&folder, "span.close");
    assert_eq!(served.spans.len(), 2);
    for said in &served.spans {
        let begun = records(&folder, &said.name);
        let ids: BTreeSet<_> = begun.iter().map(|line| number(line, "span_id")).collect();
        let of_them = |line: &&String| ids.contains(&number(line, "span_id"));
        let ended: Vec<_> = closes.iter().filter(of_them).collect();
        let took = ended.iter().map(|line| at_ns(line)).sum::<u128>()
            - begun.iter().map(|line| at_ns(line)).sum::<u128>();
        let found = (ended.len() as u64, took as u64);
        said.compare(&[(said.name.clone(), found)].into());
    }
}

#[test]
fn records_of_lua_are_the_calls_it_counts() {
    if !require_tools(&["babeltrace2"]) {
        return;
    }
    let fixture = Fixture::new("export-ctf-lua");
    let Some(lua) = record_lua(&fixture) else {
        return;
    };
    compare_cuts(&fixture, &lua.trace);
    let folder = fixture.path("whole");
    let entries = |name: &str| records(&folder, &format!("{name}:function_entry"));
    for (name, calls) in LUA_CALLS {
        assert_eq!(entries(name).len() as u64, calls, "{name}");
    }
    let name = &lua.pcalls.name;
    let sum = |lines: &[String]| lines.iter().map(|line| at_ns(line)).sum::<u128>();
    let (begun, ended) = (
        entries(name),
        records(&folder, &format!("{name}:function_exit")),
    );
    let took = (ended.len() as u64, (sum(&ended) - sum(&begun)) as u64);
    lua.pcalls.compare(&[(name.clone(), took)].into());
}
