//! What others make of our JSON: jq, pandas and DuckDB count, add and order as the program did.

use crate::common;

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use common::player::Player;
use common::{LIMIT, Stage};
use ringmark_decoder::{DumpBuilder, Output};
use ringmark_tests::json_schema::checked;
use ringmark_tests::run;
use ringmark_tests::tools::does;

/// Turns of both programs together.
const TURNS: u64 = 200;

/// Whether a program can be run; if it cannot, that is told, and the test is left out. They are
/// optional: nothing else here needs them.
/// What is in the trace files, by the decoder itself: distinct spans, and the sum of durations.
fn truth(stage: &Stage, files: &[&str]) -> (usize, u64) {
    let mut builder = DumpBuilder::new();
    for file in files {
        let input = fs::File::open(stage.path(file)).unwrap();
        builder.read(file, input).unwrap();
    }
    let dump = builder.finish();
    let (mut spans, mut total) = (BTreeSet::new(), 0);
    dump.events().for_each(|item| {
        if let Output::Event(event) = item {
            spans.extend(event.span.map(|id| (event.session.uuid, id)));
            total += event.duration_ns().unwrap_or(0);
        }
    });
    (spans.len(), total)
}

const PANDAS: &str = r#"
import json, sys, pandas
lines = pandas.read_json(sys.argv[1], lines=True, dtype=False)
places = lines[lines.name == "emitter.place"].sort_values("ts_ns")
large = lines[lines.name == "emitter.large"]
print(lines.groupby("session").span.nunique().sum(), int(lines.dur_ns.sum()), lines.flow.nunique(),
      large.args.map(lambda a: a["hash"]).nunique(), [a["n"] for a in places.args])
# Whatever pandas makes of columns of digits when it guesses types, spans, flows and ts stay.
guessed = pandas.read_json(sys.argv[1], lines=True)
assert guessed.groupby("session").span.nunique().sum() == lines.groupby("session").span.nunique().sum()
assert guessed.flow.nunique() == lines.flow.nunique() and (guessed.ts == lines.ts).all()
"#;

const DUCKDB: &str = r#"
import duckdb, sys
lines = duckdb.read_json(sys.argv[1])
one = lambda sql: duckdb.sql(sql).fetchall()[0][0]
places = duckdb.sql("select args.n from lines where name = 'emitter.place' order by ts_ns::BIGINT").fetchall()
print(one("select count(distinct (session, span)) from lines where span is not null"),
      one("select sum(dur_ns) from lines"), one("select count(distinct flow) from lines"),
      one("select count(distinct args.hash) from lines"), [n for (n,) in places])
kinds = duckdb.sql("select typeof(any_value(dur_ns)), typeof(any_value(span)), typeof(any_value(ts_ns)) from lines")
assert kinds.fetchall() == [("BIGINT", "VARCHAR", "VARCHAR")], kinds
"#;

/// jq 1.6 rounds integers beyond 2^53: those are taken from `exact`.
const JQ: &str = r#"
"\([.[] | select(.span) | [.session, .span]] | unique | length) \([.[].dur_ns | select(.)] | add) \
\([.[].flow | select(.)] | unique | length) \([.[].exact.hash? | select(.)] | unique | length) \
[\([.[] | select(.name == "emitter.place")] | sort_by(.ts_ns) | map(.args.n | tostring) | join(", "))]"
"#;

#[test]
fn jq_pandas_and_duckdb_find_what_the_programs_did() {
    let modules = "import pandas, duckdb";
    let python = does("python3", &["-c", modules]);
    let jq = does("jq", &["--version"]);
    let stage = Stage::new("json-readers");
    let mut players = [Player::start(&stage), Player::start(&stage)];
    for n in 0..TURNS {
        players[(n % 3 / 2) as usize].play(&n.to_string());
        // Far more than the error between the clocks of two sessions.
        std::thread::sleep(Duration::from_millis(1));
    }
    let files = ["a.rmk", "b.rmk"];
    for (player, file) in players.iter().zip(files) {
        let pid = player.id().to_string();
        let _ = stage
            .run(&["snapshot", "-p", &pid, "-o", file])
            .expect_code(0);
    }
    let lines = stage
        .run(&["cat", "b.rmk", "a.rmk", "--json"])
        .expect_code(0);
    let text = lines.stdout_text();
    let objects = checked(&text);
    let sessions: BTreeSet<_> = objects.iter().map(|o| o["session"].as_str()).collect();
    assert_eq!(sessions.len(), 2);
    // The readers put them in order.
    let reversed: Vec<_> = text.lines().rev().collect();
    fs::write(stage.path("lines.jsonl"), reversed.join("\n") + "\n").unwrap();
    let (spans, total_ns) = truth(&stage, &files);
    assert_eq!(spans as u64, TURNS);
    let order: Vec<_> = (0..TURNS).map(|n| n.to_string()).collect();
    let order = order.join(", ");
    let expected = format!("{spans} {total_ns} {TURNS} {TURNS} [{order}]\n");
    let read = |program: &str, arguments: &[&str]| {
        let mut command = stage.command(program);
        let done = run(command.args(arguments).arg("lines.jsonl"), LIMIT).unwrap();
        done.expect_code(0).stdout_text()
    };
    if jq {
        let filter = JQ.replace("\\\n", "");
        assert_eq!(read("jq", &["-rs", filter.trim()]), expected, "jq");
    }
    if python {
        assert_eq!(read("python3", &["-c", PANDAS]), expected, "pandas");
        assert_eq!(read("python3", &["-c", DUCKDB]), expected, "DuckDB");
    }
}
