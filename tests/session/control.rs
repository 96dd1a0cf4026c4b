//! Promise: events are switched on and off in a running program, those that it does not know yet
//! too; without control there is no thread of ours in it.

use std::fs;

use ringmark_decoder::Output;
use ringmark_reader::{Access, Session, control};
use ringmark_tests::account::number;
use ringmark_tests::recording::read;
use ringmark_tests::stage::{SOON, Stage};
use ringmark_tests::{Running, wait_until};

const KNOBS: &str = env!("CARGO_BIN_EXE_knobs");
const RINGMARK: &str = "mode=overwrite,ring=1M";

fn start(stage: &Stage) -> Running {
    let later = stage.path("later");
    stage.start(
        KNOBS,
        RINGMARK,
        &format!("1000000000 500 {}", later.display()),
    )
}

fn ask(stage: &Stage, text: &str) -> String {
    let session = Session::open(&stage.ring_file(), Access::Control).unwrap();
    let answer = control::request(&session, text, SOON).unwrap();
    assert_eq!(answer.status, 0, "{text}: {}", answer.text);
    answer.text
}

/// Newest round of the events of this name.
fn newest(stage: &Stage, name: &str) -> Option<u64> {
    let dump = read(&[stage.ring_file()]);
    let rounds = dump.events().filter_map(|item| match item {
        Output::Event(event) if event.name() == name.as_bytes() => number(&event, "round"),
        _ => None,
    });
    rounds.max()
}

/// Two rounds of this event from now on.
fn wait_for_more(stage: &Stage, name: &str) {
    let before = newest(stage, name);
    wait_until(SOON, name, || {
        (newest(stage, name) > before.map(|n| n + 2)).then_some(())
    });
}

/// None of this event while two rounds of another one pass.
fn expect_none(stage: &Stage, name: &str, while_comes: &str) {
    // What was under way is through.
    wait_for_more(stage, while_comes);
    let before = newest(stage, name);
    wait_for_more(stage, while_comes);
    assert_eq!(newest(stage, name), before, "{name}");
}

#[test]
fn events_are_switched_while_they_come() {
    let stage = Stage::new("switch");
    let program = start(&stage);
    wait_for_more(&stage, "knobs.info");
    assert_eq!(ask(&stage, "ping"), "pong");
    assert_eq!(ask(&stage, "disable knobs.i*"), "matched=1");
    expect_none(&stage, "knobs.info", "knobs.warn");
    assert_eq!(ask(&stage, "enable knobs.info"), "matched=1");
    wait_for_more(&stage, "knobs.info");
    assert_eq!(ask(&stage, "disable knobs.* category=noise"), "matched=2");
    expect_none(&stage, "knobs.trace", "knobs.info");
    assert_eq!(ask(&stage, "enable knobs.* level=debug"), "matched=4");
    wait_for_more(&stage, "knobs.debug");
    expect_none(&stage, "knobs.trace", "knobs.debug");
    // The types that parts of spans have stay on.
    let said = ask(&stage, "filter knobs::db=warn");
    assert!(said.starts_with("enabled="), "{said}");
    expect_none(&stage, "knobs.debug", "knobs.error");
    let said = ask(&stage, "disable knobs.inf");
    assert!(said.starts_with("matched=0 closest=knobs.info,"), "{said}");
    drop(program.kill().unwrap());
}

#[test]
fn a_wrong_request_changes_nothing_and_says_why() {
    let stage = Stage::new("wrong");
    let program = start(&stage);
    let session = Session::open(&stage.ring_file(), Access::Control).unwrap();
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
    wait_for_more(&stage, "knobs.trace");
    drop(program.kill().unwrap());
    let error = control::request(&session, "ping", SOON).unwrap_err();
    assert!(error.to_string().contains("ended"), "{error}");
}

#[test]
fn a_pattern_speaks_of_types_that_come_later_too() {
    for (how, comes) in [("disable", false), ("enable", true)] {
        let stage = Stage::new("later");
        let program = start(&stage);
        wait_for_more(&stage, "knobs.info");
        let said = ask(&stage, &format!("{how} knobs.late"));
        assert!(said.starts_with("matched=0"), "{said}");
        fs::write(stage.path("later"), "").unwrap();
        if comes {
            wait_until(SOON, "the new type", || spans(&stage).then_some(()));
        } else {
            wait_for_more(&stage, "knobs.info");
            wait_for_more(&stage, "knobs.info");
            assert!(
                !spans(&stage),
                "a type that was switched off before it was there"
            );
        }
        drop(program.kill().unwrap());
    }
}

/// Whether there is a record of the late span.
fn spans(stage: &Stage) -> bool {
    let dump = read(&[stage.ring_file()]);
    dump.events()
        .any(|item| matches!(item, Output::Event(e) if e.name() == b"knobs.late"))
}

#[test]
fn a_helper_thread_only_with_control() {
    for (control, expected) in [("on", 2), ("off", 1)] {
        let stage = Stage::new("helper");
        let ringmark = format!("{RINGMARK},control={control}");
        let program = stage.start(KNOBS, &ringmark, "1000000000 500");
        wait_for_more(&stage, "knobs.info");
        let tasks = fs::read_dir(format!("/proc/{}/task", program.id())).unwrap();
        assert_eq!(tasks.count(), expected, "control={control}");
        let session = Session::open(&stage.ring_file(), Access::Control).unwrap();
        let answer = control::request(&session, "ping", SOON);
        assert_eq!(answer.is_ok(), control == "on", "{answer:?}");
        drop(program.kill().unwrap());
    }
}
