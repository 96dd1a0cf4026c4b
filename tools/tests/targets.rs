//! Bad input: processes, options and patterns. Exit code, and what is told.

use crate::common;

use std::fs;
use std::process::Command;

use common::{LIMIT, Stage, expect, json_lines, traced_program};
use ringmark_tests::{Running, run};

#[test]
fn processes_that_are_not_there_or_not_traced() {
    let stage = Stage::new("no-target");
    let mut sleep = stage.command("sleep");
    let sleep = Running::start(sleep.arg("60")).unwrap();
    let pid = sleep.id().to_string();
    // Beyond the largest pid that a kernel gives out.
    let gone = "4194305";
    for command in [
        &["record"][..],
        &["cat"],
        &["snapshot"],
        &["list"],
        &["events"],
        &["events", "--enable", "x"],
        &["events", "--disable", "x"],
    ] {
        let with = |pid| [command, &["-p", pid]].concat();
        expect(
            stage.run(&with(gone)),
            4,
            &format!("ringmark: pid {gone}: no such process"),
        );
        expect(
            stage.run(&with(&pid)),
            4,
            &format!("ringmark: pid {pid}: not traced"),
        );
        expect(stage.run(&with("0")), 2, "found 0, expected a process id");
        expect(stage.run(&with("self")), 2, "no process is called");
    }
    assert!(!stage.path("ringmark.rmk").exists(), "no dump of nothing");
}

#[test]
fn a_dead_process_with_data_left_is_read() {
    let stage = Stage::new("dead");
    let traced = stage.start_with("mode=discard", &["1", "10", "0", "hold=60000"], 10);
    let pid = traced.id().to_string();
    traced.kill().unwrap();
    let listed = json_lines(&stage.run(&["list", "--json"]).expect_code(0));
    assert_eq!(listed[0]["state"], "dead");
    let seen = stage.run(&["cat", "-p", &pid]).expect_code(0);
    assert_eq!(seen.stdout_text().lines().count(), 10);
    let _ = stage
        .run(&["record", "-p", &pid, "-o", "dead.rmk"])
        .expect_code(0);
    let verified = stage
        .run(&["verify", "dead.rmk"])
        .expect_code(0)
        .stdout_text();
    assert!(
        verified.contains("events: 10\n") && verified.contains("complete: yes"),
        "{verified}"
    );
}

#[test]
fn a_second_recorder_is_refused_by_name() {
    let stage = Stage::new("second");
    let traced = stage.start("mode=discard", &["1", "100000", "1000"]);
    let pid = traced.id().to_string();
    let mut first = stage.ringmark(&["record", "-p", &pid, "-o", "first.rmk"]);
    let first = Running::start(&mut first).unwrap();
    // A recorder writes the session's block once it holds the session.
    ringmark_tests::wait_until(LIMIT, "the first recorder", || {
        let dump = std::fs::metadata(stage.path("first.rmk")).ok()?;
        (dump.len() > 0).then_some(())
    });
    let text = format!("already being recorded by pid {}", first.id());
    expect(
        stage.run(&["record", "-p", &pid, "-o", "second.rmk"]),
        4,
        &text,
    );
}

#[test]
fn sizes_and_durations_need_sense() {
    let stage = Stage::new("sizes");
    for (option, value, text) in [
        ("--rotate", "0", "expected at least one byte"),
        (
            "--rotate",
            "3X",
            "expected a size such as 65536, 64K, 16M or 2G",
        ),
        ("--max-size", "-1", "expected a size"),
        ("--max-size", "many", "expected a size"),
        ("--max-size", "9999999999T", "expected less than"),
    ] {
        expect(stage.run(&["record", option, value, "--", "true"]), 2, text);
    }
    for (value, text) in [
        ("0s", "expected more than zero"),
        ("10", "expected a duration such as 10s, 500ms, 2m or 7d"),
        ("1 year", "expected a duration"),
    ] {
        expect(stage.run(&["snapshot", "--last", value]), 2, text);
    }
    expect(
        stage.run(&["record", "--keep", "3", "--", "true"]),
        2,
        "--rotate <SIZE>",
    );
    expect(
        stage.run(&["record", "--rotate", "1M", "-o", "-", "--", "true"]),
        2,
        "standard output cannot be rotated",
    );
}

#[test]
fn command_lines_that_contradict_themselves() {
    let stage = Stage::new("usage");
    expect(stage.run(&["record"]), 2, "required");
    expect(
        stage.run(&["record", "-p", "1", "--all"]),
        2,
        "cannot be used with",
    );
    expect(
        stage.run(&["record", "-p", "1", "--", "true"]),
        2,
        "cannot be used with",
    );
    // A process of a trace file.
    expect(stage.run(&["cat", "file", "-p", "1"]), 3, "file: cannot be");
    expect(stage.run(&["run"]), 2, "required");
    expect(
        stage.run(&["frobnicate"]),
        2,
        "unrecognized subcommand 'frobnicate'",
    );
    expect(
        stage.run(&["run", "--kind", "x", "--", "true"]),
        2,
        "[possible values: graph, function, profile]",
    );
    expect(
        stage.run(&["record", "-o", "/", "--", "true"]),
        2,
        "/: is a directory, expected a trace file to write",
    );
    expect(
        stage.run(&["record", "-o", "no/such/dir/f", "--", "true"]),
        2,
        "no directory no/such/dir",
    );
    expect(
        stage.run(&["record", "--all", "--on-death", "/dev/null"]),
        2,
        "/dev/null: is no directory",
    );
    let _ = stage.run(&[]).expect_code(2);
}

#[test]
fn programs_that_do_not_start() {
    let stage = Stage::new("not-started");
    stage.write("data", b"no program");
    for verb in ["record", "run"] {
        expect(
            stage.run(&[verb, "--", "no-such-program"]),
            127,
            "no-such-program: cannot be started",
        );
        expect(
            stage.run(&[verb, "--", "./data"]),
            126,
            "./data: cannot be started",
        );
    }
}

#[test]
fn filters_that_match_nothing_name_what_is_close() {
    let stage = Stage::new("filters");
    stage.record("a.rmk", &["1", "60", "mix"]);
    let found = expect(
        stage.run(&["cat", "a.rmk", "--name", "emiter.tik"]),
        0,
        "closest names: emitter.tick",
    );
    assert_eq!(found.stdout_text(), "");
    for (option, value, text) in [
        ("--from", "noon", "expected a time such as"),
        ("--to", "-x", "expected a time such as"),
        (
            "--level",
            "loud",
            "expected error, warn, info, debug or trace",
        ),
        ("--tid", "main", "expected a thread id"),
        ("--where", "seq", "expected FIELD=VALUE"),
        ("--where", "seq<x", "a number after"),
        ("--time", "local", "possible values: wall, relative, delta"),
        ("-n", "all", "invalid digit"),
    ] {
        expect(stage.run(&["cat", "a.rmk", option, value]), 2, text);
    }
}

#[test]
fn patterns_that_match_nothing_name_what_is_close() {
    let stage = Stage::new("patterns");
    let traced = stage.start("mode=overwrite", &["1", "100000", "1000", "mix"]);
    let pid = traced.id().to_string();
    expect(
        stage.run(&["events", "--disable", "emitter.ticc", "-p", &pid]),
        4,
        "closest names: emitter.tick",
    );
    expect(
        stage.run(&["events", "--disable", "a b", "-p", &pid]),
        2,
        "without spaces",
    );
    expect(
        stage.run(&["events", "--disable", "", "-p", &pid]),
        2,
        "without spaces",
    );
    expect(
        stage.run(&["events", "--disable", "*", "--level", "loud", "-p", &pid]),
        2,
        "expected error, warn",
    );
    expect(stage.run(&["events", "--disable", "*"]), 2, "--pid <PID>");
    let both = ["events", "--disable", "*", "--enable", "x", "-p", &pid];
    expect(stage.run(&both), 2, "cannot be used with");
    let with_file = ["events", "a.rmk", "--disable", "*", "-p", &pid];
    expect(stage.run(&with_file), 2, "cannot be used with");
    let without = ["events", "--level", "warn", "-p", &pid];
    expect(stage.run(&without), 2, "required");
}

#[test]
fn control_off_is_told() {
    let stage = Stage::new("control-off");
    let traced = stage.start("mode=overwrite,control=off", &["1", "1", "0", "hold=60000"]);
    let pid = traced.id().to_string();
    let enable = ["events", "--enable", "*", "-p", &pid];
    expect(stage.run(&enable), 4, "control=off");
}

#[test]
fn a_bad_setting_is_told_by_record() {
    let stage = Stage::new("bad-setting");
    let program = traced_program();
    let mut command = stage.ringmark(&["record", "--status-file", "status", "--", "touch", "x"]);
    let found = run(command.env("RINGMARK", "mode=sideways"), LIMIT).unwrap();
    let text = "RINGMARK=mode=sideways: mode: found \"sideways\", expected discard or overwrite";
    expect(found, 2, text);
    assert!(
        !stage.path("x").exists(),
        "checked before anything is started"
    );
    assert!(
        fs::read_to_string(stage.path("status"))
            .unwrap()
            .contains("sideways")
    );
    let hidden = "RINGMARK=mode=upward";
    let record = [
        "record",
        "--status-file",
        "status",
        "--",
        "env",
        hidden,
        &program,
        "1",
        "1",
    ];
    let text = "tracing is off in pid ";
    let found = expect(stage.run(&record), 0, text);
    assert!(
        found.stderr_text().contains("mode: found \"upward\""),
        "{}",
        found.stderr_text()
    );
    let status: serde_json::Value =
        serde_json::from_slice(&fs::read(stage.path("status")).unwrap()).unwrap();
    assert_eq!(
        (&status["complete"], &status["command"]),
        (&false.into(), &0.into())
    );
}

#[test]
fn a_bad_setting_is_told_by_list() {
    let stage = Stage::new("bad-setting-listed");
    let mut lives = stage.command(traced_program());
    let lives = Running::start(
        lives
            .args(["1", "1", "0", "hold=60000"])
            .env("RINGMARK", "ring=3"),
    )
    .unwrap();
    let pid = lives.id().to_string();
    let row = ringmark_tests::wait_until(LIMIT, "its note", || {
        let listed = stage.run(&["list"]).stdout_text();
        listed
            .lines()
            // The program writes its note after it has made the file.
            .find(|line| line.starts_with(&pid) && !line.trim_end().ends_with('-'))
            .map(str::to_owned)
    });
    assert!(
        row.contains("off") && row.contains("ring: found \"3\", expected a multiple of 4K"),
        "{row}"
    );
}

#[test]
fn ring_files_that_are_none_are_told_and_left() {
    let stage = Stage::new("bad-ring");
    let sessions = stage.path("sessions");
    fs::create_dir(&sessions).unwrap();
    fs::set_permissions(
        &sessions,
        std::os::unix::fs::PermissionsExt::from_mode(0o700),
    )
    .unwrap();
    fs::write(sessions.join("1-abc.ring"), [7; 8192]).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", sessions.join("2-abc.ring")).unwrap();
    let found = expect(stage.run(&["list"]), 0, "1-abc.ring");
    assert!(
        found
            .stderr_text()
            .contains("2-abc.ring: open: is a symbolic link"),
        "links are no sessions"
    );
    let _ = stage.run(&["clean"]).expect_code(0);
    assert!(sessions.join("1-abc.ring").exists());
    fs::set_permissions(
        &sessions,
        std::os::unix::fs::PermissionsExt::from_mode(0o777),
    )
    .unwrap();
    expect(stage.run(&["clean"]), 4, "lets others write, expected 700");
}

#[test]
fn a_closed_pipe_is_fine_and_quiet() {
    let stage = Stage::new("closed-pipe");
    stage.record("a.rmk", &["1", "5000", "mix"]);
    for command in ["cat a.rmk", "cat a.rmk --json", "--help"] {
        let mut shell = stage.command("bash");
        let script = format!("\"$0\" {command} | true; echo ${{PIPESTATUS[0]}}");
        let found = run(
            shell.args(["-c", &script, env!("CARGO_BIN_EXE_ringmark")]),
            LIMIT,
        )
        .unwrap();
        assert_eq!(
            (found.stdout_text().as_str(), found.stderr_text().as_str()),
            ("0\n", ""),
            "{command}"
        );
    }
}

#[test]
fn a_dump_into_a_closed_pipe_is_fine_and_quiet() {
    let stage = Stage::new("closed-dump");
    let traced = stage.start("mode=discard", &["2", "1000000", "10"]);
    let mut shell: Command = stage.command("bash");
    let script = format!(
        "\"$0\" record -p {} -o - | head -c 10 > /dev/null; echo ${{PIPESTATUS[0]}}",
        traced.id()
    );
    let found = run(
        shell.args(["-c", &script, env!("CARGO_BIN_EXE_ringmark")]),
        LIMIT,
    )
    .unwrap();
    assert_eq!(
        (found.stdout_text().as_str(), found.stderr_text().as_str()),
        ("0\n", "")
    );
}
