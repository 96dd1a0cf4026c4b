//! Where `export` writes when no file is named, and what becomes of a file that is there.

use crate::common;

use std::fs;

use common::Stage;
use ringmark_tests::Finished;

/// Runs `ringmark` with these arguments, which must end with this status.
fn run(stage: &Stage, arguments: &str, status: i32) -> Finished {
    let arguments: Vec<_> = arguments.split(' ').collect();
    let done = stage.run(&arguments);
    assert_eq!(done.code(), status, "{arguments:?}: {}", done.stderr_text());
    done
}

/// The names of the files of a stage that are no trace files, in order.
fn outputs(stage: &Stage) -> Vec<String> {
    let entries = fs::read_dir(&*stage.dir).unwrap().map(Result::unwrap);
    let names = entries.map(|entry| entry.file_name().into_string().unwrap());
    let mut names: Vec<_> = names
        .filter(|name| !name.ends_with(".rmk") && name != "sessions")
        .collect();
    names.sort();
    names
}

#[test]
fn an_output_is_named_after_its_trace() {
    let stage = Stage::new("export-names");
    let trace = stage.record("g.rmk", &["1", "10", "0", "mix"]);
    fs::create_dir(stage.path("far")).unwrap();
    fs::copy(&trace, stage.path("far/far.away.rmk")).unwrap();
    fs::copy(&trace, stage.path("ringmark.rmk")).unwrap();
    let expected = [
        ("export g.rmk", "g.pftrace"),
        ("export g.rmk --format folded", "g.folded"),
        ("export g.rmk --format ctf", "g.ctf"),
        ("export g.rmk --format csv", "g.csv"),
        ("export far/far.away.rmk", "far.away.pftrace"),
        ("export", "ringmark.pftrace"),
        (
            "export far/../far/far.away.rmk g.rmk --format folded",
            "ringmark.folded",
        ),
    ];
    for (arguments, name) in expected {
        let done = run(&stage, arguments, 0);
        let text = done.stderr_text();
        assert!(text.contains(&format!("{name}: ")), "{text}");
        assert!(stage.path(name).exists(), "{name}");
    }
    let mut names = expected.map(|(_, name)| name).to_vec();
    names.push("far");
    names.sort_unstable();
    assert_eq!(outputs(&stage), names);
}

#[test]
fn a_file_that_nobody_named_is_set_aside() {
    let stage = Stage::new("export-old");
    stage.record("g.rmk", &["1", "10", "0", "mix"]);
    fs::write(stage.path("g.pftrace"), "mine").unwrap();
    let text = run(&stage, "export g.rmk", 0).stderr_text();
    assert!(
        text.contains("g.pftrace: was there, and is g.pftrace.old now"),
        "{text}"
    );
    assert_eq!(fs::read(stage.path("g.pftrace.old")).unwrap(), b"mine");
    assert_ne!(fs::read(stage.path("g.pftrace")).unwrap(), b"mine");
    // One that is named is what the user wants to have written.
    fs::write(stage.path("named"), "mine").unwrap();
    let text = run(&stage, "export g.rmk -o named", 0).stderr_text();
    assert!(!text.contains("was there"), "{text}");
    fs::create_dir(stage.path("g.ctf")).unwrap();
    let text = run(&stage, "export g.rmk --format ctf", 2).stderr_text();
    assert!(
        text.contains("g.ctf: is there, expected a new folder"),
        "{text}"
    );
    // What cannot be read takes nothing from its place.
    fs::write(stage.path("bad.rmk"), "no trace").unwrap();
    fs::write(stage.path("bad.pftrace"), "mine").unwrap();
    let _ = stage.run(&["export", "bad.rmk"]);
    let expected = [
        "bad.pftrace",
        "g.ctf",
        "g.pftrace",
        "g.pftrace.old",
        "named",
    ];
    assert_eq!(outputs(&stage), expected);
}

#[test]
fn a_trace_without_events_says_so() {
    let stage = Stage::new("export-empty");
    stage.record("e.rmk", &["1", "0", "0", "mix"]);
    let page = format!("report e.rmk --html -o {}", stage.path("page").display());
    for words in ["export e.rmk -o -", &page] {
        let text = run(&stage, words, 0).stderr_text();
        assert!(text.contains("the trace has no events"), "{text}");
    }
}

#[test]
fn a_page_of_a_part_without_events_says_that_nothing_matches() {
    let stage = Stage::new("page-of-nothing");
    stage.record("e.rmk", &["1", "9", "0", "mix"]);
    let page = format!("report e.rmk --html -o {}", stage.path("page").display());
    for (options, said) in [
        (
            "--name nothing.here",
            "--name \"nothing.here\" matches nothing shown",
        ),
        ("--to 1ns", "no event is in that time"),
    ] {
        let text = run(&stage, &format!("{page} {options}"), 0).stderr_text();
        assert!(text.contains(said) && !text.contains("no events"), "{text}");
    }
}

/// A trace may be the only one: nothing that is no trace takes its place.
#[test]
fn a_trace_is_not_replaced() {
    let stage = Stage::new("export-same");
    let trace = stage.record("g.rmk", &["1", "10", "0", "mix"]);
    let before = fs::read(&trace).unwrap();
    for arguments in [
        "export g.rmk -o g.rmk",
        "export g.rmk --format csv -o ./g.rmk",
        "export g.rmk --format folded -o g.rmk",
        "report g.rmk --html -o g.rmk",
        "profile --for 1ms -p 1 --html g.rmk",
    ] {
        let text = run(&stage, arguments, 2).stderr_text();
        assert!(text.contains("g.rmk: is a trace file"), "{text}");
    }
    assert_eq!(fs::read(&trace).unwrap(), before);
    assert_eq!(outputs(&stage), [""; 0]);
}
