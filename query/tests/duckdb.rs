//! Promise: count, sum, least and most, and quantiles by nearest rank, are those that DuckDB finds in the same Parquet files;
//! the histogram's are within 2.2 % of them.

mod asked;
#[path = "../../decoder/tests/common/mod.rs"]
mod common;
#[path = "../../fleet/tests/common_store/mod.rs"]
mod common_store;

use std::process::Command;

use asked::rows;
use common_store::{Sent, Store, said};

/// The same in both engines.
const SQL: &str = "WITH ranked AS (
        SELECT name, dur_ns, row_number() OVER (PARTITION BY name ORDER BY dur_ns) AS place,
            count(*) OVER (PARTITION BY name) AS n
        FROM spans WHERE dur_ns IS NOT NULL)
    SELECT name, count(*) AS n, sum(dur_ns) AS total, min(dur_ns) AS least, max(dur_ns) AS most,
        min(CASE WHEN place * 100 >= n * 99 THEN dur_ns END) AS p99
    FROM ranked GROUP BY name ORDER BY name";
const COLUMNS: [&str; 6] = ["name", "n", "total", "least", "most", "p99"];

const DUCKDB: &str = r#"
import duckdb, sys
sql, files = sys.argv[1], sys.argv[2:]
db = duckdb.connect()
db.sql("CREATE VIEW spans AS SELECT * FROM read_parquet([" + ",".join(f"'{f}'" for f in files) + "])")
for row in db.sql(sql).fetchall():
    print(*row, sep="|")
"#;

#[test]
fn answers_are_those_of_duckdb() {
    let there = Command::new("python3")
        .args(["-c", "import duckdb"])
        .output();
    if !there.is_ok_and(|done| done.status.success()) {
        println!("left out: needs python3 with duckdb");
        return;
    }
    let store = Store::new("query-duckdb");
    for seed in [41, 43] {
        let sent = Sent::new(seed, 4000);
        store.begin(&sent);
        let blocks = [sent.pages.concat(), sent.end.clone()].concat();
        store.segment(seed, &[(&sent, &blocks)]);
        store.compact();
    }
    let files = store.files("spans");
    let done = Command::new("python3")
        .args(["-c", DUCKDB, SQL])
        .args(&files)
        .output()
        .expect("python3");
    assert!(done.status.success(), "{}", said(&done));
    let expected = String::from_utf8(done.stdout).expect("UTF-8");
    let expected: Vec<_> = expected.lines().collect();
    assert!(files.len() > 1 && expected.len() > 3, "{expected:?}");
    assert_eq!(rows(&store.0, SQL, &COLUMNS), expected);
    let near = "SELECT name, p99(dur_ns) AS p99 FROM spans WHERE dur_ns IS NOT NULL GROUP BY name ORDER BY name";
    for (row, exact) in rows(&store.0, near, &["p99"]).iter().zip(&expected) {
        let exact: f64 = exact
            .rsplit('|')
            .next()
            .expect("a cell")
            .parse()
            .expect("a number");
        let found: f64 = row.parse().expect("a number");
        assert!(
            (found - exact).abs() <= 0.022 * exact,
            "{found} for {exact}"
        );
    }
}
