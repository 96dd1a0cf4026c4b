//! Mistakes with programs that are started: what does not trace itself, what does not start, what
//! has a session of its own.

use std::fs;
use std::process::Command;

use ringmark_tests::fixture::{Fixture, SOON};
use ringmark_tests::functions::tool;
use ringmark_tests::{Running, wait_until};

use super::{Mistake, expect_told};

const EMIT: &str = env!("CARGO_BIN_EXE_emit");

#[test]
fn a_recording_of_nothing_replaces_nothing() {
    let fixture = Fixture::new("mistakes-empty");
    record_events(&fixture, 100);
    fs::write(fixture.path("good.rmk.old"), "older").expect("a file");
    let good = fs::read(fixture.path("good.rmk")).expect("a dump");
    let as_it_was = "good.rmk: nothing was written, it is as it was";
    let by_builder = ["no session appeared", "starts with a builder", as_it_was];
    let not_loaded = ["nothing recorded", "ended with 127", as_it_was];
    let rows: [(&str, i32, &[&str], &[&str]); 4] = [
        ("run -o good.rmk -- true", 0, &by_builder, &[]),
        ("record -o good.rmk -- true", 0, &by_builder, &[]),
        (
            "run -o good.rmk -- sh -c exit\u{a0}127",
            127,
            &not_loaded,
            &["no session appeared"],
        ),
        (
            "run -o new.rmk -- true",
            0,
            &["no session appeared"],
            &["as it was"],
        ),
    ];
    for (words, code, said, unsaid) in rows {
        let mut command = tool(&fixture);
        let words_of = words.split(' ').map(|word| word.replace('\u{a0}', " "));
        command.args(words_of);
        let mistake = Mistake {
            words,
            code,
            said,
            unsaid,
        };
        let _ = super::expect_one(&fixture, &mut command, &mistake);
        assert_eq!(
            fs::read(fixture.path("good.rmk")).expect("a dump"),
            good,
            "{words}"
        );
        assert_eq!(
            fs::read(fixture.path("good.rmk.old")).expect("a file"),
            b"older"
        );
    }
    assert!(!fixture.path("new.rmk").exists(), "no dump of nothing");
    // What holds something does replace it.
    record_events(&fixture, 5);
    assert_eq!(
        fs::read(fixture.path("good.rmk.old")).expect("a dump"),
        good
    );
}

/// Records this many events of a program to `good.rmk`.
fn record_events(fixture: &Fixture, events: u32) {
    let words = format!("record -o good.rmk -- {EMIT} 1 {events}");
    let fine = Mistake {
        words: &words,
        code: 0,
        said: &[],
        unsaid: &["nothing"],
    };
    expect_told(fixture, &[fine]);
}

#[test]
fn a_directory_for_dumps_is_made() {
    let fixture = Fixture::new("mistakes-deaths");
    let directory = fixture.path("deaths/of/today");
    let mut command: Command = tool(&fixture);
    command
        .args(["record", "--all", "--on-death"])
        .arg(&directory);
    let recorder = Running::start(&mut command).expect("ringmark starts");
    wait_until(SOON, "the directory", || directory.is_dir().then_some(()));
    let finished = recorder.interrupt_after(std::time::Duration::ZERO, SOON);
    let finished = finished.expect_code(0);
    assert!(
        finished
            .stderr_text()
            .contains("today: made, for trace files"),
        "{finished:?}"
    );
}
