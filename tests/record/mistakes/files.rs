//! Mistakes with files: programs without sites, damaged dumps, filters that let nothing pass.

use std::fs;
use std::path::Path;

use ringmark_format::block::BlockHeader;
use ringmark_tests::fixture::Fixture;
use ringmark_tests::functions::{SITES, compile, tool};
use ringmark_tests::require_tools;

use super::{Mistake, expect_one, expect_told};

/// Its path as a command line can have it.
fn path(fixture: &Fixture, name: &str) -> String {
    fixture.path(name).display().to_string()
}

#[test]
fn programs_that_cannot_be_traced() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = builds("mistakes-programs");
    let rebuild = REBUILD;
    let rows: [(&str, &[&str], &[&str]); 2] = [
        (
            "nested nosuch*",
            &["5 functions can be traced, \"nosuch*\" matches none of them"],
            &["rebuild"],
        ),
        (
            "short",
            &[
                "none of its 5 patch sites can be used",
                "2 bytes of NOP, expected 5",
                rebuild,
            ],
            &["no patchable functions"],
        ),
    ];
    for (words, said, unsaid) in rows {
        let words = format!("functions {}/{words}", path(&fixture, "."));
        let words = &words;
        expect_told(
            &fixture,
            &[Mistake {
                words,
                code: 4,
                said,
                unsaid,
            }],
        );
    }
}

const REBUILD: &str = "rebuild with -fpatchable-function-entry=5";

/// A directory with one program, built in two ways of which the first has sites that can be used.
fn builds(label: &str) -> Fixture {
    let fixture = Fixture::new(label);
    let builds = [
        ("nested", SITES),
        ("short", "-O2 -fpatchable-function-entry=2"),
    ];
    for (name, flags) in builds {
        let _ = compile(&fixture, "nested.c", name, flags);
    }
    fixture
}

#[test]
fn programs_of_which_nothing_was_traced_are_named() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = builds("mistakes-started");
    let words = format!(
        "run --kind graph --all-functions -- {}",
        path(&fixture, "short")
    );
    let said = ["2 bytes of NOP, expected 5", REBUILD];
    expect_told(
        &fixture,
        &[Mistake {
            words: &words,
            code: 1,
            said: &said,
            unsaid: &[],
        }],
    );
    let mut command = tool(&fixture);
    let words = format!(
        "run --kind graph --all-functions -- {}",
        path(&fixture, "nested")
    );
    command
        .args(words.split(' '))
        .env("RINGMARK_LIB", "/nowhere");
    let said = ["is not there", "RINGMARK_LIB names them: correct it"];
    let mistake = Mistake {
        words: &words,
        code: 4,
        said: &said,
        unsaid: &[],
    };
    let _ = expect_one(&fixture, &mut command, &mistake);
}

/// Records the program with all kinds of events.
fn recorded(fixture: &Fixture) {
    let words = format!(
        "run -o good.rmk -- {} events 60",
        ringmark_tests::program!("quiet")
    );
    expect_told(
        fixture,
        &[Mistake {
            words: &words,
            code: 0,
            said: &["60 events"],
            unsaid: &[],
        }],
    );
}

#[test]
fn a_dump_without_its_beginning_has_no_dates() {
    let fixture = Fixture::new("mistakes-damaged");
    recorded(&fixture);
    let mut dump = fs::read(fixture.path("good.rmk")).expect("a dump");
    dump[BlockHeader::BYTES + 8] ^= 0xff;
    fs::write(fixture.path("flipped.rmk"), dump).expect("a file");
    expect_told(
        &fixture,
        &[Mistake {
            words: "cat flipped.rmk",
            code: 1,
            said: &[
                "its header is damaged or missing, so dates and durations of its events are not known",
                "????-??-??T??:??:??",
                "quiet.text",
            ],
            unsaid: &["1970"],
        }],
    );
}

#[test]
fn filters_that_let_nothing_pass() {
    let fixture = Fixture::new("mistakes-filters");
    recorded(&fixture);
    expect_told(
        &fixture,
        &[
            Mistake {
                words: "cat good.rmk --name quiet.span --where took>1h",
                code: 0,
                said: &[
                    "--where took>1h holds for none of the 10 events that the other options let pass",
                ],
                unsaid: &["matches nothing", "closest names"],
            },
            Mistake {
                words: "cat good.rmk --name quiet.span --where nosuch=3",
                code: 0,
                said: &[
                    "--where nosuch=3 holds for none of the 10 events",
                    "fields there: seq, took",
                ],
                unsaid: &["matches nothing", "closest names"],
            },
            Mistake {
                words: "cat good.rmk --name nosuch --where seq>1",
                code: 0,
                said: &["--name \"nosuch\" matches nothing shown; closest names: "],
                unsaid: &["--where"],
            },
            Mistake {
                words: "cat good.rmk --where took>soon",
                code: 2,
                said: &["a number after < <= > >=, perhaps with ns, us, ms, s, min or h"],
                unsaid: &[],
            },
        ],
    );
    let mut command = tool(&fixture);
    let words = "cat good.rmk --where took>=0.001us";
    command.args(words.split(' '));
    let mistake = Mistake {
        words,
        code: 0,
        said: &["quiet.span"],
        unsaid: &["quiet.text"],
    };
    let shown = expect_one(&fixture, &mut command, &mistake).stdout_text();
    assert!((1..=10).contains(&shown.lines().count()), "{shown}");
    assert!(Path::new(&fixture.path("good.rmk")).exists());
}
