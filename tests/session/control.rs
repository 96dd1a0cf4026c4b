//! Promise: events are switched on and off in a running program, those that it does not know yet
//! too; without control there is no thread of ours in it.

use std::fs;

use ringmark_decoder::Output;
use ringmark_reader::{Access, Session, control};
use ringmark_tests::delivery::number;
use ringmark_tests::fixture::{Fixture, SOON};
use ringmark_tests::recording::read;
use ringmark_tests::{Running, wait_until};

const KNOBS: &str = ringmark_tests::program!("knobs");
const RINGMARK: &str = "mode=overwrite,ring=1M";

fn start(fixture: &Fixture) -> Running {
    let later = fixture.path("later");
    fixture.start(
        KNOBS,
        RINGMARK,
        &format!("1000000000 500 {}", later.display()),
    )
}

fn ask(fixture: &Fixture, text: &str) -> String {
    let session = Session::open(&fixture.ring_file(), Access::Control).unwrap();
    let answer = control::request(&session, text, SOON).unwrap();
    assert_eq!(answer.status, 0, "{text}: {}", answer.text);
    answer.text
}

/// Newest round of the events of this name.
fn newest(fixture: &Fixture, name: &str) -> Option<u64> {
    let dump = read(&[fixture.ring_file()]);
    let rounds = dump.events().filter_map(|item| match item {
        Output::Event(event) if event.name() == name.as_bytes() => number(&event, "round"),
        _ => None,
    });
    rounds.max()
}

/// Two rounds of this event from now on.
fn wait_for_more(fixture: &Fixture, name: &str) {
    let before = newest(fixture, name);
    wait_until(SOON, name, || {
        (newest(fixture, name) > before.map(|n| n + 2)).then_some(())
    });
}

/// None of this event while two rounds of another one pass.
fn expect_none(fixture: &Fixture, name: &str, while_comes: &str) {
    // What was under way is through.
    wait_for_more(fixture, while_comes);
    let before = newest(fixture, name);
    wait_for_more(fixture, while_comes);
    assert_eq!(newest(fixture, name), before, "{name}");
}

#[test]
fn events_are_switched_while_they_come() {
    let fixture = Fixture::new("switch");
    let program = start(&fixture);
    wait_for_more(&fixture, "knobs.info");
    assert_eq!(ask(&fixture, "ping"), "pong");
    assert_eq!(ask(&fixture, "disable knobs.i*"), "matched=1");
    expect_none(&fixture, "knobs.info", "knobs.warn");
    assert_eq!(ask(&fixture, "enable knobs.info"), "matched=1");
    wait_for_more(&fixture, "knobs.info");
    assert_eq!(ask(&fixture, "disable knobs.* category=noise"), "matched=2");
    expect_none(&fixture, "knobs.trace", "knobs.info");
    assert_eq!(ask(&fixture, "enable knobs.* level=debug"), "matched=4");
    wait_for_more(&fixture, "knobs.debug");
    expect_none(&fixture, "knobs.trace", "knobs.debug");
    // The types that parts of spans have stay on.
    let said = ask(&fixture, "filter knobs::db=warn");
    assert!(said.starts_with("enabled="), "{said}");
    expect_none(&fixture, "knobs.debug", "knobs.error");
    let said = ask(&fixture, "disable knobs.inf");
    assert!(said.starts_with("matched=0 closest=knobs.info,"), "{said}");
    drop(program.kill().unwrap());
}

#[test]
fn a_wrong_request_changes_nothing_and_says_why() {
    let fixture = Fixture::new("wrong");
    let program = start(&fixture);
    let session = Session::open(&fixture.ring_file(), Access::Control).unwrap();
    for (text, expected) in [
        ("", "unknown request"),
        ("explode", "unknown request \"explode\""),
        ("disable", "a pattern is missing"),
        ("disable * level=loud", "level: found \"loud\""),
        ("disable * colour=red", "unknown option \"colour=red\""),
        ("filter knobs=loud", "filter: found \"knobs=loud\""),
    ] {
        let answer = control::request(&session, text, SOON).unwrap();
        assert_eq!(answer.status, 1, "{text}");
        assert!(answer.text.contains(expected), "{text}: {}", answer.text);
    }
    wait_for_more(&fixture, "knobs.trace");
    drop(program.kill().unwrap());
    let error = control::request(&session, "ping", SOON).unwrap_err();
    assert!(error.to_string().contains("ended"), "{error}");
}

#[test]
fn a_pattern_speaks_of_types_that_come_later_too() {
    for (how, comes) in [("disable", false), ("enable", true)] {
        let fixture = Fixture::new("later");
        let program = start(&fixture);
        wait_for_more(&fixture, "knobs.info");
        let said = ask(&fixture, &format!("{how} knobs.late"));
        assert!(said.starts_with("matched=0"), "{said}");
        fs::write(fixture.path("later"), "").unwrap();
        if comes {
            wait_until(SOON, "the new type", || spans(&fixture).then_some(()));
        } else {
            wait_for_more(&fixture, "knobs.info");
            wait_for_more(&fixture, "knobs.info");
            assert!(
                !spans(&fixture),
                "a type that was switched off before it was there"
            );
        }
        drop(program.kill().unwrap());
    }
}

/// Whether there is a record of the late span.
fn spans(fixture: &Fixture) -> bool {
    let dump = read(&[fixture.ring_file()]);
    dump.events()
        .any(|item| matches!(item, Output::Event(e) if e.name() == b"knobs.late"))
}

#[test]
fn a_helper_thread_only_with_control() {
    for (control, expected) in [("on", 2), ("off", 1)] {
        let fixture = Fixture::new("helper");
        let ringmark = format!("{RINGMARK},control={control}");
        let program = fixture.start(KNOBS, &ringmark, "1000000000 500");
        wait_for_more(&fixture, "knobs.info");
        let tasks = fs::read_dir(format!("/proc/{}/task", program.id())).unwrap();
        assert_eq!(tasks.count(), expected, "control={control}");
        let session = Session::open(&fixture.ring_file(), Access::Control).unwrap();
        let answer = control::request(&session, "ping", SOON);
        assert_eq!(answer.is_ok(), control == "on", "{answer:?}");
        drop(program.kill().unwrap());
    }
}
