//! DuckDB over a server that speaks S3, for tests.

use std::process::Command;

use super::moto::left_out;

const NEEDS: &str = "import duckdb, duckdb_extension_delta, duckdb_extension_httpfs";
/// `db` reads a bucket at the address that is the first argument.
const CONNECT: &str = r#"
import duckdb, glob, importlib, os, sys
db = duckdb.connect(config={"allow_unsigned_extensions": "true"})
for name in ["httpfs", "delta"]:
    where = os.path.dirname(importlib.import_module(f"duckdb_extension_{name}").__file__)
    place, = glob.glob(os.path.join(where, "**", f"{name}.duckdb_extension"), recursive=True)
    db.sql(f"LOAD '{place}'")
address, *given = sys.argv[1:]
db.sql(f"""CREATE SECRET (TYPE s3, KEY_ID 'test', SECRET 'test', REGION 'us-east-1', ENDPOINT '{address}',
    URL_STYLE 'path', USE_SSL false)""")
"#;

/// What a program prints that has `db` and the arguments `given`. `None`: DuckDB is not here, and the test is named
/// among those that were left out.
///
/// # Panics
/// When it fails.
pub(crate) fn duckdb<'a>(
    address: &str,
    program: &str,
    given: impl IntoIterator<Item = &'a str>,
) -> Option<String> {
    let there = Command::new("python3").args(["-c", NEEDS]).output();
    if !there.is_ok_and(|done| done.status.success()) {
        left_out("the Python packages duckdb, duckdb_extension_delta and duckdb_extension_httpfs");
        return None;
    }
    let mut python = Command::new("python3");
    python.args(["-c", &format!("{CONNECT}{program}"), address]);
    let done = python.args(given).output().expect("python3");
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{said}");
    Some(String::from_utf8(done.stdout).expect("UTF-8"))
}
