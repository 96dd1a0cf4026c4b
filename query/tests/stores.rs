//! Promise: a query has each row of an export once, however much of a store is in tables, and what WHERE leaves unread changes no
//! answer.

mod asked;
#[path = "../../decoder/tests/common/mod.rs"]
mod common;
#[path = "../../fleet/tests/common_store/mod.rs"]
mod common_store;

use std::collections::BTreeMap;

use asked::rows;
use common_store::{COLUMNS, Store, begun, check, is_unended, put, segments, sessions};

/// All rows of both tables, sorted.
fn all(store: &Store) -> Vec<String> {
    let columns = COLUMNS.join(", ");
    let sql = format!("SELECT {columns} FROM spans UNION ALL SELECT {columns} FROM events");
    let mut rows = rows(&store.0, &sql, &COLUMNS);
    rows.sort();
    rows
}

/// The cells of a row, by column.
type Cells<'r> = BTreeMap<&'static str, &'r str>;

/// Those of a row of an export.
fn cells(row: &str) -> Cells<'_> {
    COLUMNS.into_iter().zip(row.split('|')).collect()
}

#[test]
fn rows_are_there_once_at_each_state_of_the_tables() {
    let sent = sessions();
    let store = begun("query", &sent);
    for (number, of) in segments(&sent, 6).iter().enumerate() {
        put(&store, number, of);
        let before = check(&all(&store), &store.scanned(), "segments and tables");
        // What a session left open has a row when it is over, from `compact`.
        assert_eq!(before, 0);
        if number % 2 == 1 {
            store.compact();
            check(&all(&store), &store.scanned(), "tables");
        }
    }
    store.compact_with("compact . --merge --keep-raw 0s");
    let expected: Vec<_> = store.rows();
    assert_eq!(all(&store), expected);
}

#[test]
fn pages_that_wait_are_there_and_counted_once_afterwards() {
    let sent = sessions();
    let store = begun("query-late", &sent);
    let segments = segments(&sent, 6);
    for number in [0, 3, 1] {
        put(&store, number, &segments[number]);
        store.compact();
        check(&all(&store), &store.scanned(), "with a hole");
    }
    for number in [4, 2, 5] {
        put(&store, number, &segments[number]);
        check(&all(&store), &store.scanned(), "late");
    }
    // Some pages again, in a segment of their own.
    put(&store, 7, &segments[1]);
    check(&all(&store), &store.scanned(), "twice");
    store.compact();
    check(&all(&store), &store.scanned(), "all");
}

#[test]
fn answers_are_those_of_a_scan() {
    let sent = sessions();
    for compacted in [0, 3, 6] {
        let store = begun("query-answers", &sent);
        for (number, of) in segments(&sent, 6).iter().enumerate() {
            put(&store, number, of);
            if number + 1 == compacted {
                store.compact();
            }
        }
        let scanned: Vec<_> = store.scanned();
        let found: Vec<_> = scanned.iter().map(|row| cells(row)).collect();
        let is_span = |row: &&BTreeMap<_, &str>| ["span", "call"].contains(&row["kind"]);
        let spans: Vec<_> = found.iter().filter(is_span).collect();
        by_name(&store, &spans);
        since(&store, &spans);
        let events = found.iter().filter(|row| !is_span(row));
        let mut threads: BTreeMap<&str, u64> = BTreeMap::new();
        events.for_each(|row| *threads.entry(row["tid"]).or_default() += 1);
        let threads = threads
            .into_iter()
            .map(|(tid, count)| format!("{tid}|{count}"));
        let mut counted = rows(
            &store.0,
            "SELECT tid, count(*) AS n FROM events GROUP BY tid",
            &["tid", "n"],
        );
        counted.sort();
        assert_eq!(counted, threads.collect::<Vec<_>>());
    }
}

/// The query of the guide, of the whole time.
#[test]
fn the_guides_query_is_answered() {
    let sent = sessions();
    let store = begun("query-guide", &sent);
    for (number, of) in segments(&sent, 3).iter().enumerate() {
        put(&store, number, of);
    }
    store.compact();
    let tables = store.rows();
    let mut calls: BTreeMap<&str, u64> = BTreeMap::new();
    for row in tables.iter().map(|row| cells(row)) {
        if ["span", "call"].contains(&row["kind"]) && !row["ts_ns"].is_empty() {
            *calls.entry(row["name"]).or_default() += 1;
        }
    }
    assert!(!calls.is_empty() && calls.len() <= 20);
    let sql = include_str!("guide.sql").replace("2026-01-31", "1970-01-01");
    let mut found = rows(&store.0, &sql, &["name", "calls"]);
    found.sort();
    let calls = calls.iter().map(|(name, calls)| format!("{name}|{calls}"));
    assert_eq!(found, calls.collect::<Vec<_>>());
}

/// Sums by name, of spans that have ended.
fn by_name(store: &Store, spans: &[&Cells<'_>]) {
    let mut sums: BTreeMap<&str, Vec<i64>> = BTreeMap::new();
    for row in spans.iter().filter(|row| !row["dur_ns"].is_empty()) {
        let took = row["dur_ns"].parse().expect("a number");
        sums.entry(row["name"]).or_default().push(took);
    }
    let expected = sums.into_iter().map(|(name, mut all)| {
        all.sort_unstable();
        let (count, sum) = (all.len(), all.iter().sum::<i64>());
        let (min, max) = (all[0], all[count - 1]);
        let p99 = all[(count * 99).div_ceil(100) - 1];
        assert!(count <= 256, "their quantiles are exact");
        format!("{name}|{count}|{sum}|{min}|{max}|{p99}|{p99}|{p99}")
    });
    let sql = "WITH ranked AS (SELECT *, row_number() OVER (PARTITION BY name ORDER BY dur_ns) AS
            rank, count(*) OVER (PARTITION BY name) AS of FROM spans WHERE dur_ns IS NOT NULL)
        SELECT name, count(*) AS n, sum(dur_ns) AS total, min(dur_ns) AS least, max(dur_ns) AS most,
            p99(dur_ns) AS p99, quantile(dur_ns, 0.99) AS q,
            min(CASE WHEN rank * 100 >= of * 99 THEN dur_ns END) AS exact
        FROM ranked GROUP BY name";
    let columns = ["name", "n", "total", "least", "most", "p99", "q", "exact"];
    let mut found = rows(&store.0, sql, &columns);
    found.sort();
    let mut expected: Vec<_> = expected.collect();
    expected.sort();
    assert_eq!(found, expected);
}

/// Spans that began in each of some windows, with what is around them.
fn since(store: &Store, spans: &[&Cells<'_>]) {
    // What has no end may be there, or not.
    let start = |row: &Cells<'_>| {
        let is_ended = !row["dur_ns"].is_empty() || row["truncated"] == "true";
        row["ts_ns"].parse::<i64>().ok().filter(|_| is_ended)
    };
    let mut starts: Vec<_> = spans.iter().filter_map(|row| start(row)).collect();
    starts.sort_unstable();
    for (from, to) in [(0, 3), (3, 5), (5, 10), (0, 10)] {
        let at = |tenth: usize| starts[(starts.len() - 1) * tenth / 10];
        let (from, to) = (at(from), at(to));
        let is_in = |row: &&&Cells<'_>| start(row).is_some_and(|start| start >= from && start < to);
        let columns: Vec<_> = COLUMNS.into_iter().filter(|name| *name != "args").collect();
        let line = |row: &&Cells<'_>| {
            columns
                .iter()
                .map(|name| row[name])
                .collect::<Vec<_>>()
                .join("|")
        };
        let mut expected: Vec<_> = spans.iter().filter(is_in).map(line).collect();
        expected.sort();
        let sql = format!("SELECT * FROM spans WHERE ts_ns >= {from} AND {to} > ts_ns");
        let mut found = rows(&store.0, &sql, &columns);
        found.retain(|row| !is_unended(row));
        found.sort();
        assert_eq!(found, expected);
    }
}
