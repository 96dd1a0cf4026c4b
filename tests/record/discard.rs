//! Promise: in discard mode emitted = delivered + lost, for every thread, to the event, and each
//! loss stands where it happened; whatever becomes of the recorder.

use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use ringmark_reader::{Access, Session, SessionInfo};
use ringmark_tests::delivery::Delivery;
use ringmark_tests::fixture::{Counters, Fixture, SOON, stop_recorder};
use ringmark_tests::functions::tool;
use ringmark_tests::recording::{decode, record};
use ringmark_tests::{Running, is_long, run, wait_until};
use rustix::process::Signal;

const EMIT: &str = ringmark_tests::program!("emit");
const ENDS: &str = ringmark_tests::program!("ends");
const RECORDER: &str = ringmark_tests::program!("recorder");
const THREADS: u64 = 8;
const EVENTS: u64 = 500_000;
const LONG: Duration = Duration::from_secs(120);

fn emit(fixture: &Fixture, ringmark: &str, arguments: &str) -> Running {
    fixture.start(EMIT, ringmark, arguments)
}

/// Waits until half of each ring has been released.
fn wait_for_room(session: &Session) {
    wait_until(SOON, "the recorder", || {
        let rings = SessionInfo::of(session).rings;
        let has_room = rings.iter().all(|r| r.pages_filled * 2 <= r.pages);
        has_room.then_some(())
    });
}

/// Events of a thread that has given its ring back have no room in any ring.
#[test]
fn a_larger_ring_is_not_advised_where_it_does_not_help() {
    let fixture = Fixture::new("advice");
    let mut command = tool(&fixture);
    command.args(["run", "-o"]).arg(fixture.path("advice.rmk"));
    let done = run(command.args(["--", ENDS, "key"]), LONG).expect("ringmark");
    let told = done.expect_code(1).stderr_text();
    assert!(
        told.contains("lost where a larger ring does not help"),
        "{told}"
    );
    assert!(!told.contains("with a larger ring="), "{told}");
}

#[test]
fn every_event_is_delivered_or_counted() {
    let fixture = Fixture::new("discard");
    let dump = fixture.path("a.rmk");
    let recorder = fixture.recorder(RECORDER, &dump, None).unwrap();
    let ringmark = "mode=discard,ring=1M,session=64M";
    let counters = Counters::new(fixture.path("counters"));
    let half = EVENTS / 2;
    let arguments = format!("{THREADS} {EVENTS} gate={half} {}", counters.argument());
    let program = emit(&fixture, ringmark, &arguments);
    let session = Session::open(&fixture.ring_file(), Access::Observe).unwrap();
    counters.wait_for_each(THREADS, half);
    wait_for_room(&session);
    counters.go();
    let _ = program.finish(LONG).expect_code(0);
    let said = stop_recorder(recorder, LONG);
    let account = Delivery::of(&decode(&[dump]));
    account.expect_exact(THREADS, EVENTS);
    println!(
        "delivered {}, lost {}; {said}",
        account.delivered(),
        account.lost()
    );
    // The recorder takes what comes, at the very least more than the rings hold once.
    assert!(account.delivered() > 400_000, "{}", account.delivered());
    assert!(fixture.ring_files().is_empty(), "a drained session stays");
}

#[test]
fn a_program_at_human_speed_loses_nothing() {
    let fixture = Fixture::new("paced");
    let dump = fixture.path("a.rmk");
    let recorder = fixture.recorder(RECORDER, &dump, None).unwrap();
    let ringmark = "mode=discard,ring=1M,session=64M";
    let counters = Counters::new(fixture.path("counters"));
    // A step is a quarter of a ring; two more fit when the next one may begin.
    let (events, step) = (100_000, 10_000);
    let arguments = format!(
        "{THREADS} {events} gate={step} burst=500 pause=2000 {}",
        counters.argument()
    );
    let program = emit(&fixture, ringmark, &arguments);
    let session = Session::open(&fixture.ring_file(), Access::Observe).unwrap();
    for allowed in (step..=events).step_by(step as usize) {
        counters.allow(allowed);
        counters.wait_for_each(THREADS, allowed);
        wait_for_room(&session);
    }
    let _ = program.finish(LONG).expect_code(0);
    let _ = stop_recorder(recorder, LONG);
    let account = Delivery::of(&decode(&[dump]));
    account.expect_exact(THREADS, events);
    assert_eq!(account.lost(), 0);
}

#[test]
fn the_reader_stands_still_until_rings_are_full() {
    let fixture = Fixture::new("stopped");
    let dump = fixture.path("a.rmk");
    let ringmark = "mode=discard,ring=256K,session=64M";
    let counters = Counters::new(fixture.path("counters"));
    let arguments = format!(
        "{THREADS} {EVENTS} gate=250000 burst=250 pause=1500 {}",
        counters.argument()
    );
    let program = emit(&fixture, ringmark, &arguments);
    let ring_file = fixture.ring_file();
    let session = Session::open(&ring_file, Access::Observe).unwrap();
    let recorder = fixture.recorder(RECORDER, &dump, Some(&ring_file)).unwrap();
    wait_until(SOON, "the recorder", || {
        fs::metadata(&dump)
            .ok()
            .filter(|about| about.len() > 1 << 20)
    });
    recorder.signal(Signal::STOP).unwrap();
    wait_until(SOON, "a ring that is full", || {
        let rings = SessionInfo::of(&session).rings;
        rings
            .iter()
            .any(|ring| ring.lost.iter().any(|n| *n > 0))
            .then_some(())
    });
    recorder.signal(Signal::CONT).unwrap();
    counters.go();
    let _ = program.finish(LONG).expect_code(0);
    let _ = recorder.finish(LONG).expect_code(0);
    let account = Delivery::of(&decode(&[dump]));
    account.expect_exact(THREADS, EVENTS);
    println!("delivered {}, lost {}", account.delivered(), account.lost());
    assert!(
        account.lost() > 0,
        "standing still cost nothing: the test does not bite"
    );
}

#[test]
fn missing_and_misplaced_pages_are_found_out() {
    let fixture = Fixture::new("planted");
    let ringmark = "mode=discard,ring=64K,page=4K,session=8M,keep=always";
    let program = emit(&fixture, ringmark, "2 2000");
    let _ = program.finish(LONG).expect_code(0);
    let dump = fixture.path("a.rmk");
    record(&fixture.ring_file(), &dump);
    let mut without = decode(std::slice::from_ref(&dump));
    Delivery::of(&without).expect_exact(2, 2000);
    without.sessions[0].slots[0].pages.remove(3);
    let errors = |dump| {
        Delivery::of(dump)
            .rings
            .into_values()
            .flat_map(|r| r.errors)
            .count()
    };
    assert!(errors(&without) > 0);
    let mut misplaced = decode(&[dump]);
    let pages = &mut misplaced.sessions[0].slots[0].pages;
    pages.swap(3, 4);
    assert!(errors(&misplaced) > 0);
}

/// What is done to the recorder of an overloaded program.
#[derive(Debug, Clone, Copy)]
enum Fate {
    /// It sleeps again and again.
    Starved,
    /// It is killed, and another one goes on.
    Killed,
    /// There is none until the program has ended.
    Late,
}

fn overload(number: u64, fate: Fate) -> u64 {
    let fixture = Fixture::new("overload");
    let mut dumps = vec![fixture.path("0.rmk")];
    let ringmark = "mode=discard,ring=16K,page=4K,session=2M,control=off,keep=always";
    let program = emit(&fixture, ringmark, "2 100000 burst=10000 pause=100");
    let ring_file = fixture.ring_file();
    if !matches!(fate, Fate::Late) {
        let recorder = fixture
            .recorder(RECORDER, &dumps[0], Some(&ring_file))
            .unwrap();
        thread::sleep(Duration::from_micros(2000 + 137 * number));
        match fate {
            Fate::Starved => starve(recorder, number),
            _ => drop(recorder.kill().unwrap()),
        }
    }
    let _ = program.finish(LONG).expect_code(0);
    let last = fixture.path("last.rmk");
    record(&ring_file, &last);
    dumps.push(last);
    dumps.retain(|path: &PathBuf| path.exists());
    let account = Delivery::of(&decode(&dumps));
    account.expect_exact(2, 100_000);
    account.lost()
}

fn starve(recorder: Running, number: u64) {
    for _ in 0..3 {
        recorder.signal(Signal::STOP).unwrap();
        thread::sleep(Duration::from_micros(500 + 211 * (number % 7)));
        recorder.signal(Signal::CONT).unwrap();
        thread::sleep(Duration::from_micros(300));
    }
    let _ = stop_recorder(recorder, SOON);
}

#[test]
fn overloaded_and_still_exact() {
    let runs = if is_long() { 1000 } else { 100 };
    let mut lossy = 0;
    for number in 0..runs {
        let fate = [Fate::Starved, Fate::Killed, Fate::Late][number as usize % 3];
        lossy += u64::from(overload(number % 50, fate) > 0);
    }
    println!("{runs} of {runs} exact, {lossy} of them lost events");
    assert!(
        lossy > runs / 2,
        "too few runs were overloaded: {lossy} of {runs}"
    );
}
