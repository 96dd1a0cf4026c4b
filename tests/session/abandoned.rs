//! Promise: a reservation that stays open for long, or for ever, costs its thread no other event, and
//! one ring for as long as it is open; beyond sixteen rings events are counted as lost.

use std::collections::BTreeMap;

use ringmark_decoder::{Dump, Output};
use ringmark_reader::{Access, Session};
use ringmark_tests::fixture::{Fixture, SOON};
use ringmark_tests::is_long;
use ringmark_tests::recording::read;

const SET_ASIDE: &str = ringmark_tests::program!("set_aside");

/// Runs it; what it emitted.
fn run(fixture: &Fixture, ringmark: &str, arguments: &str) -> u64 {
    let program = fixture.start(SET_ASIDE, ringmark, arguments);
    let done = program.finish(3 * SOON).expect_code(0);
    done.stdout_text().trim().parse().unwrap()
}

/// Events by name, and losses by cause.
fn count(dump: &Dump) -> (BTreeMap<String, u64>, BTreeMap<&'static str, u64>) {
    let (mut events, mut lost) = (BTreeMap::new(), BTreeMap::new());
    for item in dump.events() {
        match item {
            Output::Event(event) => {
                let name = String::from_utf8_lossy(event.name()).into_owned();
                *events.entry(name).or_default() += 1;
            }
            Output::Lost(l) => *lost.entry(l.loss.why.cause()).or_default() += l.loss.count,
        }
    }
    (events, lost)
}

fn rings(fixture: &Fixture) -> usize {
    let session = Session::open(&fixture.ring_file(), Access::Observe).unwrap();
    let ring = session.ring();
    let slots = (0..ring.slots_used()).filter_map(|index| ring.slot(index));
    slots.filter(|slot| slot.claims() > 0).count()
}

#[test]
fn a_reservation_held_for_long_costs_one_more_ring_however_often() {
    let rounds = if is_long() { 400 } else { 40 };
    let fixture = Fixture::new("held");
    let ringmark = "mode=discard,ring=64M,page=4K,session=512M,keep=always";
    let emitted = run(&fixture, ringmark, &format!("held {rounds}"));
    let (events, lost) = count(&read(&[fixture.ring_file()]));
    println!("{rounds} rounds: {events:?}, {lost:?}");
    assert_eq!(events["Outer"], rounds);
    let sum = events.values().sum::<u64>() + lost.values().sum::<u64>();
    assert_eq!((sum, lost.len()), (emitted, 0));
    assert_eq!(rings(&fixture), 2, "one to write to, one that is held");
}

#[test]
fn the_rings_of_threads_that_left_reservations_behind_are_used_again() {
    let threads = if is_long() { 2000 } else { 100 };
    let fixture = Fixture::new("left");
    // Memory for 16 rings, and two for every thread.
    let ringmark = "mode=overwrite,ring=64K,page=4K,session=1M,keep=always,control=off,warm=0";
    let emitted = run(&fixture, ringmark, &format!("left {threads}"));
    let dump = read(&[fixture.ring_file()]);
    let (events, lost) = count(&dump);
    println!("{threads} threads: {events:?}, {lost:?}");
    let held = events.values().sum::<u64>() + dump.verify().uncommitted;
    assert!(held <= emitted);
    let causes: Vec<_> = lost.keys().copied().collect();
    assert_eq!(causes, ["overwritten"], "no thread lacks a second ring");
}

#[test]
fn a_thread_without_a_ring_gets_the_next_free_one_at_its_next_event() {
    let fixture = Fixture::new("none");
    let ringmark = "mode=overwrite,ring=16K,page=4K,session=256K,keep=always,control=off,warm=0";
    let emitted = run(&fixture, ringmark, "none 1001");
    let (events, lost) = count(&read(&[fixture.ring_file()]));
    println!("{events:?}, {lost:?}");
    assert_eq!(events["aside.inner"], 10);
    assert_eq!(lost.values().sum::<u64>(), emitted - 10);
}
