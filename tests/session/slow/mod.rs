//! What the tests of slow spans share: fates at random, what `report` says, and what an independent
//! script sums up.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;
use std::time::Duration;

use ringmark_tests::fixture::Fixture;
use ringmark_tests::json_schema::checked;
use ringmark_tests::random::Random;
use ringmark_tests::{Finished, binary, run, workspace_root};
use serde_json::Value;

/// On a machine on which much else runs.
const LONG: Duration = Duration::from_secs(300);
/// Requests among which one is slow; that many times as often one is cancelled or blocks.
const REQUESTS_PER_SLOW: u64 = 1000;
const OFTEN: u64 = 20;

/// What becomes of each request, as a letter.
pub(crate) struct Fates {
    pub(crate) seed: u64,
    pub(crate) text: String,
}

impl Fates {
    /// That many, at least one of them slow. The seed is printed.
    pub(crate) fn at_random(count: usize) -> Self {
        let seed = Random::seeded().below(u64::MAX);
        let mut random = Random::from_seed(seed);
        let letter = |n| match n {
            0 => 's',
            n if n <= OFTEN => 'c',
            n if n <= 2 * OFTEN => 'b',
            _ => 'q',
        };
        let mut text: String = (1..count)
            .map(|_| letter(random.below(REQUESTS_PER_SLOW)))
            .collect();
        text.insert(random.below(count as u64) as usize, 's');
        Self { seed, text }
    }

    pub(crate) fn len(&self) -> usize {
        self.text.len()
    }

    /// The numbers of those with this letter.
    pub(crate) fn of(&self, letter: char) -> Vec<u64> {
        let all = (0..).zip(self.text.chars());
        all.filter(|(_, l)| *l == letter).map(|(n, _)| n).collect()
    }
}

pub(crate) fn run_it(command: &mut Command) -> Finished {
    run(command, LONG).expect("it starts")
}

/// The tool with these words, then the trace file.
pub(crate) fn tool(fixture: &Fixture, words: &[&str]) -> Finished {
    let mut command = fixture.command(binary::path());
    command.args(words).arg(fixture.path("a.rmk"));
    run_it(&mut command)
}

/// The slowest spans that these words let pass.
pub(crate) fn report(fixture: &Fixture, words: &[&str], fates: &Fates) -> Vec<Value> {
    let most = fates.len().to_string();
    let all = [&["report", "--json", "--slowest", &most], words].concat();
    let done = tool(fixture, &all).expect_code(0);
    let spans = checked(&done.stdout_text());
    let took: Vec<_> = spans.iter().map(|span| span["dur_ns"].as_u64()).collect();
    assert!(took.is_sorted_by(|a, b| a >= b), "the slowest first");
    spans
}

/// The lines that the command shows that `report` named.
pub(crate) fn lines_of(fixture: &Fixture, span: &Value) -> String {
    let words: Vec<_> = span["lines"]
        .as_array()
        .expect("a command")
        .iter()
        .collect();
    assert_eq!(words[0], "ringmark");
    let mut command = fixture.command(binary::path());
    command.args(words[1..].iter().map(|word| word.as_str().expect("a text")));
    run_it(&mut command).expect_code(0).stdout_text()
}

/// Count, sum, least and most of each name by an independent script; `report` says the same.
pub(crate) fn expect_sums(fixture: &Fixture, names: &[&str]) -> BTreeMap<String, [u64; 4]> {
    let raw = tool(fixture, &["cat", "--json", "--raw"]).expect_code(0);
    fs::write(fixture.path("raw.jsonl"), raw.stdout_text()).expect("a file");
    let mut python = Command::new("python3");
    python.arg(workspace_root().join("tests/independent/span_sums.py"));
    python.stdin(fs::File::open(fixture.path("raw.jsonl")).expect("the lines"));
    let sums = python.output().expect("python3");
    assert!(sums.status.success(), "{sums:?}");
    let sums: BTreeMap<String, [u64; 4]> = serde_json::from_slice(&sums.stdout).expect("sums");
    let rows = tool(fixture, &["report", "--json"]).expect_code(0);
    let rows = checked(&rows.stdout_text());
    let rows = rows
        .iter()
        .filter(|row| row["of"] == "span" || row["of"] == "function");
    let found = rows.map(|row| {
        let figures = ["count", "total_ns", "min_ns", "max_ns"];
        let figures = figures.map(|key| row[key].as_u64().expect(key));
        (row["name"].as_str().expect("a name").to_owned(), figures)
    });
    let found: BTreeMap<_, _> = found.collect();
    for name in names {
        assert!(sums.contains_key(*name), "no {name} in {sums:?}");
    }
    for (name, expected) in &sums {
        assert_eq!(found.get(name), Some(expected), "{name}");
    }
    expect_spans_in_json(fixture, &sums);
    sums
}

/// The spans of `cat --json`, which Ringmark put together, have the same sums.
fn expect_spans_in_json(fixture: &Fixture, sums: &BTreeMap<String, [u64; 4]>) {
    let lines = tool(fixture, &["cat", "--json"])
        .expect_code(0)
        .stdout_text();
    let (some, _) = lines.split_at(lines.match_indices('\n').nth(1000).map_or(0, |(at, _)| at));
    let _ = checked(some);
    let mut found: BTreeMap<String, [u64; 2]> = BTreeMap::new();
    for line in lines.lines() {
        let object: Value = serde_json::from_str(line).expect("JSON");
        if object["kind"] == "span" {
            let name = object["name"].as_str().expect("a name").to_owned();
            let sum = found.entry(name).or_default();
            let id = object["span"].as_str();
            let is_id = |id: &str| id.len() == 18 && id.starts_with("0x");
            assert!(id.is_none_or(is_id), "{line}");
            sum[0] += 1;
            sum[1] += object["dur_ns"].as_u64().expect("a duration");
        }
    }
    for (name, [count, total]) in found {
        assert_eq!([count, total], sums[&name][..2], "{name}");
    }
}
