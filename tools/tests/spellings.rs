//! Promise: old spellings of commands and options do what the new ones do, and help shows the new
//! ones alone. Manual pages have the variables that commands use.

mod common;

use std::fs;

use common::Stage;
use ringmark_tests::workspace_root;

/// Arguments in the old and in the new spelling; the exit code and a piece of the text on standard
/// error that both have; the spelling that help must not show.
struct Spelling {
    old: &'static str,
    new: &'static str,
    code: i32,
    text: &'static str,
    hidden: &'static str,
}

const fn spelling(
    old: &'static str,
    new: &'static str,
    code: i32,
    text: &'static str,
    hidden: &'static str,
) -> Spelling {
    Spelling {
        old,
        new,
        code,
        text,
        hidden,
    }
}

/// No process has this number.
const NO_PID: &str = "4194305";

const WRONG_PATTERN: &str = "--filter: pattern";
const NO_RECORDS: &str = "no function records";

const SPELLINGS: [Spelling; 13] = [
    spelling(
        "run --tracer graph -F ( --match regex -- true",
        "run --kind graph -F ( --match regex -- true",
        2,
        WRONG_PATTERN,
        "--tracer",
    ),
    spelling(
        "run --tracer function -F ( --match regex -- true",
        "run --kind function -F ( --match regex -- true",
        2,
        WRONG_PATTERN,
        "--tracer",
    ),
    spelling(
        "run --tracer profile -F ( --match regex -- true",
        "run --kind profile -F ( --match regex -- true",
        2,
        WRONG_PATTERN,
        "--tracer",
    ),
    spelling(
        "record --tracer graph -F ( --match regex -- true",
        "record --kind graph -F ( --match regex -- true",
        2,
        WRONG_PATTERN,
        "--tracer",
    ),
    spelling(
        "graph --depth 2",
        "graph --max-depth 2",
        3,
        NO_RECORDS,
        "--depth",
    ),
    spelling(
        "graph -D 2",
        "graph --max-depth 2",
        3,
        NO_RECORDS,
        "--depth",
    ),
    spelling(
        "graph --min-us 1.5",
        "graph --min-time 1500ns",
        3,
        NO_RECORDS,
        "--min-us",
    ),
    spelling("graph -t 100", "graph -t 100us", 3, NO_RECORDS, "--min-us"),
    spelling(
        "run --min-us 0 -- true",
        "run --min-time 1ns -- true",
        2,
        "but no kind",
        "--min-us",
    ),
    spelling(
        "record -t 2 -- true",
        "record -t 2us -- true",
        2,
        "but no kind",
        "--min-us",
    ),
    spelling(
        "trace set --min-us 5 -p PID",
        "trace set --min-time 5us -p PID",
        4,
        "PID",
        "--min-us",
    ),
    spelling(
        "trace start -t 5 -F x -p PID",
        "trace start -t 5us -F x -p PID",
        4,
        "PID",
        "--min-us",
    ),
    spelling(
        "trace tracers -p PID",
        "trace status -p PID",
        4,
        "PID",
        "  tracers",
    ),
];

#[test]
fn old_spellings_are_accepted_and_hidden() {
    let stage = Stage::new("spellings");
    let _ = stage.record("ringmark.rmk", &["1", "1"]);
    for Spelling {
        old,
        new,
        code,
        text,
        hidden,
    } in SPELLINGS
    {
        let run = |line: &str| {
            let line = line.replace("PID", NO_PID);
            let words: Vec<_> = line.split(' ').collect();
            stage.run(&words).expect_code(code).stderr_text()
        };
        let (told, same) = (run(old), run(new));
        assert_eq!(told, same, "{old}");
        assert!(told.contains(&text.replace("PID", NO_PID)), "{old}: {told}");
        let mut words: Vec<_> = new.split(' ').take_while(|w| !w.starts_with('-')).collect();
        if hidden.starts_with(' ') {
            words.pop();
        }
        words.push("--help");
        let help = stage.run(&words).expect_code(0).stdout_text();
        assert!(!help.contains(hidden), "{words:?} shows {hidden}:\n{help}");
    }
}

#[test]
fn a_time_without_a_unit_is_in_microseconds_as_before() {
    let stage = Stage::new("spellings-bad");
    for bad in ["-1", "ten", "1 parsec"] {
        let option = format!("--min-time={bad}");
        let told = stage.run(&["graph", &option]).expect_code(2).stderr_text();
        assert!(told.contains("such as"), "{told}");
    }
}

/// The subcommands that a help text lists.
fn listed(help: &str) -> Vec<String> {
    // Commands stand in groups. Arguments begin with a bracket, second lines further right.
    let lines = help.lines().take_while(|line| *line != "Options:");
    let names = lines.filter_map(|line| line.strip_prefix("  "));
    let names = names.filter_map(|line| line.split(' ').next());
    let is_name = |name: &&str| name.starts_with(|c: char| c.is_ascii_lowercase());
    let names = names.filter(|name| is_name(name) && *name != "help");
    names.map(str::to_owned).collect()
}

/// Words of before, in texts that people read.
const STALE: [&str; 5] = [
    "lossless",
    "dump",
    "counter clock",
    "tracepoint",
    "page turn",
];

#[test]
fn every_help_fits_80_columns_and_has_no_stale_word() {
    let stage = Stage::new("columns");
    let mut left = vec![Vec::<String>::new()];
    let mut seen = 0;
    while let Some(words) = left.pop() {
        let line: Vec<&str> = words.iter().map(String::as_str).chain(["--help"]).collect();
        let help = stage.run(&line).expect_code(0).stdout_text();
        for text in help.lines() {
            assert!(text.chars().count() <= 80, "{line:?}: {text}");
        }
        for stale in STALE {
            assert!(!help.contains(stale), "{line:?} says {stale}");
        }
        left.extend(
            listed(&help)
                .into_iter()
                .map(|name| [&words[..], &[name]].concat()),
        );
        seen += 1;
    }
    assert!(seen >= 30, "{seen} texts");
}
