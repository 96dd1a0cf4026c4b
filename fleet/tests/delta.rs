//! Promise: DuckDB and delta-rs read the tables by their logs, and find the rows that the logs name, even
//! where other files lie beside them.

#[path = "../../decoder/tests/common/mod.rs"]
mod common;
mod common_store;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use common_store::{Sent, Store, said};

/// Prints rows, sum of durations and sum of starts of spans and events.
const DUCKDB: &str = r#"
import duckdb, glob, os, sys
import duckdb_extension_delta as of
db = duckdb.connect(config={"allow_unsigned_extensions": "true"})
places = glob.glob(os.path.join(os.path.dirname(of.__file__), "**", "delta.duckdb_extension"), recursive=True)
db.sql(f"LOAD '{places[0]}'")
for table in sys.argv[1:]:
    took = "0" if table.endswith("losses") else "coalesce(sum(dur_ns), 0)"
    print(*db.sql(f"""select count(*), {took}, sum(ts_ns), min(date)
        from delta_scan('{table}')""").fetchall()[0])
"#;

/// Prints names and calls as the guide's query does, of the first host.
const GUIDE: &str = r#"
import duckdb, glob, os, sys
import duckdb_extension_delta as of
db = duckdb.connect(config={"allow_unsigned_extensions": "true"})
places = glob.glob(os.path.join(os.path.dirname(of.__file__), "**", "delta.duckdb_extension"), recursive=True)
db.sql(f"LOAD '{places[0]}'")
host = db.sql(f"select min(host) from delta_scan('{sys.argv[1]}')").fetchall()[0][0]
query = open("tests/guide.sql").read().replace("/srv/traces/tables/spans", sys.argv[1])
query = query.replace("2026-01-31", "2026-11-21").replace("web-1", host)
for name, calls, _, _ in db.sql(query).fetchall():
    print(host, calls, name, sep="\t")
"#;

const DELTA_RS: &str = r#"
import sys
from deltalake import DeltaTable
for table in sys.argv[1:]:
    table = DeltaTable(table)
    print(sum(table.get_add_actions(flatten=True)["num_records"].to_pylist()), table.version())
"#;

fn python(needs: &str, script: &str, store: &Store) -> Option<String> {
    let there = Command::new("python3").args(["-c", needs]).output();
    if !there.is_ok_and(|done| done.status.success()) {
        println!("left out: needs python3 with '{needs}'");
        return None;
    }
    let tables = ["spans", "events", "losses"].map(|table| store.0.join("tables").join(table));
    let done = Command::new("python3")
        .args(["-c", script])
        .args(tables)
        .output();
    let done = done.expect("python3");
    assert!(done.status.success(), "{}", said(&done));
    Some(String::from_utf8(done.stdout).expect("UTF-8"))
}

fn store(name: &str) -> Store {
    let sent = Sent::new(41, 3000);
    let store = Store::new(name);
    store.begin(&sent);
    let half = sent.pages.len() / 2;
    let first = [sent.pages[..half].concat(), sent.counters(half - 1)].concat();
    store.segment(0, &[(&sent, &first)]);
    store.compact();
    let second = [sent.pages[half..].concat(), sent.end.clone()].concat();
    store.segment(1, &[(&sent, &second)]);
    store.compact();
    store
}

/// Rows and sums of each table, by the files of its log.
fn expected(store: &Store) -> Vec<(usize, i64, i128)> {
    use arrow_array::cast::AsArray;
    use arrow_array::types::Int64Type;
    let sums = ["spans", "events", "losses"].map(|table| {
        let (mut rows, mut durations, mut starts) = (0, 0, 0);
        for batch in store
            .files(table)
            .iter()
            .flat_map(|file| common_store::batches(file))
        {
            rows += batch.num_rows();
            let sum = |name: &str| {
                let column = batch.column_by_name(name);
                let values = column.map(|column| column.as_primitive::<Int64Type>());
                values.map_or(0, |values| {
                    values.iter().flatten().map(i128::from).sum::<i128>()
                })
            };
            durations += sum("dur_ns") as i64;
            starts += sum("ts_ns");
        }
        (rows, durations, starts)
    });
    sums.to_vec()
}

/// How many rows the table of spans has of each name of a host.
fn calls_of(store: &Store, host: &str) -> BTreeMap<String, u64> {
    let mut calls = BTreeMap::new();
    for batch in store
        .files("spans")
        .iter()
        .flat_map(|file| common_store::batches(file))
    {
        let column = |name: &str| batch.column_by_name(name).expect(name).clone();
        let (names, hosts) = (column("name"), column("host"));
        for row in (0..batch.num_rows()).filter(|row| common_store::cell(&hosts, *row) == host) {
            *calls.entry(common_store::cell(&names, row)).or_default() += 1;
        }
    }
    calls
}

#[test]
fn the_query_of_the_guide_counts_calls() {
    let store = store("guide");
    let Some(found) = python("import duckdb, duckdb_extension_delta", GUIDE, &store) else {
        return;
    };
    let rows = found
        .lines()
        .map(|line| line.split('\t').collect::<Vec<_>>());
    let rows: Vec<_> = rows.collect();
    let host = rows.first().expect("a row")[0];
    let calls = calls_of(&store, host);
    assert_eq!(rows.len(), calls.len().min(20), "{rows:?}");
    for row in &rows {
        assert_eq!(row[1].parse(), Ok(calls[row[2]]), "{row:?}");
    }
}

#[test]
fn engines_read_what_the_logs_name() {
    let store = store("engines");
    // What a killed run leaves: a file that no log names.
    let file = store.files("spans").remove(0);
    fs::copy(&file, file.with_file_name("orphan.parquet")).expect("a copy");
    compare(&store);
    let before = store.files("spans").len();
    store.compact_with("compact . --merge");
    assert!(store.files("spans").len() < before, "nothing was merged");
    compare(&store);
}

/// Gives each log versions that change nothing, up to this one.
fn versions_up_to(store: &Store, last: usize) {
    for table in ["spans", "events", "losses"] {
        let log = store.0.join("tables").join(table).join("_delta_log");
        for version in common_store::below(&log)..=last {
            let nothing = r#"{"commitInfo":{"timestamp":0,"operation":"WRITE"}}"#;
            fs::write(log.join(format!("{version:020}.json")), nothing).expect("a version");
        }
    }
}

#[test]
fn engines_read_a_checkpoint_in_place_of_a_hundred_versions() {
    let store = store("checkpoint");
    store.compact_with("compact . --merge");
    versions_up_to(&store, 98);
    store.compact();
    let logs = ["spans", "events", "losses"]
        .map(|table| store.0.join("tables").join(table).join("_delta_log"));
    let is_due = || logs.iter().all(|log| log.join("_last_checkpoint").exists());
    assert!(!is_due());
    versions_up_to(&store, 103);
    store.compact();
    assert!(is_due());
    let expected = expected(&store);
    compare_with(&store, &expected);
    let first = |log: &Path| {
        (0..=100)
            .map(|version| log.join(format!("{version:020}.json")))
            .collect::<Vec<_>>()
    };
    for version in logs.iter().flat_map(|log| first(log)) {
        fs::remove_file(version).expect("a version");
    }
    compare_with(&store, &expected);
    // It goes on without them, too.
    let said = store.compact();
    assert!(said.contains("0 rows of 0 segments"), "{said}");
    let listed = store.command("store files .").output().expect("it runs");
    assert_eq!(String::from_utf8_lossy(&listed.stdout).lines().count(), 1);
}

/// Compares what engines find with what the files of the logs hold.
fn compare(store: &Store) {
    compare_with(store, &expected(store));
}

/// The same, with what is expected of each table.
fn compare_with(store: &Store, expected: &[(usize, i64, i128)]) {
    assert!(expected.iter().all(|of| of.0 > 0), "{expected:?}");
    if let Some(found) = python("import duckdb, duckdb_extension_delta", DUCKDB, store) {
        let lines: Vec<_> = found.lines().collect();
        for (line, (rows, durations, starts)) in lines.iter().zip(expected) {
            let cells: Vec<_> = line.split(' ').collect();
            assert_eq!(
                cells[..3],
                [rows.to_string(), durations.to_string(), starts.to_string()]
            );
            assert_eq!(cells[3], "2026-11-21");
        }
        assert_eq!(lines.len(), 3);
    }
    if let Some(found) = python("import deltalake", DELTA_RS, store) {
        let rows = found
            .lines()
            .map(|line| line.split(' ').next().unwrap_or_default());
        let rows: Vec<_> = rows
            .map(|rows| rows.parse::<usize>().expect("a number"))
            .collect();
        let wanted: Vec<_> = expected.iter().map(|of| of.0).collect();
        assert_eq!(rows, wanted);
    }
}
