//! Promise: long output on a terminal goes through the pager that the person has, and through none
//! elsewhere, if none is wanted, or if none is there.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use ringmark_tests::fixture::Fixture;
use ringmark_tests::functions::LIMIT;
use ringmark_tests::terminal::on_terminal;
use ringmark_tests::{binary, run};

/// A trace file, and a pager of its own that is called `less`.
struct Stage {
    fixture: Fixture,
}

impl Stage {
    fn new(label: &str) -> Self {
        let stage = Self {
            fixture: Fixture::new(label),
        };
        let mut record = stage.ringmark("record -o a.rmk --");
        record.args([ringmark_tests::program!("orders"), "3", "5"]);
        let _ = run(&mut record, LIMIT).expect("ringmark").expect_code(0);
        let folder = stage.fixture.path("bin");
        fs::create_dir(&folder).expect("a folder");
        for (name, words) in [
            ("less", "echo \"usual $LESS\"; exec cat"),
            ("other", "echo other; exec cat"),
            ("impatient", "exec true"),
        ] {
            let file = folder.join(name);
            fs::write(&file, format!("#!/bin/sh\n{words}\n")).expect("a file");
            fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("a program");
        }
        stage
    }

    fn ringmark(&self, words: &str) -> Command {
        let mut command = self.fixture.command(binary::path());
        command.current_dir(self.fixture.path("."));
        command.args(words.split_whitespace());
        for name in ["RINGMARK_PAGER", "PAGER", "LESS", "LV"] {
            command.env_remove(name);
        }
        let path = format!("{}:/usr/bin:/bin", self.fixture.path("bin").display());
        command.env("PATH", path);
        command
    }

    /// The first line on a terminal, with these variables.
    fn first_line(&self, words: &str, variables: &[(&str, &str)]) -> String {
        let mut command = self.ringmark(words);
        command.envs(variables.iter().copied());
        let screen = on_terminal(&mut command, 80);
        screen.lines().next().unwrap_or_default().to_owned()
    }
}

#[test]
fn the_first_that_is_named_is_taken() {
    let stage = Stage::new("pager");
    let expect = |words: &str, variables: &[(&str, &str)], expected: &str| {
        let line = stage.first_line(words, variables);
        assert_eq!(line, expected, "{words}, {variables:?}");
    };
    let cat = "cat a.rmk";
    expect(cat, &[], "usual FRX");
    expect(cat, &[("LESS", "R")], "usual R");
    expect(cat, &[("PAGER", "other")], "other");
    expect(
        cat,
        &[("PAGER", "less"), ("RINGMARK_PAGER", "other")],
        "other",
    );
    expect(cat, &[("PAGER", "LESS=S less")], "usual S");
    for words in ["report a.rmk", "events a.rmk", "list a.rmk"] {
        expect(words, &[], "usual FRX");
    }
}

#[test]
fn none_where_none_is_wanted_or_there() {
    let stage = Stage::new("no-pager");
    let expect_none = |words: &str, variables: &[(&str, &str)]| {
        let line = stage.first_line(words, variables);
        let is_date = line.contains("local time") || line.contains("UTC");
        assert!(is_date, "{words}, {variables:?}: {line:?}");
    };
    let cat = "cat a.rmk --color never";
    expect_none(&format!("{cat} --no-pager"), &[]);
    expect_none(cat, &[("RINGMARK_PAGER", ""), ("PAGER", "other")]);
    expect_none(cat, &[("PAGER", "cat")]);
    expect_none(cat, &[("PAGER", "no-such-pager -x")]);
    expect_none(cat, &[("PAGER", "/no/such/pager")]);
    expect_none(cat, &[("PATH", "/no/such/folder")]);
    expect_none("cat a.rmk --follow -n 3 --color never", &[]);
    let piped = run(&mut stage.ringmark(cat), LIMIT).expect("ringmark");
    assert!(!piped.stdout_text().contains("usual"), "{piped:?}");
    let is_json = stage.first_line("cat a.rmk --json", &[]);
    assert!(is_json.starts_with('{'), "{is_json}");
}

#[test]
fn a_pager_may_leave_early() {
    let stage = Stage::new("pager-leaves");
    let line = stage.first_line("cat a.rmk", &[("PAGER", "impatient")]);
    assert_eq!(line, "");
}
