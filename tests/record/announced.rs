//! Promise: with `wait=`, a program whose recorder has announced itself loses nothing before the recorder
//! has found its session; one without a recorder waits for none.

use std::path::Path;
use std::time::Duration;

use ringmark_reader::{Access, Session};
use ringmark_ring::consumer_lease::{AllLease, TagLease};
use ringmark_ring::session_dir;
use ringmark_tests::fixture::{Fixture, stop_recorder};
use ringmark_tests::functions::tool;
use ringmark_tests::process::SLEEPS;
use ringmark_tests::recording::decode;
use ringmark_tests::{Running, is_long, run, wait_until};

const EMIT: &str = ringmark_tests::program!("emit");
const RECORDER: &str = ringmark_tests::program!("recorder");
const TAG: &str = "run=announced";
const RING_BYTES: u64 = 64 << 10;
/// More than the ring holds: it is full within a millisecond.
const EVENTS: u64 = 20_000;
const SETTINGS: &str = "mode=discard,ring=64K,session=1M,keep=always,wait=10s";
const LIMIT: Duration = Duration::from_secs(60);

/// Waits until a thread has no free page.
fn wait_for_a_full_ring(ring_file: &Path) {
    let session = Session::open(ring_file, Access::Observe).expect("a session");
    let pages = RING_BYTES / u64::from(session.header().page_bytes);
    wait_until(LIMIT, "a full ring", || {
        let slots = (0..session.ring().slots_used()).filter_map(|index| session.ring().slot(index));
        let mut full = slots.filter(|slot| slot.produced() + 1 >= pages);
        full.next().map(drop)
    });
}

fn started(fixture: &Fixture) -> Running {
    let mut command = fixture.program(EMIT, SETTINGS);
    command.env("RINGMARK_TAGS", format!("zone=eu,{TAG}"));
    command.args(["0", &EVENTS.to_string(), "hold=1000"]);
    Running::start(&mut command).expect("a program that starts")
}

/// What a session has lost so far.
fn lost(ring_file: &Path) -> u64 {
    let session = Session::open(ring_file, Access::Observe).expect("a session");
    let ring = session.ring();
    let slots = (0..ring.slots_used()).filter_map(|index| ring.slot(index));
    slots.map(|slot| slot.lost_in_all()).sum()
}

/// Events and losses of a program whose recorder comes late.
fn recorded(fixture: &Fixture) -> (u64, u64) {
    let program = started(fixture);
    let ring_file = fixture.ring_file();
    wait_for_a_full_ring(&ring_file);
    // It waits for the recorder, or has emitted all.
    program.wait_until_in(&SLEEPS);
    let before = lost(&ring_file);
    let dump = fixture.path("run.rmk");
    let recorder = fixture.recorder(RECORDER, &dump, Some(&ring_file));
    let recorder = recorder.expect("a recorder that starts");
    drop(program.finish(LIMIT).expect_code(0));
    drop(stop_recorder(recorder, LIMIT));
    let verified = decode(&[dump]).verify();
    assert!(verified.lost >= before, "{before} lost before: {verified}");
    (verified.events, verified.lost)
}

#[test]
fn a_recorder_of_a_tag_that_comes_late_gets_all() {
    let fixture = Fixture::new("announced-tag");
    session_dir::ensure(&fixture.sessions()).expect("a session directory");
    let _lease = TagLease::take(&fixture.sessions(), TAG).expect("a lease");
    let (events, lost) = recorded(&fixture);
    assert_eq!(lost, 0);
    assert!(events >= EVENTS, "{events} events");
}

#[test]
fn a_recorder_of_all_that_comes_late_gets_all() {
    let fixture = Fixture::new("announced-all");
    session_dir::ensure(&fixture.sessions()).expect("a session directory");
    let _lease = AllLease::take(&fixture.sessions()).expect("a lease");
    assert_eq!(recorded(&fixture).1, 0);
}

/// A recorder of another tag is announced.
#[test]
fn without_its_recorder_a_program_waits_for_none() {
    let fixture = Fixture::new("announced-not");
    session_dir::ensure(&fixture.sessions()).expect("a session directory");
    let _lease = TagLease::take(&fixture.sessions(), "run=other").expect("a lease");
    let (_, lost) = recorded(&fixture);
    assert!(lost > 0, "it waited for a recorder of other sessions");
}

/// Each time with a recorder that must find the session first.
#[test]
fn a_short_program_loses_nothing_from_its_start_on() {
    for _ in 0..if is_long() { 400 } else { 20 } {
        let fixture = Fixture::new("announced-run");
        let dump = fixture.path("run.rmk");
        let mut command = tool(&fixture);
        command.env("RINGMARK", "mode=discard,ring=64K,session=1M");
        command.args(["record", "--wait", "10s", "-o"]).arg(&dump);
        command.arg("--").arg(EMIT).args(["1", &EVENTS.to_string()]);
        let told = run(&mut command, LIMIT).expect("ringmark").expect_code(0);
        let verified = decode(&[dump]).verify();
        assert_eq!(verified.lost, 0, "{told:?}");
    }
}
