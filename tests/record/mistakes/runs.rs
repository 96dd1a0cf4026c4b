//! Mistakes with programs that are started: what does not trace itself, what does not start, what
//! has a session of its own.

use std::fs;

use ringmark_tests::fixture::Fixture;
use ringmark_tests::functions::tool;

use super::{Mistake, expect_told};

const EMIT: &str = ringmark_tests::program!("emit");

#[test]
fn a_recording_of_nothing_replaces_nothing() {
    let fixture = Fixture::new("mistakes-empty");
    record_events(&fixture, 100);
    fs::write(fixture.path("good.rmk.old"), "older").expect("a file");
    let good = fs::read(fixture.path("good.rmk")).expect("a dump");
    let as_it_was = "good.rmk: nothing was written, it is as it was";
    let by_builder = [
        "no session appeared",
        "starts with a builder",
        "'ringmark profile -- CMD' shows",
        as_it_was,
    ];
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

/// A mistake in the name of the directory is told, and what to do if there is none.
#[test]
fn a_directory_for_trace_files_of_the_dead_is_there() {
    let fixture = Fixture::new("mistakes-deaths");
    fs::write(fixture.path("file"), "").expect("a file");
    let is_refused = |words, said: &'static [&'static str]| Mistake {
        words,
        code: 2,
        said,
        unsaid: &["holding"],
    };
    let mistakes = [
        is_refused(
            "record --all --on-death deaths/today",
            &["deaths/today: is not there", "mkdir -p deaths/today"],
        ),
        is_refused(
            "record --all --on-death file",
            &["file: is no directory, expected one"],
        ),
    ];
    expect_told(&fixture, &mistakes);
    assert!(!fixture.path("deaths").exists());
}
