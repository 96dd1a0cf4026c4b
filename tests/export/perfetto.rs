//! Promise: Perfetto's trace processor finds in an export what the programs did and what our decoder
//! finds: counts, names, arguments, durations, depths, threads, losses.

mod pictured;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use pictured::{Truth, pages_removed, shown_by_name, sums};
use ringmark_decoder::Dump;
use ringmark_tests::fixture::{Fixture, SOON};
use ringmark_tests::functions::{SITES, compile, tool};
use ringmark_tests::recording::decode;
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
/// Events that are not here, over all threads and processes.
const LOST: &str = "select cast(coalesce(sum(most), 0) as int) from (select max(value) as most from counter c \
    join track t on t.id = c.track_id where t.name = 'events not here' group by c.track_id)";
const THREADS: &str = "select distinct coalesce(thread.name, '') from thread join thread_track using (utid) order by 1";

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
    let program = env!("CARGO_BIN_EXE_orders");
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

#[test]
fn every_page_that_is_missing_is_counted() {
    let Some(folder) = trace_processor() else {
        return;
    };
    let fixture = Fixture::new("export-pages");
    let program = env!("CARGO_BIN_EXE_orders");
    let _ = record(&fixture, program, &["3", "400"], "whole.rmk");
    let whole = std::fs::read(fixture.path("whole.rmk")).expect("a trace file");
    let seeds = if is_long() { 20 } else { 2 };
    let mut cuts: Vec<_> = (1..=seeds).map(Some).collect();
    cuts.push(None);
    let mut missing = 0;
    for seed in cuts {
        let path = fixture.path("cut.rmk");
        std::fs::write(&path, pages_removed(&whole, seed)).expect("a trace file");
        let dump = decode(std::slice::from_ref(&path));
        missing += dump.verify().missing;
        compare(folder, &dump, &export(&path, &[]));
    }
    assert!(missing > 0);
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
