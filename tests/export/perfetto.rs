//! Promise: Perfetto's trace processor finds in an export what the programs did and what our decoder
//! finds: counts, names, arguments, durations, depths, threads, losses.

use crate::outputs::theirs::LOST;
use crate::pictured;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use pictured::programs::{LUA_CALLS, LUA_DEEP, REQUESTS, record_axum, record_lua};
use pictured::{Truth, names_removed, pages_removed, shown_by_name, sums};
use ringmark_decoder::Dump;
use ringmark_tests::fixture::{Fixture, SOON};
use ringmark_tests::functions::{SITES, compile, tool};
use ringmark_tests::recording::{decode, decode_damaged};
use ringmark_tests::trace_processor::{ask, trace_processor};
use ringmark_tests::{is_long, require_tools, ringmark, run};

/// Slices that have an end: name, number, sum of durations. What began before the first record is no
/// part of it.
const SLICES: &str = "select name, count(*), sum(dur) from slice where dur >= 0 \
    and (dur > 0 or category is null) and name != 'events not here' and not exists \
    (select 1 from args where args.arg_set_id = slice.arg_set_id and key in ('debug.began')) \
    group by name order by name";
/// The same of the rows of threads: sum of depths.
const DEPTHS: &str = "select s.name, count(*), sum(s.depth + coalesce(cast(substr(t.name, 24) as int), 0)) from slice s join track t on t.id = s.track_id \
    where s.dur > 0 and not exists (select 1 from args where args.arg_set_id = s.arg_set_id \
    and key = 'debug.began') and (t.name glob 'functions*' or exists \
    (select 1 from thread_track tt where tt.id = t.id)) group by s.name order by s.name";
/// Calls of `luaB_pcall` around calls of it.
const IN_ITSELF: &str = "select count(*) from slice s, ancestor_slice(s.id) a \
    where s.name = 'luaB_pcall' and a.name = 'luaB_pcall'";
const THREADS: &str = "select distinct coalesce(name, '') from thread order by 1";

/// Runs a program and records it.
fn record(fixture: &Fixture, program: &str, arguments: &[&str], dump: &str) -> String {
    let mut command = ringmark();
    command.env("RINGMARK_DIR", fixture.sessions());
    command
        .arg("record")
        .arg("-o")
        .arg(fixture.path(dump))
        .arg("--")
        .arg(program);
    let done = run(command.args(arguments), SOON).expect("the tool");
    done.stdout_text()
}

fn export(dump: &Path, options: &[&str]) -> std::path::PathBuf {
    let to = dump.with_extension("pftrace");
    let mut command = ringmark();
    command
        .arg("export")
        .arg(dump)
        .arg("-o")
        .arg(&to)
        .args(options);
    let done = run(&mut command, SOON).expect("the tool");
    assert!(done.code() <= 1, "{}", done.stderr_text());
    to
}

/// What the trace processor finds equals what our decoder finds.
fn compare(folder: &Path, dump: &Dump, file: &Path) {
    let truth = Truth::of(dump);
    let found = ask(folder, file, &[SLICES, DEPTHS, LOST, THREADS]);
    assert_eq!(sums(&found[0]), truth.durations, "durations");
    assert_eq!(sums(&found[1]), truth.depths, "depths");
    assert_eq!(found[2][0][0], truth.not_here.to_string(), "losses");
    let threads: Vec<_> = found[3]
        .iter()
        .map(|row| row[0].as_str().unwrap())
        .collect();
    for name in &truth.threads {
        assert!(threads.contains(&name.as_str()), "{name} in {threads:?}");
    }
}

#[test]
fn orders_are_there_with_their_arguments() {
    const COUNT: u64 = 300;
    let Some(folder) = trace_processor() else {
        return;
    };
    let fixture = Fixture::new("export-orders");
    let dump = fixture.path("orders.rmk");
    let program = ringmark_tests::program!("orders");
    let _ = record(&fixture, program, &["7", &COUNT.to_string()], "orders.rmk");
    let file = export(&dump, &[]);
    compare(folder, &decode(&[dump]), &file);
    let numbers = |name: &str| {
        format!(
            "select count(*), sum(int_value), sum(dur >= 0) from slice join args using (arg_set_id) \
             where slice.name = '{name}' and key = 'debug.number'"
        )
    };
    let found = ask(folder, &file, &[&numbers("order"), &numbers("job")]);
    let expected = [COUNT, COUNT * (COUNT - 1) / 2, COUNT].map(|n| n.to_string());
    for answer in found {
        assert_eq!(answer[0], expected);
    }
}

/// Events that are in a trace, and those that are not.
fn made(dump: &Dump) -> u64 {
    dump.verify().events + Truth::of(dump).not_here
}

#[test]
fn every_page_that_is_missing_is_counted() {
    let Some(folder) = trace_processor() else {
        return;
    };
    let fixture = Fixture::new("export-pages");
    let program = ringmark_tests::program!("orders");
    let _ = record(&fixture, program, &["3", "400"], "whole.rmk");
    let whole = std::fs::read(fixture.path("whole.rmk")).expect("a trace file");
    let seeds = if is_long() { 20 } else { 2 };
    let mut cuts: Vec<_> = (1..=seeds).map(Some).collect();
    cuts.push(None);
    let all = made(&decode(&[fixture.path("whole.rmk")]));
    let mut missing = 0;
    for seed in cuts {
        let path = fixture.path("cut.rmk");
        std::fs::write(&path, pages_removed(&whole, seed)).expect("a trace file");
        let dump = decode(std::slice::from_ref(&path));
        missing += dump.verify().missing;
        assert_eq!(made(&dump), all, "shown and lost");
        compare(folder, &dump, &export(&path, &[]));
    }
    assert!(missing > 0);
}

/// A flight recorder has pages of the end alone: its threads begin in the middle of their stacks.
#[test]
fn a_flight_recorder_begins_in_the_middle_of_stacks() {
    let Some(folder) = trace_processor() else {
        return;
    };
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("export-flight");
    let program = compile(&fixture, "calls_plain.c", "program", SITES);
    let path = fixture.path("flight.rmk");
    // Where the oldest page begins is chance: it may be between two calls of main.
    let begins_inside = (0..5).any(|_| {
        let mut command: Command = tool(&fixture);
        command.env("RINGMARK", "mode=overwrite,ring=64K,page=4K");
        command.args(["run", "--kind", "graph", "--all-functions", "-o"]);
        let _ = run(command.arg(&path).arg("--").arg(&program), SOON).expect("it starts");
        let dump = decode(std::slice::from_ref(&path));
        let file = export(&path, &[]);
        compare(folder, &dump, &file);
        let overwritten = dump.verify().overwritten;
        assert!(overwritten > 0, "the ring is too large for the program");
        let began = "select count(*) from args where key = 'debug.began'";
        ask(folder, &file, &[began])[0][0][0] != "0"
    });
    assert!(
        begins_inside,
        "calls that were open before the first record"
    );
}

/// Without the names of its events a trace has numbers in their places, and no event less.
#[test]
fn events_are_there_without_their_names() {
    const EVENTS: &str = "select count(*) from slice where name != 'events not here'";
    let Some(folder) = trace_processor() else {
        return;
    };
    let fixture = Fixture::new("export-nameless");
    let program = ringmark_tests::program!("orders");
    let _ = record(&fixture, program, &["5", "200"], "whole.rmk");
    let whole = std::fs::read(fixture.path("whole.rmk")).expect("a trace file");
    let path = fixture.path("nameless.rmk");
    std::fs::write(&path, names_removed(&whole)).expect("a trace file");
    let dump = decode_damaged(std::slice::from_ref(&path), "schema stream");
    let found = ask(folder, &export(&path, &[]), &[EVENTS]);
    assert_eq!(found[0][0][0], dump.verify().events.to_string());
    let whole = decode(&[fixture.path("whole.rmk")]).verify();
    assert_eq!(dump.verify().events, whole.events);
}

/// Each cut of a trace: pages are missing by a seed, or the first ones of all rings.
fn compare_cuts(folder: &Path, fixture: &Fixture, whole: &Path, seeds: u64) {
    let bytes = std::fs::read(whole).expect("a trace file");
    let all = made(&decode(&[whole.to_owned()]));
    for seed in (1..=seeds).map(Some).chain([None]) {
        let path = fixture.path("cut.rmk");
        std::fs::write(&path, pages_removed(&bytes, seed)).expect("a trace file");
        let dump = decode(std::slice::from_ref(&path));
        assert_eq!(made(&dump), all, "shown and lost, seed {seed:?}");
        compare(folder, &dump, &export(&path, &[]));
    }
}

/// Cuts by chance of each program: few every day.
fn seeds() -> u64 {
    if is_long() { 20 } else { 1 }
}

#[test]
fn requests_of_an_axum_server_are_those_it_counts() {
    let Some(folder) = trace_processor() else {
        return;
    };
    let fixture = Fixture::new("export-axum");
    let path = fixture.path("axum.rmk");
    let served = record_axum(&fixture, &path);
    let (answered, blocked) = (served.answered, served.blocked);
    let file = export(&path, &[]);
    compare(folder, &decode(std::slice::from_ref(&path)), &file);
    let count = "select count(*), coalesce(sum(int_value), 0) from slice \
        join args using (arg_set_id) where slice.name = ";
    let found = ask(
        folder,
        &file,
        &[
            &format!("{count} 'request' and key = 'debug.number'"),
            &format!("{count} 'request' and key = 'debug.status'"),
            &format!("{count} 'query' and key = 'debug.table'"),
            &format!("{count} 'resize' and key = 'debug.number'"),
        ],
    );
    let numbers = REQUESTS * (REQUESTS - 1) / 2;
    let row = |answer: &[Vec<serde_json::Value>]| [answer[0][0].clone(), answer[0][1].clone()];
    let pair = |count: u64, sum: u64| [count.to_string(), sum.to_string()];
    assert_eq!(row(&found[0]), pair(REQUESTS, numbers));
    assert_eq!(row(&found[1]), pair(answered, 200 * answered));
    assert_eq!(row(&found[2])[0], REQUESTS.to_string());
    let blocking: u64 = (0..REQUESTS).filter(|number| number % 20 == 13).sum();
    assert_eq!(row(&found[3]), pair(blocked, blocking));
    let took = sums(&ask(folder, &file, &[SLICES])[0]);
    let ours = Truth::of(&decode(std::slice::from_ref(&path))).durations;
    assert_eq!(served.spans.len(), 2);
    for said in &served.spans {
        said.compare(&ours);
        said.compare(&took);
    }
    compare_cuts(folder, &fixture, &path, seeds());
}

#[test]
fn calls_of_lua_are_those_it_counts() {
    let Some(folder) = trace_processor() else {
        return;
    };
    let fixture = Fixture::new("export-lua");
    let Some(lua) = record_lua(&fixture) else {
        return;
    };
    let path = lua.trace;
    let file = export(&path, &[]);
    let dump = decode(std::slice::from_ref(&path));
    compare(folder, &dump, &file);
    let answers = ask(folder, &file, &[SLICES, IN_ITSELF]);
    let found = sums(&answers[0]);
    for (name, calls) in LUA_CALLS {
        let shown = found.get(name).map(|(count, _)| *count);
        assert_eq!(shown, Some(calls), "{name}");
    }
    lua.pcalls.compare(&found);
    lua.pcalls.compare(&Truth::of(&dump).durations);
    let in_itself = LUA_DEEP * (LUA_DEEP - 1) / 2;
    assert_eq!(answers[1][0][0], in_itself.to_string());
    compare_cuts(folder, &fixture, &path, seeds());
}

/// A program compiled with gcc, its calls recorded as `options` say.
fn calls(fixture: &Fixture, source: &str, options: &[&str]) -> (Dump, std::path::PathBuf) {
    let program = compile(fixture, source, "program", SITES);
    let path = fixture.path("calls.rmk");
    let mut command: Command = tool(fixture);
    command.args(["run", "--kind", "graph", "--all-functions"]);
    command
        .args(options)
        .arg("-o")
        .arg(&path)
        .arg("--")
        .arg(program);
    let _ = run(&mut command, SOON).expect("it starts");
    (decode(std::slice::from_ref(&path)), path)
}

#[test]
fn calls_lie_in_each_other() {
    let Some(folder) = trace_processor() else {
        return;
    };
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("export-calls");
    let (dump, path) = calls(&fixture, "calls_plain.c", &[]);
    let truth = Truth::of(&dump);
    assert!(truth.durations.len() > 3, "{truth:?}");
    compare(folder, &dump, &export(&path, &[]));
    // A cut by time leaves the long ones, whole.
    let all: BTreeMap<_, _> = shown_by_name(&dump, 2_000);
    let found = ask(folder, &export(&path, &["--min-time", "2us"]), &[SLICES]);
    assert_eq!(sums(&found[0]), all);
}
