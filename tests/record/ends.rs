//! Promise: every end of a program but a clean one leaves its evidence, and what is told of how it
//! ended is true or "not known".

#[path = "ends/watched.rs"]
mod watched;

use std::process::Command;

use ringmark_decoder::{Dump, Output, Value};
use ringmark_format::panics;

use ringmark_tests::fixture::{Fixture, SOON};
use ringmark_tests::recording::read;
use ringmark_tests::run;

const PROGRAM: &str = ringmark_tests::program!("ways_to_end");

/// A way to end, its exit code as a shell gives it, and whether it is a clean end.
const WAYS: [(&str, i32, bool); 13] = [
    ("return-0", 0, true),
    ("return-2", 2, false),
    ("exit-1", 1, false),
    ("_exit-0", 0, false),
    ("abort", 134, false),
    ("segv", 139, false),
    ("kill", 137, false),
    ("panic", 101, false),
    ("panic-abort", 134, false),
    ("caught", 0, true),
    ("overflow", 134, false),
    ("close-return-0", 0, true),
    ("close-segv", 139, false),
];

/// The program that ends in this way. A panic that aborts needs one of its own: all of a program is
/// built for it.
fn exe(way: &str) -> &'static str {
    match way {
        "panic-abort" => ringmark_tests::program!("panics_abort"),
        _ => PROGRAM,
    }
}

/// Message, file and line of each panic that was recorded, in order.
fn recorded_panics(dump: &Dump) -> Vec<(String, String, u64)> {
    let text = |value: Option<Value<'_>>| match value {
        Some(Value::Str(text)) => String::from_utf8_lossy(text).into_owned(),
        other => panic!("no text: {other:?}"),
    };
    let events = dump.events().filter_map(|item| match item {
        Output::Event(event) if event.category() == panics::CATEGORY.as_bytes() => Some(event),
        _ => None,
    });
    let panics = events.map(|event| {
        assert_eq!(event.name(), panics::NAME.as_bytes());
        let names: Vec<_> = event.args().map(|(field, _)| field.name.clone()).collect();
        assert_eq!(names, panics::FIELDS.map(|name| name.as_bytes().to_vec()));
        let mut values = event.args().map(|(_, value)| value);
        let (message, file) = (text(values.next()), text(values.next()));
        match values.next() {
            Some(Value::U64(line)) => (message, file, line),
            other => panic!("no line: {other:?}"),
        }
    });
    panics.collect()
}

/// A panic is a record with its message and place, whether it is caught or not, in whatever order
/// hooks were set, as long as they call the one before.
#[test]
fn panics_are_recorded_before_their_message_is_printed() {
    let empty: &[&str] = &["the pool is empty"];
    for (way, options, code, messages, is_printed) in [
        ("panic", "", 101, empty, true),
        ("panic-string", "", 101, &["the pool has 0 of 4"][..], true),
        ("panic-other", "", 101, &[""][..], true),
        ("panic-abort", "", 134, empty, true),
        ("panic-hook-before", "", 101, empty, false),
        ("panic-hook-after", "", 101, &[][..], false),
        ("caught", "", 0, &["a request failed"][..], true),
        ("caught-exit-1", "", 1, &["a request failed"][..], true),
        ("panic", ",panic=off", 101, &[][..], true),
        ("return-2", "", 2, &[][..], false),
    ] {
        let fixture = Fixture::new("panics");
        let ringmark = format!("mode=overwrite,keep=always{options}");
        let done = run(&mut program(&fixture, &ringmark, way), SOON);
        let said = done.unwrap().expect_code(code).stderr_text();
        assert_eq!(said.contains("panicked at"), is_printed, "{way}: {said}");
        let recorded = recorded_panics(&read(&fixture.ring_files()));
        let found: Vec<_> = recorded
            .iter()
            .map(|(message, ..)| message.as_str())
            .collect();
        assert_eq!(found, messages, "{way}{options}");
        for (_, file, line) in &recorded {
            assert!(
                file.ends_with("ways_to_end.rs") | file.ends_with("main.rs") && *line > 10,
                "{file}:{line}"
            );
        }
    }
}

/// Without core files.
fn program(fixture: &Fixture, ringmark: &str, way: &str) -> Command {
    let mut command = fixture.program("prlimit", ringmark);
    command.args(["--core=0", exe(way), way]);
    command
}

/// What stays of a program that no recorder watches.
#[test]
fn every_end_but_a_clean_one_keeps_the_ring_file() {
    for (way, code, is_clean) in WAYS {
        // In discard mode nothing goes that no reader took.
        for (ringmark, always) in [
            ("mode=overwrite", false),
            ("mode=overwrite,keep=always", true),
            ("mode=discard", true),
        ] {
            let fixture = Fixture::new("ends");
            let _ = run(&mut program(&fixture, ringmark, way), SOON)
                .unwrap()
                .expect_code(code);
            let files = fixture.ring_files();
            let stays = always || !is_clean;
            assert_eq!(files.len(), usize::from(stays), "{way}, {ringmark}");
            if stays {
                let events = read(&files).verify().events;
                assert!(events >= 1, "{way}, {ringmark}: {events} events");
            }
        }
    }
}

#[test]
fn keep_never_removes_it_at_every_exit() {
    for (way, code) in [("return-0", 0), ("return-2", 2), ("panic", 101)] {
        let fixture = Fixture::new("ends-never");
        let _ = run(
            &mut program(&fixture, "mode=overwrite,keep=never", way),
            SOON,
        )
        .unwrap()
        .expect_code(code);
        assert!(fixture.ring_files().is_empty(), "{way}");
    }
}
