//! Promise: a streamer, a collector and a store of two versions work together, or refuse each other by name. The
//! earlier `ringmark` is the one that RINGMARK_EARLIER names; without it the test is left out and listed.

use std::env;
use std::path::{Path, PathBuf};

use ringmark_tests::collecting::{segments, wait_for_listener};
use ringmark_tests::delivery::Delivery;
use ringmark_tests::fixture::{Counters, Fixture, SOON, wait_until_mapped};
use ringmark_tests::recording::decode;
use ringmark_tests::tools::log_skip;
use ringmark_tests::{Running, binary, run, wait_until};
use rustix::process::Signal;

const EMIT: &str = env!("CARGO_BIN_EXE_emit");
const EVENTS: u64 = 1500;

/// Both versions.
struct Versions {
    earlier: PathBuf,
    present: PathBuf,
}

fn versions() -> Option<Versions> {
    let Some(earlier) = env::var_os("RINGMARK_EARLIER") else {
        log_skip("mixed versions: set RINGMARK_EARLIER to the path of an earlier ringmark");
        return None;
    };
    Some(Versions {
        earlier: earlier.into(),
        present: binary::path().to_owned(),
    })
}

fn collector(fixture: &Fixture, version: &Path) -> Running {
    let socket = fixture.path("socket");
    let mut command = fixture.command(version);
    command.args([
        "collect",
        "--listen",
        &format!("unix://{}", socket.display()),
    ]);
    let running = Running::start(command.arg("--store").arg(fixture.path("store"))).unwrap();
    wait_for_listener(&socket);
    running
}

fn end(collector: Running) {
    collector.signal(Signal::TERM).unwrap();
    let _ = collector.finish(SOON).expect_code(0);
}

/// Streams a program of this version's library to its end, with this version's tool.
fn stream(fixture: &Fixture, version: &Path) {
    let ringmark = "mode=discard,ring=2M,page=16K,session=16M";
    let counters = Counters::new(fixture.path("counters"));
    let arguments = format!("1 {EVENTS} bulk=100 hold=600000 {}", counters.argument());
    let program = fixture.start(EMIT, ringmark, &arguments);
    wait_until(SOON, "all events", || {
        (counters.read(1) == [EVENTS]).then_some(())
    });
    let to = format!("unix://{}", fixture.path("socket").display());
    let mut command = fixture.command(version);
    command.args(["stream", "-p", &program.id().to_string(), "--to", &to]);
    let streamer = Running::start(&mut command).unwrap();
    let ring_file = fixture.ring_files().pop().unwrap();
    wait_until_mapped(&streamer, &ring_file);
    drop(program.kill().unwrap());
    let _ = streamer.finish(SOON).expect_code(0);
}

/// The events of this number of programs, each once.
fn expect_stored(fixture: &Fixture, programs: usize) {
    let dump = decode(&segments(&fixture.path("store")));
    assert_eq!((dump.conflicts, dump.damage.len()), (0, 0));
    let account = Delivery::of(&dump);
    account.expect_no_errors();
    let emitted: Vec<u64> = account.rings.values().map(|ring| ring.emitted()).collect();
    assert_eq!(emitted, vec![EVENTS; programs]);
    assert_eq!(account.lost(), 0);
}

/// Another version reads the store.
fn expect_read(fixture: &Fixture, version: &Path) {
    let mut command = fixture.command(version);
    let verified = run(command.arg("verify").arg(fixture.path("store")), SOON);
    let _ = verified.unwrap().expect_code(0);
}

#[test]
fn streamers_and_collectors_of_two_versions() {
    let Some(versions) = versions() else {
        return;
    };
    for (streamer, collector_of) in [
        (&versions.earlier, &versions.present),
        (&versions.present, &versions.earlier),
    ] {
        let fixture = Fixture::new("mixed");
        let running = collector(&fixture, collector_of);
        stream(&fixture, streamer);
        end(running);
        expect_stored(&fixture, 1);
        expect_read(&fixture, &versions.earlier);
        expect_read(&fixture, &versions.present);
    }
}

#[test]
fn a_store_goes_from_one_version_to_the_other_and_back() {
    let Some(versions) = versions() else {
        return;
    };
    let fixture = Fixture::new("mixed-store");
    let order = [&versions.earlier, &versions.present, &versions.earlier];
    for (number, version) in order.into_iter().enumerate() {
        let running = collector(&fixture, version);
        stream(&fixture, version);
        end(running);
        expect_stored(&fixture, number + 1);
    }
    expect_read(&fixture, &versions.present);
}
