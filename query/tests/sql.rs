//! Promise: SQL reads the store and nothing else, answers in three formats, and says what is wrong with a question.

mod asked;
#[path = "../../decoder/tests/common/mod.rs"]
mod common;
#[path = "../../fleet/tests/common_store/mod.rs"]
mod common_store;

use std::fs;

use asked::{program, refused, rows};
use common_store::{Store, begun, below, put, segments, sessions};

fn store(name: &str) -> Store {
    let sent = sessions();
    let store = begun(name, &sent);
    for (number, of) in segments(&sent, 3).iter().enumerate() {
        put(&store, number, of);
        if number == 1 {
            store.compact();
        }
    }
    store
}

#[test]
fn nothing_is_changed_and_no_other_file_is_read() {
    let store = store("query-hostile");
    fs::write(store.0.join("secret.csv"), "a\n1\n").expect("a file");
    let before = below(&store.0);
    let secret = store.0.join("secret.csv").display().to_string();
    for sql in [
        "DROP TABLE spans",
        "DROP VIEW spans",
        "CREATE TABLE t AS SELECT 1",
        "CREATE VIEW v AS SELECT 1",
        "CREATE OR REPLACE TABLE spans AS SELECT 1",
        "INSERT INTO spans SELECT * FROM spans",
        "DELETE FROM spans",
        "UPDATE spans SET name = 'x'",
        "COPY spans TO 'out.parquet'",
        "COPY (SELECT 1) TO 'out.csv' STORED AS CSV",
        &format!("CREATE EXTERNAL TABLE t STORED AS CSV LOCATION '{secret}'"),
        "SET datafusion.execution.batch_size = 1",
        "PREPARE p AS SELECT 1",
        "BEGIN",
        &format!("SELECT * FROM '{secret}'"),
        &format!("SELECT * FROM read_csv('{secret}')"),
        "SELECT * FROM 'tables/spans'",
        "EXPLAIN ANALYZE INSERT INTO spans SELECT * FROM spans",
        "SELECT 1; SELECT 2",
        "",
        "SELECT",
    ] {
        let (exit, said) = refused(&store.0, &[sql, "."]);
        assert_eq!(exit, 2, "{sql}: {said}");
        assert!(said.starts_with("ringmark-query: "), "{sql}: {said}");
        assert_eq!(said.lines().count(), 1, "{sql}: {said}");
    }
    assert_eq!(below(&store.0), before);
}

#[test]
fn deep_and_long_questions_end() {
    let store = store("query-deep");
    for sql in [
        format!("SELECT {}1{}", "(".repeat(20_000), ")".repeat(20_000)),
        format!("SELECT {}", vec!["1"; 500].join("+")),
        format!("SELECT {}", "-".repeat(1000) + "1"),
        format!(
            "SELECT count(*) FROM spans WHERE {}",
            vec!["pid = 1"; 300].join(" OR ")
        ),
        "SELECT ".repeat(1000),
    ] {
        let done = program(&store.0, &[&sql, "."]).output().expect("it runs");
        let code = done.status.code();
        assert!(
            code.is_some_and(|code| code == 0 || code == 2),
            "{}: {:?}",
            &sql[..20],
            done.status
        );
    }
}

#[test]
fn what_is_wrong_is_said_with_what_there_is() {
    let store = store("query-wrong");
    for (sql, exit, said) in [
        ("SELECT nam FROM spans", 2, "name"),
        ("SELECT * FROM span", 2, "expected spans or events"),
        ("SELECT p99(dur_ns, 1) FROM spans", 2, "p99"),
        ("SELECT quantile(dur_ns, 2) FROM spans", 2, "from 0 to 1"),
        ("DELETE FROM spans", 2, "expected a question"),
    ] {
        let (code, found) = refused(&store.0, &[sql, "."]);
        assert_eq!(code, exit, "{sql}: {found}");
        assert!(found.contains(said), "{sql}: {found}");
    }
    let (code, said) = refused(&store.0, &["SELECT 1", "none"]);
    assert!(code == 3 && said.contains("none"), "{said}");
    let (code, said) = refused(&store.0, &["SELECT 1", ".", "--tables", "raw"]);
    assert!(code == 3 && said.contains("expected tables"), "{said}");
    let all = "SELECT * FROM spans UNION ALL SELECT * FROM spans ORDER BY args, dur_ns";
    let (_, said) = refused(&store.0, &[all, ".", "--memory", "1K"]);
    assert!(said.contains("--memory"), "{said}");
}

#[test]
fn tables_and_columns_are_named() {
    let store = store("query-named");
    let columns = rows(&store.0, "DESCRIBE spans", &["column_name", "data_type"]);
    let of_files: Vec<_> = common_store::batches(&store.files("spans")[0])[0]
        .schema()
        .fields()
        .iter()
        .map(|field| format!("{}|{}", field.name(), field.data_type()))
        .collect();
    assert_eq!(columns, of_files);
    let sql = "SELECT table_name AS t FROM information_schema.tables WHERE table_schema = 'public'";
    let mut tables = rows(&store.0, sql, &["t"]);
    tables.sort();
    assert_eq!(tables, ["events", "spans"]);
}

#[test]
fn an_answer_has_three_formats() {
    let store = store("query-formats");
    let sql = "SELECT 'a,b' AS t, 1 AS n, NULL AS none, true AS yes, 1.5 AS f, chr(27) AS esc FROM spans LIMIT 1";
    let printed = |format: &str| {
        let done = program(&store.0, &[sql, ".", "--format", format]).output();
        String::from_utf8(done.expect("it runs").stdout).expect("UTF-8")
    };
    let table = printed("table");
    let lines: Vec<Vec<_>> = table
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(lines[0], ["t", "n", "none", "yes", "f", "esc"]);
    assert_eq!(lines[1], ["a,b", "1", "-", "true", "1.5", "\\x1b"]);
    let csv = printed("csv");
    assert_eq!(
        csv,
        "t,n,none,yes,f,esc\r\n\"a,b\",1,,true,1.5,\"\\x1b\"\r\n"
    );
    let json = printed("json");
    let expected = r#"{"t":"a,b","n":1,"none":null,"yes":true,"f":1.5,"esc":"\u001b"}"#;
    assert_eq!(json.trim_end(), expected);
    // An answer without a reader is no error.
    let sql = "SELECT a.* FROM spans a, spans b";
    let mut child = program(&store.0, &[sql, ".", "--format", "csv"])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("it runs");
    drop(child.stdout.take());
    assert!(child.wait().expect("it ends").success());
}

#[test]
fn a_trace_file_is_a_store_without_tables() {
    let store = store("query-file");
    let trace = store.0.join("run.rmk");
    fs::write(&trace, common::three_pages()).expect("a file");
    let done = program(
        &store.0,
        &[
            "SELECT count(*) AS n FROM events",
            "run.rmk",
            "--format",
            "csv",
        ],
    )
    .output()
    .expect("it runs");
    let rows = "export --format csv -o - run.rmk";
    let rows = store.command(rows).output().expect("it runs");
    let lines = String::from_utf8_lossy(&rows.stdout).lines().count() - 1;
    assert!(lines > 0);
    assert_eq!(
        String::from_utf8_lossy(&done.stdout),
        format!("n\r\n{lines}\r\n")
    );
}
