//! What a person meets first: the first help, a program named without `--`, a process by its name, a word that
//! is no command, a trace of which most is lost.

use crate::common;

use common::{LIMIT, Stage, expect};
use ringmark_tests::{run, wait_until};

#[test]
fn the_first_help_fits_a_small_screen() {
    let stage = Stage::new("first-help");
    let nothing = stage.run(&[]).expect_code(2).stderr_text();
    for words in [&["-h"][..], &["help"]] {
        let help = stage.run(words).expect_code(0).stdout_text();
        assert_eq!(help, nothing);
        // The prompt needs a line.
        assert!(help.lines().count() < 24, "{help}");
        assert!(help.lines().all(|line| line.len() <= 80), "{help}");
    }
    let all = stage.run(&["--help"]).expect_code(0).stdout_text();
    assert!(all.contains("Exit codes") && all.lines().count() > 24);
}

#[test]
fn a_program_needs_no_dashes_before_it() {
    let stage = Stage::new("no-dashes");
    let program = common::traced_program();
    let told = stage.run(&["run", "-o", "a.rmk", &program, "1", "50", "0"]);
    let _ = expect(told, 0, "50 events");
    let _ = stage
        .run(&["record", "-o", "b.rmk", &program, "1", "50", "0"])
        .expect_code(0);
    for file in ["a.rmk", "b.rmk"] {
        let lines = stage.run(&["cat", file]).expect_code(0).stdout_text();
        assert_eq!(lines.lines().count(), 50, "{file}");
    }
    // Options after the program are its own.
    let shown = stage.run(&["run", "-o", "c.rmk", "echo", "--wide", "-n"]);
    assert_eq!(shown.stdout_text(), "--wide -n\n");
}

#[test]
fn a_process_is_found_by_its_name() {
    let stage = Stage::new("by-name");
    let (name, other) = ("rmk-test-by-name", stage.path("rmk-test-by-name"));
    std::fs::copy(common::traced_program(), &other).unwrap();
    let mut command = stage.command(&other);
    let command = command.args(["1", "50", "0", "hold=60000"]);
    let running = ringmark_tests::Running::start(command.env("RINGMARK", "1")).unwrap();
    let lines = wait_until(LIMIT, "its events", || {
        let words = ["cat", "-p", name, "--json"];
        let shown = run(&mut stage.ringmark(&words), LIMIT).unwrap();
        let lines = common::json_lines(&shown);
        (lines.len() == 50).then_some(lines)
    });
    assert!(lines.iter().all(|line| line["pid"] == running.id()));
    let none = stage.run(&["cat", "-p", "rmk-no-such-program"]);
    let _ = expect(none, 2, "no process is called \"rmk-no-such-program\"");
}

#[test]
fn a_word_that_is_no_command_has_the_tip_that_fits() {
    let stage = Stage::new("tips");
    for (word, tip) in [
        ("start", "ringmark trace start -p PID"),
        ("version", "ringmark --version"),
        ("attach", "ringmark record -p PID --kind graph"),
        ("reprot", "report"),
    ] {
        let _ = expect(stage.run(&[word]), 2, tip);
    }
}

#[test]
fn a_report_says_what_it_is_of() {
    let stage = Stage::new("report-of");
    stage.record("a.rmk", &["1", "60", "0", "mix"]);
    let text = stage.run(&["report", "a.rmk"]).expect_code(0).stdout_text();
    let of = text.lines().nth(1).unwrap();
    assert!(
        of.starts_with("of traced [") && of.ends_with("Z: a.rmk"),
        "{text}"
    );
}

#[test]
fn a_trace_of_which_most_is_lost_does_not_look_whole() {
    let stage = Stage::new("most-lost");
    let program = common::traced_program();
    let mut command = stage.ringmark(&["record", "-o", "a.rmk", "--", &program]);
    command.args(["1", "20000", "0"]);
    command.env(
        "RINGMARK",
        "mode=discard,ring=8K,page=4K,session=1M,keep=always",
    );
    let _ = run(&mut command, LIMIT).unwrap();
    let json = stage.run(&["verify", "a.rmk", "--json"]).stdout_text();
    let found: serde_json::Value = serde_json::from_str(&json).unwrap();
    let gone = found["lost"].as_u64().unwrap() + found["missing"].as_u64().unwrap();
    let text = stage.run(&["verify", "a.rmk"]).stdout_text();
    let line = text
        .lines()
        .find(|line| line.starts_with("complete: "))
        .unwrap();
    assert_eq!(line.contains("% are not here"), gone > 0, "{text}");
    if gone > 0 {
        let percent = gone as f64 * 100.0 / 20_000.0;
        assert!(
            line.contains(&format!("{percent:.1} % are not here")),
            "{text}"
        );
    }
}
