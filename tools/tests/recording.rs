//! `record` and `run`: exit status, environment, signals, what they leave behind.

use crate::common;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::process::Command;

use common::{LIMIT, Stage, expect, traced_program};
use ringmark_tests::{Finished, Running, run, wait_until};
use rustix::process::Signal;

/// The numbers of `verify --json`.
fn verified(stage: &Stage, files: &[&str]) -> serde_json::Value {
    let found = stage.run(&[&["verify", "--json"], files].concat());
    serde_json::from_str(&found.stdout_text())
        .unwrap_or_else(|e| panic!("{e}: {}", found.stderr_text()))
}

fn status(stage: &Stage) -> serde_json::Value {
    serde_json::from_slice(&fs::read(stage.path("status")).unwrap()).unwrap()
}

#[test]
fn exit_status_is_that_of_the_program() {
    let stage = Stage::new("status");
    for (script, code) in [
        ("exit 0", 0),
        ("exit 7", 7),
        ("kill -9 $$", 137),
        ("kill -TERM $$", 143),
    ] {
        for verb in ["record", "run"] {
            expect(
                stage.run(&[verb, "--", "sh", "-c", script]),
                code,
                "no session appeared",
            );
        }
    }
}

#[test]
fn everything_is_in_the_dump_and_the_ring_file_is_gone() {
    let stage = Stage::new("whole");
    let program = traced_program();
    let found = stage.run(&[
        "run",
        "--status-file",
        "status",
        "--",
        &program,
        "3",
        "500",
        "10",
        "mix",
    ]);
    let found = found.expect_code(0);
    assert!(
        found.stdout_text().contains("\"emitted\":1500"),
        "the program's own output is left alone"
    );
    assert!(
        found.stderr_text().contains("1,500 events in "),
        "{}",
        found.stderr_text()
    );
    let totals = verified(&stage, &["ringmark.rmk"]);
    assert_eq!(
        (&totals["events"], &totals["lost"], &totals["complete"]),
        (&1500.into(), &0.into(), &true.into())
    );
    assert_eq!(fs::read_dir(stage.path("sessions")).unwrap().count(), 0);
    let status = status(&stage);
    assert_eq!(
        (&status["complete"], &status["sessions"], &status["command"]),
        (&true.into(), &1.into(), &0.into())
    );
}

#[test]
fn a_program_that_ends_at_once_is_recorded() {
    let stage = Stage::new("at-once");
    for _ in 0..20 {
        stage.record("a.rmk", &["1", "10"]);
        assert_eq!(verified(&stage, &["a.rmk"])["events"], 10);
    }
}

#[test]
fn what_the_program_starts_is_recorded_too() {
    let stage = Stage::new("descendants");
    let program = traced_program();
    let script = format!("{program} 1 10 && (sh -c '{program} 1 20'; {program} 1 40 1000) & wait");
    let _ = stage
        .run(&["record", "--", "sh", "-c", &script])
        .expect_code(0);
    let totals = verified(&stage, &["ringmark.rmk"]);
    assert_eq!(
        (&totals["events"], &totals["sessions"]),
        (&70.into(), &3.into())
    );
}

#[test]
fn a_file_that_is_there_becomes_old() {
    let stage = Stage::new("old");
    stage.record("a.rmk", &["1", "10"]);
    stage.record("a.rmk", &["1", "20"]);
    assert_eq!(verified(&stage, &["a.rmk"])["events"], 20);
    assert_eq!(verified(&stage, &["a.rmk.old"])["events"], 10);
}

#[test]
fn the_users_settings_are_kept() {
    let stage = Stage::new("settings");
    let program = traced_program();
    let mut command = stage.ringmark(&["record", "--", &program, "1", "10"]);
    command
        .env("RINGMARK", "mode=overwrite,keep=always,clock=monotonic")
        .env("RINGMARK_TAGS", "team=blue");
    let _ = run(&mut command, LIMIT).unwrap().expect_code(0);
    let facts = stage.run(&["list", "-v", "ringmark.rmk"]).stdout_text();
    assert!(
        facts.contains("mode         overwrite\n") && facts.contains("clock        monotonic\n"),
        "{facts}"
    );
    assert_eq!(
        fs::read_dir(stage.path("sessions")).unwrap().count(),
        1,
        "kept, as the user said"
    );
    let listed = stage.run(&["list", "--json"]).stdout_text();
    assert!(
        listed.contains("\"team=blue\"") && listed.contains("\"run="),
        "{listed}"
    );
}

#[test]
fn a_dump_on_standard_output_is_whole() {
    let stage = Stage::new("stdout");
    let program = traced_program();
    let mut shell = stage.command("bash");
    let script = "\"$0\" record -o - -- \"$1\" 2 100 > a.rmk";
    let found = run(
        shell.args(["-c", script, env!("CARGO_BIN_EXE_ringmark"), &program]),
        LIMIT,
    )
    .unwrap();
    assert!(
        found
            .expect_code(0)
            .stderr_text()
            .contains("\"emitted\":200"),
        "the program's output moved aside"
    );
    assert_eq!(verified(&stage, &["a.rmk"])["events"], 200);
}

#[test]
fn codecs_give_the_same_events() {
    let stage = Stage::new("codecs");
    let program = traced_program();
    for codec in ["lz4", "delta"] {
        let arguments = [
            "record",
            "-o",
            codec,
            "--compress",
            codec,
            "--",
            &program,
            "2",
            "500",
            "20",
            "mix",
        ];
        let _ = stage.run(&arguments).expect_code(0);
        assert_eq!(verified(&stage, &[codec])["events"], 1000);
    }
}

/// A recording by pid of a program that would go on for long, after it has begun.
fn recording(stage: &Stage, extra: &[&str]) -> (Running, Running) {
    let traced = stage.start("mode=discard,ring=64K,page=4K", &["2", "10000000", "50"]);
    let pid = traced.id().to_string();
    let mut command = stage.ringmark(&[&["record", "-p", &pid, "-o", "a.rmk"], extra].concat());
    let recorder = Running::start(&mut command).unwrap();
    let size = || fs::metadata(stage.path("a.rmk")).map_or(0, |m| m.len());
    wait_until(LIMIT, "the first pages", || (size() > 20_000).then_some(()));
    (traced, recorder)
}

#[test]
fn an_interrupt_finishes_the_dump_and_another_recorder_goes_on() {
    let stage = Stage::new("interrupt");
    let (traced, recorder) = recording(&stage, &[]);
    recorder.signal(Signal::INT).unwrap();
    let _ = recorder.finish(LIMIT).expect_code(0);
    let pid = traced.id().to_string();
    let mut command = stage.ringmark(&["record", "-p", &pid, "-o", "b.rmk"]);
    let second = Running::start(&mut command).unwrap();
    wait_until(LIMIT, "the second dump", || {
        stage.path("b.rmk").exists().then_some(())
    });
    traced.kill().unwrap();
    let _ = second.finish(LIMIT).expect_code(0);
    let totals = verified(&stage, &["a.rmk", "b.rmk"]);
    assert_eq!(
        (&totals["missing"], &totals["lost"], &totals["damaged"]),
        (&0.into(), &0.into(), &0.into()),
        "{totals}"
    );
}

#[test]
fn a_killed_recorder_leaves_a_valid_prefix_and_loses_nothing() {
    let stage = Stage::new("killed");
    let (traced, recorder) = recording(&stage, &[]);
    recorder.kill().unwrap();
    let pid = traced.id().to_string();
    let mut command = stage.ringmark(&["record", "-p", &pid, "-o", "b.rmk"]);
    let second = Running::start(&mut command).unwrap();
    wait_until(LIMIT, "the second dump", || {
        stage.path("b.rmk").exists().then_some(())
    });
    traced.kill().unwrap();
    let _ = second.finish(LIMIT);
    let totals = verified(&stage, &["a.rmk", "b.rmk"]);
    assert_eq!(
        (&totals["missing"], &totals["conflicts"]),
        (&0.into(), &0.into()),
        "{totals}"
    );
}

#[test]
fn an_interrupt_reaches_the_program() {
    let stage = Stage::new("forward");
    let mut command = stage.ringmark(&[
        "record",
        "--",
        "sh",
        "-c",
        "trap 'exit 9' INT; touch ready; while :; do sleep 0.05; done",
    ]);
    let recorder = Running::start(&mut command).unwrap();
    // The recorder is the leader of its own process group: the program cannot get it otherwise.
    wait_until(LIMIT, "its trap", || {
        stage.path("ready").exists().then_some(())
    });
    recorder.signal(Signal::INT).unwrap();
    let _ = recorder.finish(LIMIT).expect_code(9);
}

/// As `nohup` and the background jobs of scripts start it.
#[test]
fn a_signal_that_is_ignored_at_the_start_stays_ignored() {
    let stage = Stage::new("ignored");
    let binary = env!("CARGO_BIN_EXE_ringmark");
    let script =
        format!("trap '' INT HUP; exec {binary} record -o a.rmk -- grep SigIgn /proc/self/status");
    let mut command = stage.command("sh");
    let done = run(command.args(["-c", &script]), LIMIT).expect("a shell");
    let said = done.stdout_text();
    let mask = said.trim().strip_prefix("SigIgn:").expect("a mask");
    let mask = u64::from_str_radix(mask.trim(), 16).expect("a mask");
    let is_ignored = |signal: Signal| mask >> (signal.as_raw() - 1) & 1 == 1;
    assert!(is_ignored(Signal::INT) && is_ignored(Signal::HUP), "{said}");
    assert!(!is_ignored(Signal::TERM), "{said}");
}

/// What it does then is its own decision: a shell goes on, and is recorded.
#[test]
fn each_interrupt_reaches_the_program() {
    let stage = Stage::new("again");
    let script = "n=0; trap 'n=$((n + 1)); touch told$n; [ $n -lt 3 ] || exit 9' INT; touch ready; \
                  while :; do sleep 0.05; done";
    let mut command = stage.ringmark(&["record", "--", "sh", "-c", script]);
    let recorder = Running::start(&mut command).unwrap();
    wait_until(LIMIT, "its trap", || {
        stage.path("ready").exists().then_some(())
    });
    // One that comes a moment after another is the same one, as `timeout` sends it; one that comes after the program
    // has ended ends the recorder.
    wait_until(LIMIT, "the last of several interrupts", || {
        let is_told = stage.path("told3").exists();
        let _ = (!is_told).then(|| recorder.signal(Signal::INT));
        is_told.then_some(())
    });
    let found: Finished = recorder.finish(LIMIT);
    assert_eq!(found.code(), 9);
    assert!(stage.path("told3").exists());
}

#[test]
fn rotation_keeps_the_newest_files_and_each_stands_alone() {
    let stage = Stage::new("rotate");
    let (traced, recorder) = recording(&stage, &["--rotate", "64K", "--keep", "3"]);
    let oldest = || Some(fs::metadata(stage.path("a.rmk.2")).ok()?.ino());
    let first = wait_until(LIMIT, "three files", oldest);
    // A fourth one came, and was not kept.
    wait_until(LIMIT, "one more", || (oldest()? != first).then_some(()));
    traced.kill().unwrap();
    let _ = recorder.finish(LIMIT);
    assert!(!stage.path("a.rmk.3").exists());
    for file in ["a.rmk.2", "a.rmk.1", "a.rmk"] {
        assert!(
            fs::metadata(stage.path(file)).unwrap().len() < 80_000,
            "{file}"
        );
        let totals = verified(&stage, &[file]);
        assert!(totals["events"].as_u64().unwrap() > 0, "{file}: {totals}");
        assert_eq!(totals["damaged"], 0, "{file}: {totals}");
    }
}

#[test]
fn a_full_dump_stops_with_a_notice() {
    let stage = Stage::new("max-size");
    let (_traced, recorder) = recording(&stage, &["--max-size", "50K"]);
    let found = recorder.finish(LIMIT);
    expect(found, 1, "stopped at ");
    assert!(fs::metadata(stage.path("a.rmk")).unwrap().len() <= 50 << 10);
    assert_eq!(verified(&stage, &["a.rmk"])["damaged"], 0);
}

#[test]
fn a_full_disk_is_told_once_and_the_program_goes_on() {
    let stage = Stage::new("full-disk");
    let program = traced_program();
    let arguments = [
        "record",
        "-o",
        "/dev/full",
        "--status-file",
        "status",
        "--",
        &program,
        "2",
        "2000",
        "50",
    ];
    // The program ended with 0; that its events are not on the disk is not hidden by it.
    let found = expect(stage.run(&arguments), 1, "No space left on device");
    assert!(found.stdout_text().contains("\"emitted\":4000"));
    assert_eq!(
        found.stderr_text().matches("No space left").count(),
        1,
        "{}",
        found.stderr_text()
    );
    assert_eq!(status(&stage)["complete"], false);
}

#[test]
fn deaths_leave_dumps() {
    let stage = Stage::new("on-death");
    fs::create_dir(stage.path("dumps")).unwrap();
    let mut command: Command = stage.ringmark(&["record", "--all", "--on-death", "dumps"]);
    let watch = Running::start(&mut command).unwrap();
    let traced = stage.start_with("mode=overwrite", &["1", "10", "0", "hold=60000"], 10);
    let maps = format!("/proc/{}/maps", watch.id());
    wait_until(LIMIT, "the watch's hold", || {
        fs::read_to_string(&maps)
            .ok()?
            .contains(".ring")
            .then_some(())
    });
    traced.kill().unwrap();
    let dump = wait_until(LIMIT, "the dump", || {
        let entry = fs::read_dir(stage.path("dumps")).ok()?.flatten().next()?;
        (entry.metadata().ok()?.len() > 2000).then(|| entry.path().display().to_string())
    });
    watch.signal(Signal::INT).unwrap();
    expect(watch.finish(LIMIT), 0, ": ended by SIGKILL: ");
    assert_eq!(verified(&stage, &[&dump])["events"], 10);
}

#[test]
fn snapshots_do_not_disturb() {
    let stage = Stage::new("snapshot");
    let traced = stage.start(
        "mode=overwrite,ring=64K,page=4K",
        &["1", "100000000", "100"],
    );
    let pid = traced.id().to_string();
    // They hold nothing of a program that got no processor for 50 ms, and all of one that has just begun.
    wait_until(LIMIT, "the last 50 ms, which are a part", || {
        let all = ["snapshot", "-p", &pid, "-o", "all.rmk"];
        let _ = stage.run(&all).expect_code(0);
        let last = ["snapshot", "-p", &pid, "--last", "50ms", "-o", "last.rmk"];
        let _ = stage.run(&last).expect_code(0);
        let _ = stage.run(&["verify", "all.rmk"]).expect_code(0);
        let number = |file, key: &str| verified(&stage, &[file])[key].as_u64().unwrap();
        let is_part = number("all.rmk", "pages") > number("last.rmk", "pages");
        (is_part && number("last.rmk", "events") > 0).then_some(())
    });
    expect(Stage::new("none").run(&["snapshot"]), 4, "no sessions in ");
}
