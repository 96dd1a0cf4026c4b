//! Promise: a query of a bucket has each row of an export once, however much of it is in tables.

mod asked;
#[path = "../../decoder/tests/common/mod.rs"]
mod common;
#[path = "../../fleet/tests/common_store/mod.rs"]
mod common_store;
#[path = "../../fleet/tests/common/moto.rs"]
mod moto;

use asked::{program, rows_of};
use common_store::{COLUMNS, Store, begun, check, put, segments, sessions};
use moto::Moto;

const BUCKET: &str = "s3://bucket/of/tests";

/// All rows of both tables.
fn all(store: &Store, moto: &Moto) -> Vec<String> {
    let columns = COLUMNS.join(", ");
    let sql = format!("SELECT {columns} FROM spans UNION ALL SELECT {columns} FROM events");
    let mut asked = program(&store.0, &[&sql, BUCKET, "--format", "json"]);
    let done = asked.envs(moto::settings(&moto.address())).output();
    rows_of(&done.expect("it runs"), &COLUMNS)
}

/// Makes tables in the bucket.
fn compact(store: &Store, moto: &Moto) {
    let mut command = store.command(&format!("compact {BUCKET}"));
    let done = command.envs(moto::settings(&moto.address())).output();
    let done = done.expect("it runs");
    let said = common_store::said(&done);
    assert!(done.status.code().is_some_and(|code| code <= 1), "{said}");
}

#[test]
fn rows_of_a_bucket_are_there_once_at_each_state_of_its_tables() {
    let Some(moto) = Moto::start() else { return };
    let sent = sessions();
    let store = begun("query-s3", &sent);
    let upload = |name: &str| moto.upload("of/tests", &store.0, name);
    ["schema", "ringmark-store.json"]
        .into_iter()
        .for_each(upload);
    for (number, of) in segments(&sent, 4).iter().enumerate() {
        put(&store, number, of);
        upload("raw");
        check(&all(&store, &moto), &store.scanned(), "segments and tables");
        if number % 2 == 1 {
            compact(&store, &moto);
            check(&all(&store, &moto), &store.scanned(), "tables");
        }
    }
    let tables = moto.objects("of/tests", "tables/spans/_delta_log");
    assert!(tables.len() >= 2, "{tables:?}");
    let sql = "SELECT count(*) AS n FROM spans WHERE host = 'none'";
    let mut asked = program(&store.0, &[sql, BUCKET, "--format", "json"]);
    let done = asked.envs(moto::settings(&moto.address())).output();
    assert_eq!(rows_of(&done.expect("it runs"), &["n"]), ["0"]);
}
