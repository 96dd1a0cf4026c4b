//! Promise: `export --format csv` has what `cat --json` shows of the same choice, as rows: spans over page bounds,
//! calls, losses, what began before the chosen time, what is open at the end; and the sums of `report --by` are
//! those of the rows.

use crate::common;
#[path = "scanned/expected.rs"]
mod expected;
#[path = "scanned/table.rs"]
mod table;

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use common::random_trace::{RandomTrace, Step};
use common::session_header;
use expected::{Expected, Shown};
use ringmark_decoder::{BlockReader, Item};
use ringmark_format::Uuid;
use ringmark_format::attribute::{self, tag};
use ringmark_format::block::kind;
use ringmark_format::codec::write;
use ringmark_format::session::Mode;
use ringmark_tests::fixture::{Fixture, SOON};
use ringmark_tests::random::Random;
use ringmark_tests::tools::log_skip;
use ringmark_tests::{Finished, ringmark, run};
use serde_json::Value;
use table::Table;
use zerocopy::IntoBytes;

const HOSTS: [&str; 3] = ["web-1", "web-2", "db, the \"first\""];

/// Trace files of three hosts, with two threads each.
fn stage(name: &str, steps: usize) -> Fixture {
    let fixture = Fixture::new(name);
    let mut random = Random::from_seed(19);
    for (number, host) in HOSTS.iter().enumerate() {
        let step = |_| -> Step {
            let [slot, ticks, kind, n] = [2, 2000, 14, 8].map(|end| random.below(end));
            (slot as u8, ticks as u16, kind as u8, n as u8)
        };
        let steps: Vec<Step> = (0..steps).map(step).collect();
        let trace = RandomTrace::new(Mode::Discard, 2, 0).finish(&steps, true);
        let file = fixture.path(&format!("{number}.rmk"));
        fs::write(file, of_host(&trace, number as u8, host)).expect("a trace file");
    }
    fixture
}

/// The same trace as that of a session of its own, on a host.
fn of_host(trace: &[u8], number: u8, host: &str) -> Vec<u8> {
    let uuid = Uuid([number + 1; 16]);
    let (mut out, mut reader) = (Vec::new(), BlockReader::new("a trace", trace));
    while let Some(item) = reader.next_item() {
        let Item::Block(block) = item else {
            panic!("{item:?}");
        };
        let mut header = block.header;
        header.session = uuid.0;
        if header.kind != kind::SESSION {
            write::block(&mut out, header, block.content).unwrap();
            continue;
        }
        let mut session = session_header(Mode::Discard);
        (session.session, session.pid) = (uuid.0, 100 + u32::from(number));
        let mut attributes = Vec::new();
        attribute::push(&mut attributes, tag::PROCESS_NAME, b"=server");
        attribute::push(&mut attributes, tag::HOST, host.as_bytes());
        let service = if number == 0 { "shop" } else { "store" };
        attribute::push(&mut attributes, tag::SERVICE_NAME, service.as_bytes());
        session.attributes_bytes = attributes.len() as u32;
        let content = [session.as_bytes(), &attributes].concat();
        write::session(&mut out, uuid, &content).unwrap();
    }
    out
}

/// Runs the tool over all files; random traces have losses, so 1 is fine.
fn ask(fixture: &Fixture, words: &str) -> Finished {
    let mut command = ringmark();
    command
        .current_dir(fixture.path("."))
        .args(words.split(' '));
    let done = run(command.args(["0.rmk", "1.rmk", "2.rmk"]), SOON).expect("the tool");
    assert!(done.code() <= 1, "{words}: {}", done.stderr_text());
    done
}

fn objects(fixture: &Fixture, words: &str) -> Vec<Value> {
    let lines = ask(fixture, words).stdout_text();
    let objects = lines
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"));
    objects.collect()
}

fn scan(fixture: &Fixture, words: &str) -> (Table, String) {
    table(
        fixture,
        format!("export --format csv -o - {words}").trim_end(),
    )
}

fn table(fixture: &Fixture, words: &str) -> (Table, String) {
    let done = ask(fixture, words);
    (Table::read(&done.stdout_text()), done.stderr_text())
}

/// A time of the traces, which begin at 0 and last for some ms.
const FROM: u64 = 600_000;
const TO: u64 = 1_400_000;

#[test]
fn rows_are_what_cat_shows() {
    let fixture = stage("scanned-rows", 3000);
    let window = format!("--from {FROM}ns --to {TO}ns");
    for (words, from) in [("", 0), (&window[..], FROM)] {
        let (table, said) = scan(&fixture, words);
        let cat = objects(&fixture, format!("cat --json {words}").trim_end());
        let expected = Expected::of(&cat, from);
        let mut rows: Vec<Shown> = table.rows().map(|row| Shown::of_row(&row)).collect();
        // `cat` shows nothing for a span without a beginning.
        let nameless = rows.iter().filter(|row| row.is_end()).count();
        rows.retain(|row| !row.is_end());
        assert_eq!(rows.len(), expected.rows.len(), "{words}");
        rows.sort();
        for (found, expected) in rows.iter().zip(&expected.rows) {
            assert_eq!(found, expected, "{words}");
        }
        let raw = objects(&fixture, format!("cat --json --raw {words}").trim_end());
        let closes = raw.iter().filter(|o| o["kind"] == "span_close").count();
        assert_eq!(closes, expected.entered + nameless, "{words}");
        let entered = expected.entered;
        // Pages that are gone held beginnings; those before the window are known.
        let has_nameless = nameless > 0 || from > 0;
        assert!(entered > 10 && has_nameless, "{words}: {entered}");
        let truncated = rows.iter().filter(|row| row.is_truncated()).count();
        assert!(truncated > 5, "{words}: {truncated}");
        let lost = table.sum("lost_before") + number_before(&said, " lost after the last row");
        assert_eq!(lost, expected.lost, "{words}: {said}");
        assert!(expected.lost > 10);
        assert!(said.contains("open at the end"), "{said}");
    }
}

/// The number of events that a notice has before these words.
fn number_before(said: &str, words: &str) -> u64 {
    let Some((before, _)) = said.split_once(words) else {
        return 0;
    };
    let line = before.lines().last().unwrap_or_default();
    let digits = line
        .split(' ')
        .find(|word| word.starts_with(|c: char| c.is_ascii_digit()));
    digits
        .expect("a number")
        .replace(',', "")
        .parse()
        .expect("a number")
}

#[test]
fn a_choice_is_the_rows_that_pass() {
    let fixture = stage("scanned-choice", 2000);
    let (all, _) = scan(&fixture, "");
    type Passes = fn(&BTreeMap<String, String>) -> bool;
    let choices: [(&str, Passes); 6] = [
        ("--host web-*", |row| row["host"].starts_with("web-")),
        ("--service shop", |row| row["service"] == "shop"),
        ("--tid 71", |row| row["tid"] == "71"),
        ("--name tick", |row| row["name"] == "tick"),
        ("--where n=3", |_| false),
        ("--where took>1us", |row| {
            row["dur_ns"].parse().is_ok_and(|ns: u64| ns > 1000)
        }),
    ];
    let keys = |table: &Table, passes: Passes| {
        let key = |row: &BTreeMap<String, String>| {
            ["session", "ring", "page", "idx", "name", "dur_ns"].map(|key| row[key].clone())
        };
        let rows = table.rows().filter(passes).map(|row| key(&row));
        let mut rows: Vec<_> = rows.collect();
        rows.sort();
        rows
    };
    for (words, passes) in choices {
        let (chosen, _) = scan(&fixture, words);
        let (found, expected) = (keys(&chosen, |_| true), keys(&all, passes));
        // What a window of threads leaves out is no beginning of a call either.
        assert_eq!(found, expected, "{words}");
        assert!(words.contains("n=3") || found.len() > 20, "{words}");
    }
    // The arguments of named events are columns.
    let (named, _) = scan(&fixture, "--name tick");
    assert!(
        named.header.contains(&"arg_n".to_owned()),
        "{:?}",
        named.header
    );
    for row in named.rows() {
        assert!(row["arg_n"].parse::<u64>().is_ok() && row["args"].is_empty());
    }
    // A text that a spreadsheet would calculate is a text.
    let threads = |row: BTreeMap<String, String>| row["thread"].clone();
    assert!(all.rows().map(threads).all(|name| name == "worker"));
    let (file, _) = table(&fixture, "export --format csv -o out.csv");
    assert!(file.header.is_empty(), "nothing on standard output");
    let written = fs::read_to_string(fixture.path("out.csv")).expect("the file");
    assert_eq!(Table::read(&written).rows().count(), all.rows().count());
}

/// Rank by rank, as the definition has it.
fn nearest_rank(sorted: &[u64], percent: usize) -> u64 {
    sorted[(sorted.len() * percent).div_ceil(100).max(1) - 1]
}

#[test]
fn sums_are_those_of_the_rows() {
    let fixture = stage("scanned-sums", 4000);
    let (all, _) = scan(&fixture, "");
    let mut groups: BTreeMap<[String; 2], (u64, Vec<u64>)> = BTreeMap::new();
    for row in all.rows() {
        let key = [row["host"].clone(), row["name"].clone()];
        let group = groups.entry(key).or_default();
        group.0 += 1;
        group.1.extend(row["dur_ns"].parse::<u64>());
    }
    let (sums, _) = table(&fixture, "report --by host,name --csv --sort p99");
    assert_eq!(sums.rows().count(), groups.len());
    let mut before = u64::MAX;
    for row in sums.rows() {
        let (rows, durations) = &mut groups
            .get_mut(&[row["host"].clone(), row["name"].clone()])
            .unwrap();
        durations.sort_unstable();
        let number = |key: &str| row[key].parse::<u64>().ok();
        assert_eq!(number("rows"), Some(*rows));
        assert_eq!(number("count"), Some(durations.len() as u64));
        assert_eq!(number("sum_ns").unwrap_or(0), durations.iter().sum::<u64>());
        assert_eq!(number("min_ns"), durations.first().copied());
        assert_eq!(number("max_ns"), durations.last().copied());
        for (key, percent) in [("p50_ns", 50), ("p90_ns", 90), ("p99_ns", 99)] {
            let Some(found) = number(key) else { continue };
            let exact = nearest_rank(durations, percent);
            assert!(
                found.abs_diff(exact) as f64 <= 0.004 * exact as f64,
                "{row:?} {exact}"
            );
        }
        let p99 = number("p99_ns").unwrap_or(0);
        assert!(p99 <= before, "the greatest first");
        before = p99;
    }
    let (hist, _) = table(&fixture, "report --by host,name --hist");
    for row in hist.rows() {
        let (_, durations) = &groups[&[row["host"].clone(), row["name"].clone()]];
        let [from, to, count] =
            ["from_ns", "to_ns", "count"].map(|key| row[key].parse::<u64>().unwrap());
        let inside = durations
            .iter()
            .filter(|ns| (from..=to).contains(*ns))
            .count();
        assert_eq!(inside as u64, count, "{row:?}");
    }
    let held: usize = groups.values().map(|(_, durations)| durations.len()).sum();
    assert_eq!(hist.sum("count"), held as u64);
}

#[test]
fn sums_are_by_the_columns_that_are_named() {
    let fixture = stage("scanned-columns", 2000);
    let (all, _) = scan(&fixture, "");
    let (top, _) = table(&fixture, "report --by name --csv -n 2");
    assert_eq!(top.rows().count(), 2);
    let sum = |row: BTreeMap<String, String>| row["sum_ns"].parse::<u64>().unwrap();
    let longest = groups_by_name(&all).into_iter().rev().take(2);
    assert_eq!(
        top.rows().map(sum).collect::<Vec<_>>(),
        longest.collect::<Vec<_>>()
    );
    let shown = ask(&fixture, "report --by name -n 2").stdout_text();
    let first = top.rows().next().expect("a group");
    let is_shown = |line: &str| line.starts_with(&format!("{} ", first["name"]));
    assert!(shown.lines().any(is_shown), "{shown}");
    let (by_argument, _) = table(&fixture, "report --by n --csv --name tick");
    assert!(by_argument.header.contains(&"arg_n".to_owned()));
    assert_eq!(
        by_argument.sum("rows"),
        scan(&fixture, "--name tick").0.rows().count() as u64
    );
}

/// How long the spans and calls of each name took together, the shortest sum first.
fn groups_by_name(all: &Table) -> Vec<u64> {
    let mut sums: BTreeMap<String, u64> = BTreeMap::new();
    for row in all.rows() {
        *sums.entry(row["name"].clone()).or_default() += row["dur_ns"].parse().unwrap_or(0);
    }
    let mut sums: Vec<_> = sums.into_values().collect();
    sums.sort_unstable();
    sums
}

const DUCKDB: &str = r#"
import duckdb, sys
rows = duckdb.read_csv(sys.argv[1])
one = lambda sql: duckdb.sql(sql).fetchall()
print(one("select count(*), count(dur_ns), sum(dur_ns), min(dur_ns), max(dur_ns), sum(lost_before) from rows"))
print(one("select typeof(ts_ns), typeof(dur_ns), typeof(truncated), typeof(host), typeof(tid) from rows limit 1"))
"#;

#[test]
fn duckdb_reads_the_table() {
    let is_there = Command::new("python3")
        .args(["-c", "import duckdb"])
        .output();
    if !is_there.is_ok_and(|done| done.status.success()) {
        return log_skip("scanned: needs python3 with duckdb");
    }
    let fixture = stage("scanned-duckdb", 2000);
    let (all, _) = scan(&fixture, "");
    let _ = table(&fixture, "export --format csv -o rows.csv");
    let mut python = fixture.command("python3");
    python.args(["-c", DUCKDB]).arg(fixture.path("rows.csv"));
    let found = run(&mut python, SOON)
        .expect("python3")
        .expect_code(0)
        .stdout_text();
    let durations: Vec<u64> = all
        .rows()
        .filter_map(|row| row["dur_ns"].parse().ok())
        .collect();
    let expected = format!(
        "[({}, {}, {}, {}, {}, {})]\n[('BIGINT', 'BIGINT', 'BOOLEAN', 'VARCHAR', 'BIGINT')]\n",
        all.rows().count(),
        durations.len(),
        durations.iter().sum::<u64>(),
        durations.iter().min().unwrap(),
        durations.iter().max().unwrap(),
        all.sum("lost_before"),
    );
    assert_eq!(found, expected);
}
