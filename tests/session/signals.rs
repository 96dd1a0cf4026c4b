//! Promise: a signal handler may emit at any instruction; its events are recorded or counted.

use std::collections::BTreeMap;

use ringmark_decoder::{Dump, Output};
use ringmark_tests::delivery::{Delivery, number};
use ringmark_tests::fixture::{Fixture, SOON, stop_recorder};
use ringmark_tests::is_long;
use ringmark_tests::recording::{decode, read};

const SIGNALS: &str = ringmark_tests::program!("signals");
const RECORDER: &str = ringmark_tests::program!("recorder");

/// Runs it; what main and the handlers emitted.
fn run(fixture: &Fixture, ringmark: &str, arguments: &str) -> (u64, u64) {
    let [main, handlers, _] = run_deep(fixture, ringmark, arguments);
    (main, handlers)
}

/// As [`run`], and how deep handlers were nested.
fn run_deep(fixture: &Fixture, ringmark: &str, arguments: &str) -> [u64; 3] {
    let program = fixture.start(SIGNALS, ringmark, arguments);
    let done = program.finish(3 * SOON).expect_code(0);
    let said = done.stdout_text();
    let numbers = said
        .split_whitespace()
        .map(|number| number.parse().unwrap());
    numbers.collect::<Vec<_>>().try_into().unwrap()
}

/// What is there of main's and of the handlers' events, and what was lost, by cause.
#[derive(Debug, Default)]
struct EventCounts {
    main: u64,
    handlers: u64,
    other: u64,
    lost: BTreeMap<&'static str, u64>,
}

impl EventCounts {
    /// In each ring, the numbers of main's events grow, and so do those of its handlers.
    fn of(dump: &Dump) -> Self {
        let (mut found, mut last) = (Self::default(), BTreeMap::new());
        for item in dump.events() {
            let event = match item {
                Output::Lost(lost) => {
                    *found.lost.entry(lost.loss.why.cause()).or_default() += lost.loss.count;
                    continue;
                }
                Output::Event(event) => event,
            };
            match event.name() {
                b"signals.main" => found.main += 1,
                b"signals.handler" | b"signals.nested" => found.handlers += 1,
                _ => found.other += 1,
            }
            if event.name() == b"signals.nested" {
                // Handlers that interrupt each other take numbers before they emit.
                continue;
            }
            let seq = number(&event, "seq");
            let before = last.insert((event.ring(), event.name()), seq);
            assert!(before < Some(seq), "{seq:?} after {before:?}");
        }
        found
    }

    fn lost_in_all(&self) -> u64 {
        self.lost.values().sum()
    }

    fn lost(&self, cause: &str) -> u64 {
        self.lost.get(cause).copied().unwrap_or(0)
    }
}

#[test]
fn twenty_thousand_handlers_a_second_interrupt_everything() {
    let time = if is_long() { 20_000 } else { 2_000 };
    for (how, page) in [("timer", "4K"), ("timer", "64K"), ("threads", "4K")] {
        let fixture = Fixture::new("timer");
        let dump = fixture.path("a.rmk");
        let recorder = fixture.recorder(RECORDER, &dump, None).unwrap();
        let ringmark = format!("mode=discard,page={page},ring=1M,session=16M");
        let (main, handlers) = run(&fixture, &ringmark, &format!("{how} {time}"));
        let _ = stop_recorder(recorder, SOON);
        let found = EventCounts::of(&decode(&[dump]));
        println!("{how}, {page}: main {main}, handlers {handlers}: {found:?}");
        assert!(
            handlers > time,
            "too few handlers to mean anything: {handlers}"
        );
        assert_eq!(
            found.main + found.handlers + found.lost_in_all(),
            main + handlers
        );
        assert!(found.main <= main && found.handlers <= handlers);
        let causes = ["nested", "ring full", "no ring", "thread exited"];
        assert!(found.lost.keys().all(|cause| causes.contains(cause)));
        if found.lost("ring full") == 0 {
            // Only handlers are lost to nesting, and only where a page is full.
            assert!(found.lost("nested") < handlers / 10);
            // Those of a thread that has no ring yet or gives it up are counted elsewhere.
            let lost = ["nested", "no ring", "thread exited"].map(|cause| found.lost(cause));
            assert!(lost.iter().sum::<u64>() + found.handlers >= handlers);
        }
    }
}

#[test]
fn an_overwriting_ring_stays_whole_under_handlers() {
    let fixture = Fixture::new("overwrite");
    let ringmark = "mode=overwrite,page=4K,ring=256K,session=8M,keep=always";
    let (main, handlers) = run(&fixture, ringmark, "timer 1000");
    let found = EventCounts::of(&read(&[fixture.ring_file()]));
    println!("main {main}, handlers {handlers}: {found:?}");
    assert_eq!(
        found.main + found.handlers + found.lost_in_all(),
        main + handlers
    );
}

#[test]
fn handlers_interrupt_each_other_also_on_an_alternate_stack() {
    let time = if is_long() { 20_000 } else { 1_500 };
    for (how, mode) in [
        ("nested", "discard"),
        ("nested-stack", "discard"),
        ("nested-stack", "overwrite"),
    ] {
        let fixture = Fixture::new("nested");
        let ringmark = format!("mode={mode},page=4K,ring=8M,session=32M,keep=always");
        let [main, handlers, depth] = run_deep(&fixture, &ringmark, &format!("{how} {time}"));
        let found = EventCounts::of(&read(&[fixture.ring_file()]));
        println!("{how}, {mode}: main {main}, handlers {handlers}, {depth} deep: {found:?}");
        assert_eq!(
            found.main + found.handlers + found.lost_in_all(),
            main + handlers
        );
        assert!(depth > 1 && handlers > time * 3, "too little to bite");
    }
}

#[test]
fn the_first_event_of_a_thread_may_be_its_handlers() {
    for (how, each) in [("first", 1), ("first-nested", 2), ("first-stack", 2)] {
        for more in ["", ",control=off,warm=0"] {
            let fixture = Fixture::new("first");
            let ringmark = format!("mode=discard,ring=64K,page=4K,session=4M{more}");
            let (_, handlers) = run(&fixture, &ringmark, how);
            let found = EventCounts::of(&read(&[fixture.ring_file()]));
            assert_eq!(found.handlers + found.lost_in_all(), handlers, "{found:?}");
            assert_eq!(found.handlers, 20 * each, "{found:?}");
        }
    }
}

#[test]
fn a_reservation_left_behind_costs_one_ring_and_no_event() {
    let fixture = Fixture::new("forget");
    let ringmark = "mode=discard,ring=4M,page=4K,session=64M";
    let (main, _) = run(&fixture, ringmark, "forget");
    let dump = read(&[fixture.ring_file()]);
    let found = EventCounts::of(&dump);
    println!("main {main}: {found:?}");
    assert_eq!((found.main, found.lost_in_all()), (main, 0));
    assert_eq!(dump.verify().uncommitted, 3);
    assert_eq!(Delivery::of(&dump).rings.len(), 4);
}

#[test]
fn handlers_that_give_rings_up_lose_nothing_in_silence() {
    for _ in 0..5 {
        let fixture = Fixture::new("storm");
        let ringmark = "mode=discard,ring=256K,session=64M";
        let (main, handlers) = run(&fixture, ringmark, "storm 700");
        let dump = read(&[fixture.ring_file()]);
        let found = EventCounts::of(&dump);
        let held = found.main + found.handlers + dump.verify().uncommitted;
        assert_eq!(held + found.lost_in_all(), main + handlers, "{found:?}");
    }
}
