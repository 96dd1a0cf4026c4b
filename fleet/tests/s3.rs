//! Promise: collectors that share a bucket, in S3 or in Azure, keep nothing else, and no event of theirs is lost or comes twice,
//! whatever the way to the bucket does and whichever collector is killed. Readers get from the bucket what
//! they need of it.

#[path = "common/azurite.rs"]
mod azurite;
#[path = "common/duckdb.rs"]
mod duckdb;
#[allow(dead_code, reason = "tables are made in other tests")]
#[path = "common/fault_proxy.rs"]
mod fault_proxy;
#[path = "s3/fleet.rs"]
mod fleet;
#[path = "s3/found.rs"]
mod found;
#[allow(dead_code)]
#[path = "common/moto.rs"]
mod moto;
#[path = "s3/planted.rs"]
mod planted;
#[allow(dead_code, unreachable_pub)]
#[path = "../../tests/src/proxy.rs"]
mod proxy;
#[allow(dead_code, unreachable_pub)]
#[path = "../../tests/src/random.rs"]
mod random;
#[path = "common/s3s.rs"]
mod s3s;
#[path = "s3/scene.rs"]
mod scene;
#[path = "common/spark.rs"]
mod spark;
#[path = "s3/three_collectors.rs"]
mod three_collectors;

use std::collections::BTreeSet;
use std::fs::File;
use std::time::Duration;

use azurite::Azurite;
use fault_proxy::FaultProxy;
use found::{Expected, ROWS};
use moto::Moto;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use scene::{Numbers, Running, Scene};

/// Ends the program and then the streamer, which has sent all; returns what was written.
fn finish(scene: &Scene, numbers: Numbers, mut streamer: Running) -> BTreeSet<String> {
    let written = numbers.finish();
    scene.sent("web", &mut streamer, || ());
    written.into_iter().collect()
}

#[test]
fn a_store_in_azure_is_written_and_read() {
    let Some(azurite) = Azurite::start() else {
        return;
    };
    let mut scene = Scene::new("azure", &azurite.address());
    (scene.store, scene.settings) = ("az://bucket/of/tests", azurite::settings);
    let collector = scene.collect("socket");
    let (mut numbers, streamer) = scene.stream("socket");
    numbers.emit_for(Duration::from_secs(1));
    let emitted = numbers.emitted();
    let written = finish(&scene, numbers, streamer);
    drop(collector);
    let expected = Expected {
        scene: &scene,
        written,
    };
    expected.segments_differ().unwrap();
    let listed: serde_json::Value =
        serde_json::from_str(&scene.printed(&["store", "ls", "--json"])).expect("JSON");
    assert!(listed["written"].as_u64() >= Some(emitted), "{listed}");
    // Its tables are there, too.
    let compacted = || String::from_utf8_lossy(&scene.told(&["compact"]).stderr).into_owned();
    let rows = scene.printed(&ROWS).lines().count() - 1;
    let first = compacted();
    assert!(
        first.contains(&format!("tests: {rows} rows of")),
        "{rows}, {emitted}: {first}"
    );
    let again = compacted();
    assert!(again.contains("tests: 0 rows of 0 segments"), "{again}");
    let files = scene.printed(&["store", "files", "--table", "events"]);
    let start = "az://bucket/of/tests/tables/events/date=";
    assert!(
        files.starts_with(start) && files.lines().count() == 1,
        "{files}"
    );
}

/// Bytes that readers of the store get, and their requests, by `words`.
fn read_by(scene: &mut Scene, moto: &Moto, words: &[&str]) -> (u64, u64) {
    let counting = FaultProxy::start(&moto.address(), Vec::new());
    scene.endpoint = counting.address().to_owned();
    let _ = scene.printed(words);
    counting.asked("GET")
}

#[test]
fn a_reader_gets_what_is_chosen_and_little_else() {
    let Some(moto) = Moto::start() else { return };
    let mut scene = Scene::new("ranges", &moto.address());
    let collector = scene.collect("socket");
    let (mut numbers, streamer) = scene.stream("socket");
    numbers.emit_for(Duration::from_secs(2));
    let _ = finish(&scene, numbers, streamer);
    drop(collector);
    let segments = moto.ask("GET", "/bucket?list-type=2&prefix=of/tests/raw");
    let segments = segments.matches("<Key>").count() as u64;
    assert!(segments > 20, "{segments}");
    let (requests, bytes) = read_by(&mut scene, &moto, &["verify"]);
    println!("{segments} segments: {requests} requests, {bytes} bytes");
    // Two lists, the schema, and of each segment its footer and all of it.
    assert!(requests <= 3 + 2 * segments, "{requests} of {segments}");
    scene.endpoint = moto.address();
    let rows = scene.printed(&ROWS).lines().count() as i64 - 1;
    let _ = scene.printed(&["export", "--format", "parquet"]);
    let file = File::open(scene.path("tests.parquet")).unwrap();
    let columns = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
    assert_eq!(columns.metadata().file_metadata().num_rows(), rows);
    let (few, less) = read_by(
        &mut scene,
        &moto,
        &["export", "--format", "csv", "-o", "-", "--host", "none"],
    );
    println!("another host: {few} requests, {less} bytes");
    assert!(few <= 2 + segments && less < bytes, "{few}: {less}");
}
