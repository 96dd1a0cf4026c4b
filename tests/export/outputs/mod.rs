//! What each output of a trace shows of spans and calls, as rows that can be compared.

pub(crate) mod ours;
pub(crate) mod theirs;
pub(crate) mod truth;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use ringmark_tests::fixture::{Fixture, SOON};
use ringmark_tests::functions::tool;
use ringmark_tests::run;

/// What there is of a name.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) count: u64,
    /// From beginning to end, once where one is in another of its name.
    pub(crate) total_ns: u64,
    /// Without what is inside.
    pub(crate) own_ns: u64,
}

pub(crate) type Rows = BTreeMap<String, Row>;
/// How many of the first name are in the second; in "": in nothing.
pub(crate) type Places = BTreeMap<(String, String), u64>;

pub(crate) fn place(places: &mut Places, name: &str, around: &str, count: u64) {
    *places
        .entry((name.to_owned(), around.to_owned()))
        .or_default() += count;
}

/// What an output shows; `None`: it does not show that.
#[derive(Debug, Default)]
pub(crate) struct Shown {
    pub(crate) counts: Option<BTreeMap<String, u64>>,
    pub(crate) totals: Option<BTreeMap<String, u64>>,
    pub(crate) owns: Option<BTreeMap<String, u64>>,
    pub(crate) places: Option<Places>,
    /// It shows times with three digits.
    pub(crate) is_rounded: bool,
}

impl Shown {
    pub(crate) fn of(rows: &Rows) -> Self {
        let of = |figure: fn(&Row) -> u64| {
            Some(
                rows.iter()
                    .map(|(n, row)| (n.clone(), figure(row)))
                    .collect(),
            )
        };
        Self {
            counts: of(|row| row.count),
            totals: of(|row| row.total_ns),
            owns: of(|row| row.own_ns),
            ..Self::default()
        }
    }
}

/// What a command of ours says about a trace.
fn say(fixture: &Fixture, words: &str, trace: &Path) -> String {
    let mut command = tool(fixture);
    command.args(words.split(' ')).arg(trace);
    finish(&mut command)
}

fn finish(command: &mut Command) -> String {
    let done = run(command, SOON).expect("a program");
    assert!(done.code() <= 1, "{command:?}: {}", done.stderr_text());
    done.stdout_text()
}

fn lines(text: &str) -> impl Iterator<Item = serde_json::Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
}
