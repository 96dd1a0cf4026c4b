//! Promise: a record that is left by a jump out of a handler costs no other one, in whatever place the
//! jump came; one that a switch of coroutines holds up is whole when it ends. Beyond sixteen in one
//! thread, events are counted as lost.

use std::collections::BTreeMap;
use std::path::Path;

use ringmark_decoder::Output;
use ringmark_ring::writer::RINGS_MAX;
use ringmark_tests::fixture::Fixture;
use ringmark_tests::recording::read;
use ringmark_tests::{is_long, require_tools, run};

use crate::c::{GCC, LIMIT, compile};

/// Events that the program makes at its end.
const AFTER: u64 = 3000;
/// Rings in which nothing is lost for want of room, and sixteen of them for one thread.
const ROOM: &str = "mode=discard,ring=16M,page=4K,session=512M,keep=always";

/// What became of the events of one run.
#[derive(Debug)]
struct Found {
    /// How many were begun, and how many came to their end.
    begun: u64,
    ended: u64,
    events: BTreeMap<String, u64>,
    lost: BTreeMap<&'static str, u64>,
    uncommitted: u64,
}

impl Found {
    /// There, open, or counted.
    fn sum(&self) -> u64 {
        let there: u64 = self.events.values().sum();
        there + self.uncommitted + self.lost.values().sum::<u64>()
    }
}

fn found(fixture: &Fixture, program: &Path, ringmark: &str, how: &str, count: u64) -> Found {
    let mut command = fixture.program(&program.to_string_lossy(), ringmark);
    command.args([how, &count.to_string()]);
    let done = run(&mut command, LIMIT).expect("it starts").expect_code(0);
    let said = done.stdout_text();
    let numbers = said
        .split_whitespace()
        .map(|n| n.parse().expect("a number"));
    let [begun, ended] = numbers.collect::<Vec<u64>>()[..] else {
        panic!("{said}");
    };
    let dump = read(&[fixture.ring_file()]);
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
    std::fs::remove_file(fixture.ring_file()).expect("the ring file");
    let found = Found {
        begun,
        ended,
        events,
        lost,
        uncommitted: dump.verify().uncommitted,
    };
    println!("{how} {count}, {ringmark}: {found:?}");
    found
}

#[test]
fn a_jump_out_of_a_record_costs_that_record_alone() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("left-records");
    let program = compile(&fixture, GCC, "left_records.c", "-O2 -D_GNU_SOURCE", "left");
    let left = RINGS_MAX as u64 - 1;
    for how in ["inside", "alternate"] {
        for mode in ["discard", "overwrite"] {
            let ringmark = ROOM.replace("discard", mode);
            let found = found(&fixture, &program, &ringmark, how, left);
            assert_eq!(found.lost.len(), 0, "{found:?}");
            assert_eq!(found.uncommitted, left, "{found:?}");
            assert_eq!(
                (found.sum(), found.ended),
                (found.begun, found.begun - left)
            );
        }
        // Each of them takes a ring for as long as the thread lives.
        let found = found(&fixture, &program, ROOM, how, 1000);
        assert_eq!(found.lost.keys().collect::<Vec<_>>(), [&"nested"]);
        assert_eq!(found.sum(), found.begun, "{found:?}");
    }
}

/// Where the jump comes between a record's end and what the program notes of it, the record is there.
#[test]
fn jumps_out_of_any_instruction_are_accounted_for() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("left-records-timer");
    let program = compile(&fixture, GCC, "left_records.c", "-O2 -D_GNU_SOURCE", "left");
    let jumps = if is_long() { 20_000 } else { 1000 };
    for count in [10, jumps] {
        let found = found(&fixture, &program, ROOM, "timer", count);
        assert!(
            found.sum() >= found.ended && found.sum() <= found.begun,
            "{found:?}"
        );
        if count < RINGS_MAX as u64 {
            assert_eq!(found.lost.len(), 0, "{found:?}");
            assert_eq!(found.events["left.after"], AFTER, "{found:?}");
        }
    }
}

#[test]
fn coroutines_that_a_timer_switches_lose_nothing_uncounted() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("left-records-coroutines");
    let program = compile(&fixture, GCC, "left_records.c", "-O2 -D_GNU_SOURCE", "left");
    let each = 60_000;
    for mode in ["discard", "overwrite"] {
        let found = found(
            &fixture,
            &program,
            &ROOM.replace("discard", mode),
            "coroutines",
            each,
        );
        assert_eq!((found.begun, found.ended), (6 * each + AFTER, found.begun));
        assert_eq!((found.sum(), found.uncommitted), (found.begun, 0));
        // All have ended: whatever was held up is over, and so is its cost.
        assert_eq!(found.events["left.after"], AFTER, "{found:?}");
    }
}
