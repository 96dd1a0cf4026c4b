//! Planted faults, to see that the comparison with what was emitted finds them: a segment that is acknowledged and not
//! there, the end of a session that is there before its pages, and tables that are read without their logs.
//!
//! Two more are in the readers' own code, and `tests/stream/virtual_fleet` plants them: of the copies of a page the first
//! counts, and rows are made of pages after a gap.

use std::time::Duration;

use super::fault_proxy::{Fault, FaultProxy};
use super::finish;
use super::found::{Expected, ROWS};
use super::moto::Moto;
use super::scene::{Scene, wait};

/// What `verify` counts as missing, and whether all is there.
fn verified(scene: &Scene) -> (u64, bool) {
    let told = scene.told(&["verify", "--json"]);
    let of: serde_json::Value = serde_json::from_slice(&told.stdout).expect("JSON");
    (of["missing"].as_u64().unwrap(), of["complete"] == true)
}

#[test]
fn planted_faults_are_found() {
    let Some(moto) = Moto::start() else { return };
    let faulty = FaultProxy::start(&moto.address(), Vec::new());
    let mut scene = Scene::new("planted", faulty.address());
    let collector = scene.collect("socket");
    let (mut numbers, streamer) = scene.stream("socket");
    wait("rows", || {
        numbers.emit_for(Duration::from_millis(100));
        (scene.read(&ROWS).lines().count() > 1).then_some(())
    });
    let _ = scene.printed(&["compact"]);
    faulty.next(Fault::Promised);
    wait("a promise", || {
        numbers.emit_for(Duration::from_millis(10));
        faulty.faults().contains_key(&Fault::Promised).then_some(())
    });
    numbers.emit_for(Duration::from_millis(300));
    let written = finish(&scene, numbers, streamer);
    drop(collector);
    scene.endpoint = moto.address();
    let expected = Expected {
        scene: &scene,
        written,
    };
    // The end of the session is there, and a segment before it is not.
    let found = expected.segments_differ().unwrap_err();
    println!("acknowledged before the put: {found}");
    let (missing, is_complete) = verified(&scene);
    println!("the end before the pages: {missing} missing");
    assert!(missing > 0 && !is_complete);

    faulty.land();
    expected.segments_differ().unwrap();
    assert_eq!(verified(&scene), (0, true));
    let _ = scene.printed(&["compact"]);
    let _ = scene.printed(&["compact", "--merge"]);
    expected.tables_differ(&moto.address()).unwrap();
    if let Some(globbed) = expected.globbed_tables_differ(&moto.address()) {
        println!("without the logs: {}", globbed.unwrap_err());
    }
}
