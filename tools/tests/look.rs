//! What is shown of dumps and of living sessions: `cat`, `verify`, `report`, `events`, `list`.

use std::fs;
use std::io::{BufRead, BufReader, Lines};
use std::process::{Child, ChildStdout, Command, Stdio};

use common::player::Player;
use common::{LIMIT, Stage, json_lines, traced_program};
use ringmark_decoder::parse_timestamp;
use ringmark_tests::{Running, wait_until};
use rustix::process::Signal;

use crate::common;

fn lines(stage: &Stage, arguments: &[&str]) -> Vec<String> {
    let found = stage.run(arguments).expect_code(0);
    found.stdout_text().lines().map(str::to_owned).collect()
}

#[test]
fn filters_show_what_they_say() {
    let stage = Stage::new("filters");
    stage.record("a.rmk", &["2", "600", "20", "mix"]);
    let count = |extra: &[&str]| lines(&stage, &[&["cat", "a.rmk"], extra].concat()).len();
    assert_eq!(count(&[]), 1200);
    assert_eq!(count(&["-n", "7"]), 7);
    assert_eq!(count(&["--name", "emitter.tick"]), 200);
    assert_eq!(
        count(&["--name", "emitter.t*", "--name", "emitter.job"]),
        600
    );
    assert_eq!(count(&["--level", "warn"]), 200);
    assert_eq!(count(&["--where", "seq=0", "--where", "thread=1"]), 1);
    assert_eq!(count(&["--where", "seq>=594", "--name", "emitter.tick"]), 2);
    assert_eq!(count(&["--where", "step=queued"]), 200);
    let tid = json_lines(&stage.run(&["cat", "a.rmk", "--json", "-n", "1"]))[0]["tid"].to_string();
    assert_eq!(count(&["--tid", &tid]), 600);
    let all = json_lines(&stage.run(&["cat", "a.rmk", "--json"]));
    let middle = all[600]["ts"].as_str().unwrap();
    let (before, after) = (count(&["--to", middle]), count(&["--from", middle]));
    assert_eq!(before + after, 1200);
    assert!(before <= 600 && before > 0, "{before}");
    assert_eq!(count(&["--from", "1h"]), 0);
}

/// A thread and a field that are not there are mistyped: an empty table would say that nothing happened.
#[test]
fn wrong_threads_and_columns_are_named() {
    let stage = Stage::new("wrong-words");
    stage.record("a.rmk", &["2", "60", "20", "mix"]);
    let tid = json_lines(&stage.run(&["cat", "a.rmk", "--json", "-n", "1"]))[0]["tid"].to_string();
    for words in [
        "cat a.rmk --tid 1",
        "cat a.rmk --tree --tid 1",
        "report a.rmk --tid 1",
        "report a.rmk --paths --tid 1",
        "report a.rmk --by name --tid 1",
        "report a.rmk --slowest 1 --tid 1",
        "export a.rmk --tid 1 -o -",
        "export a.rmk --format csv --tid 1 -o -",
    ] {
        let words: Vec<_> = words.split(' ').collect();
        let told = common::expect(stage.run(&words), 2, "--tid: no thread 1; there are: ");
        assert!(told.stderr_text().contains(&tid), "{words:?}: {told:?}");
    }
    for name in ["nosuch", "arg_nosuch", "name,nosuch"] {
        let told = stage.run(&["report", "a.rmk", "--by", name]);
        let told = common::expect(told, 2, "nosuch: no row has a value in it");
        assert!(told.stderr_text().contains("seq"), "{told:?}");
    }
    let rows = lines(&stage, &["report", "a.rmk", "--by", "step"]);
    let last = rows.last().unwrap();
    assert!(
        last.starts_with('-'),
        "what has no step comes last: {rows:?}"
    );
}

#[test]
fn times_as_wanted() {
    let stage = Stage::new("times");
    stage.record("a.rmk", &["1", "10", "1000"]);
    let first = |line: &String| line.split_ascii_whitespace().next().unwrap().to_owned();
    let wall: Vec<_> = lines(&stage, &["cat", "a.rmk"]).iter().map(first).collect();
    let wall: Vec<_> = wall
        .iter()
        .map(|text| parse_timestamp(text).expect("RFC 3339"))
        .collect();
    assert!(wall.is_sorted());
    let seconds = |kind| -> Vec<f64> {
        let shown = lines(&stage, &["cat", "a.rmk", "--time", kind]);
        shown
            .iter()
            .map(|line| first(line).parse().unwrap())
            .collect()
    };
    let (relative, delta) = (seconds("relative"), seconds("delta"));
    assert!(
        relative.is_sorted() && relative[0] >= 0.0 && relative[9] < 60.0,
        "{relative:?}"
    );
    let between = wall[9] - wall[0];
    let near = |a: f64, b: f64| (a - b).abs() < 1e-8 * 20.0;
    assert!(near(relative[9] - relative[0], between as f64 / 1e9));
    assert!(near(delta.iter().sum(), between as f64 / 1e9), "{delta:?}");
}

#[test]
fn json_has_the_fields_of_the_contract() {
    let stage = Stage::new("json");
    stage.record("a.rmk", &["1", "60", "0", "mix"]);
    let events = json_lines(&stage.run(&["cat", "a.rmk", "--json"]).expect_code(0));
    for event in &events {
        for key in [
            "v", "session", "host", "service", "ring", "seq", "ts", "ts_ns", "t_ns", "pid", "tid",
            "thread", "name", "kind", "level", "target", "span", "parent", "args",
        ] {
            assert!(event.get(key).is_some(), "{key} is missing in {event}");
        }
    }
    let detail = events
        .iter()
        .find(|e| e["name"] == "emitter.detail")
        .unwrap();
    assert_eq!(
        (&detail["args"]["big"], &detail["exact"]["big"]),
        (&(u64::MAX - 5).into(), &"18446744073709551610".into()),
        "beyond 2^53: as text, too"
    );
    let verified = &json_lines(&stage.run(&["verify", "a.rmk", "--json"]).expect_code(0))[0];
    for key in [
        "events",
        "lost",
        "overwritten",
        "pages",
        "damaged",
        "first_ts_ns",
        "last_ts_ns",
        "rings",
        "complete",
    ] {
        assert!(
            verified.get(key).is_some(),
            "{key} is missing in {verified}"
        );
    }
}

#[test]
fn losses_are_lines_and_exit_1() {
    let stage = Stage::new("losses");
    let mut traced = stage.command(traced_program());
    traced
        .args(["1", "20000"])
        .env("RINGMARK", "mode=discard,ring=16K,page=4K");
    let pid = Running::start(&mut traced).unwrap();
    let id = pid.id().to_string();
    let _ = pid.finish(LIMIT).expect_code(0);
    let _ = stage
        .run(&["record", "-p", &id, "-o", "a.rmk"])
        .expect_code(1);
    let found = stage.run(&["cat", "a.rmk", "--json"]).expect_code(1);
    let all = json_lines(&found);
    let lost: u64 = all
        .iter()
        .filter(|e| e["kind"] == "lost")
        .map(|e| e["count"].as_u64().unwrap())
        .sum();
    let events = all.iter().filter(|e| e["kind"] != "lost").count() as u64;
    assert_eq!(events + lost, 20_000);
    assert!(all.iter().any(|e| e["cause"] == "ring full"));
    assert!(
        stage
            .run(&["cat", "a.rmk"])
            .stdout_text()
            .contains(" LOST ")
    );
    let _ = stage.run(&["cat", "a.rmk", "-n", "1"]).expect_code(1);
}

#[test]
fn overwritten_alone_is_fine() {
    let stage = Stage::new("overwritten");
    let traced = stage.start(
        "mode=overwrite,ring=16K,page=4K",
        &["1", "20000", "0", "hold=60000"],
    );
    let pid = traced.id().to_string();
    wait_until(LIMIT, "all events", || {
        let _ = stage
            .run(&["snapshot", "-p", &pid, "-o", "a.rmk"])
            .expect_code(0);
        let shown = json_lines(&stage.run(&["verify", "a.rmk", "--json"]).expect_code(0));
        let sum = shown[0]["events"].as_u64()? + shown[0]["overwritten"].as_u64()?;
        (sum == 20_000 && shown[0]["overwritten"] != 0).then_some(())
    });
}

/// What follows a process or a file, and is ended with it.
struct Follower {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Follower {
    fn start(stage: &Stage, arguments: &[&str]) -> Self {
        let mut command: Command = stage.ringmark(&[&["cat", "--follow"], arguments].concat());
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    /// The next line, as soon as it is there.
    fn next(&mut self) -> String {
        self.lines.next().expect("a line").unwrap()
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, Signal::INT).unwrap();
        let _ = self.child.wait().unwrap();
    }
}

#[test]
fn follow_shows_each_event_before_the_next_one_comes() {
    let stage = Stage::new("follow");
    let mut player = Player::start(&stage);
    player.play("place 0");
    let mut follower = Follower::start(&stage, &["-p", &player.id().to_string()]);
    for n in 0..50 {
        let line = follower.next();
        assert!(
            line.ends_with(&format!("emitter.place n={n}")),
            "{n}: {line}"
        );
        player.play(&format!("place {}", n + 1));
    }
}

#[test]
fn follow_shows_each_event_once_and_ends_with_the_process() {
    let stage = Stage::new("follow-once");
    let traced = stage.start("mode=overwrite", &["3", "1500", "200", "mix", "hold=500"]);
    let found = stage
        .run(&["cat", "--follow", "-p", &traced.id().to_string(), "--json"])
        .expect_code(0);
    let mut seen: Vec<_> = json_lines(&found)
        .iter()
        .map(|e| (e["ring"].to_string(), e["seq"].as_u64().unwrap()))
        .collect();
    assert_eq!(seen.len(), 4500);
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 4500);
}

#[test]
fn follow_reads_a_dump_that_grows() {
    let stage = Stage::new("follow-file");
    let traced = stage.start("mode=discard,ring=64K,page=4K", &["2", "10000000", "100"]);
    let pid = traced.id().to_string();
    let mut recorder = stage.ringmark(&["record", "-p", &pid, "-o", "a.rmk"]);
    let _recorder = Running::start(&mut recorder).unwrap();
    wait_until(LIMIT, "the dump", || {
        (fs::metadata(stage.path("a.rmk")).ok()?.len() > 0).then_some(())
    });
    let mut follower = Follower::start(&stage, &["a.rmk"]);
    for _ in 0..3000 {
        let _ = follower.next();
    }
}

#[test]
fn event_types_go_off_and_on() {
    let stage = Stage::new("switch");
    let traced = stage.start("mode=overwrite", &["1", "1000000", "500", "mix"]);
    let pid = traced.id().to_string();
    let states = || json_lines(&stage.run(&["events", "-p", &pid, "--json"]).expect_code(0));
    let is_on = |name: &str| {
        states()
            .iter()
            .filter(|t| t["name"] == name)
            .all(|t| t["on"] == true)
    };
    assert!(is_on("emitter.text") && is_on("emitter.work"));
    let text = ["events", "-p", &pid, "--category", "text"];
    let switch = |words: &[&str]| lines(&stage, &[&text[..], words].concat());
    let off = switch(&["--disable", "emitter.*"]);
    assert_eq!(off, ["1 event type off"]);
    assert!(!is_on("emitter.text") && is_on("emitter.work"));
    let newest = |name: &str| {
        let shown = stage.run(&["cat", "-p", &pid, "--name", name, "--json"]);
        json_lines(&shown)
            .last()
            .map(|e| e["seq"].as_u64().unwrap())
    };
    let last = newest("emitter.text");
    // The same thread goes on with the others.
    let begun = newest("emitter.work");
    wait_until(LIMIT, "events of the other type", || {
        (newest("emitter.work") > begun.map(|seq| seq + 20)).then_some(())
    });
    assert_eq!(newest("emitter.text"), last, "off means off");
    let on = switch(&["--enable", "*", "--level", "warn"]);
    assert_eq!(on, ["1 event type on"]);
    wait_until(LIMIT, "new events", || {
        (newest("emitter.text") > last).then_some(())
    });
    let types = states();
    let text = types.iter().find(|t| t["name"] == "emitter.text").unwrap();
    assert_eq!(
        (&text["level"], &text["category"], &text["target"]),
        (&"warn".into(), &"text".into(), &"traced".into())
    );
    assert_eq!(text["fields"], serde_json::json!(["text: str", "seq: u64"]));
}

#[test]
fn list_tells_where_a_dump_comes_from_and_what_a_process_does() {
    let stage = Stage::new("list-details");
    stage.record("a.rmk", &["1", "60", "0", "mix"]);
    let words = ["list", "-v", "a.rmk"];
    let text = stage.run(&words).expect_code(0).stdout_text();
    for part in [
        "host ",
        "kernel ",
        "command line ",
        " 1 60 0 mix\n",
        "clock ",
        "start ",
        "end ",
    ] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
    let traced = stage.start("mode=discard", &["2", "1000000", "1000"]);
    let pid = traced.id().to_string();
    std::thread::sleep(std::time::Duration::from_millis(300));
    let words = ["list", "-v", "-p", &pid, "--interval", "500ms", "--json"];
    let sessions = json_lines(&stage.run(&words).expect_code(0));
    let [session] = &sessions[..] else {
        panic!("{sessions:?}")
    };
    let rings = session["threads"].as_array().expect("rings");
    assert_eq!(rings.len(), 2);
    for ring in rings {
        assert!(ring["events_per_s"].as_f64().unwrap() > 50.0, "{ring}");
        assert!(ring["window_s"].as_f64().unwrap() > 0.3, "{ring}");
        assert_eq!(ring["lost"], 0);
    }
}

#[test]
fn report_counts_and_sums_up() {
    let stage = Stage::new("report");
    stage.record("a.rmk", &["2", "60", "0", "mix"]);
    let rows = json_lines(&stage.run(&["report", "a.rmk", "--json"]).expect_code(0));
    let work = rows.iter().find(|r| r["name"] == "emitter.work").unwrap();
    assert_eq!((&work["count"], &work["of"]), (&20.into(), &"span".into()));
    let (total, max) = (
        work["total_ns"].as_u64().unwrap(),
        work["max_ns"].as_u64().unwrap(),
    );
    assert!(total >= max && max > 0, "{work}");
    let events: u64 = rows.iter().map(|r| r["count"].as_u64().unwrap()).sum();
    assert_eq!(events, 120);
}

#[test]
fn list_and_clean_know_the_living_and_the_dead() {
    let stage = Stage::new("list");
    assert!(
        stage
            .run(&["list"])
            .expect_code(0)
            .stdout_text()
            .starts_with("no sessions in ")
    );
    let dead = stage.start_with("mode=overwrite", &["1", "1", "0", "hold=60000"], 1);
    let dead_pid = dead.id();
    dead.kill().unwrap();
    let lives = stage.start("mode=discard", &["3", "1", "0", "hold=60000"]);
    let listed = json_lines(&stage.run(&["list", "--json"]).expect_code(0));
    let row = |pid: u32| listed.iter().find(|row| row["pid"] == pid).unwrap();
    assert_eq!(
        (&row(lives.id())["state"], &row(lives.id())["mode"]),
        (&"alive".into(), &"discard".into())
    );
    assert_eq!(
        (&row(dead_pid)["state"], &row(dead_pid)["rings"]),
        (&"dead".into(), &1.into())
    );
    let table = stage.run(&["list"]).stdout_text();
    assert!(table.starts_with("PID "), "{table}");
    let cleaned = stage.run(&["clean"]).stdout_text();
    assert!(cleaned.contains("1 dead session removed"), "{cleaned}");
    let told = "removed before a recorder took them: 1 (1 by 'ringmark clean'), \
                events in them or lost by them: 1";
    assert!(cleaned.contains(told), "{cleaned}");
    // Who cleans has been told, and may have a snapshot.
    let table = stage.run(&["list"]).stdout_text();
    assert!(!table.contains("removed"), "{table}");
    let listed = json_lines(&stage.run(&["list", "--json"]));
    let states: Vec<_> = listed.iter().map(|row| row["state"].as_str()).collect();
    // No reader had read the one that was removed: it stays counted.
    assert_eq!(states, [Some("alive"), Some("removed")]);
    assert_eq!(
        (&listed[1]["sessions"], &listed[1]["by_hand"]),
        (&1.into(), &1.into())
    );
    assert!(stage.ring_file(lives.id()).is_some());
}

#[test]
fn help_knows_every_command() {
    let stage = Stage::new("help");
    let help = stage.run(&["--help"]).expect_code(0).stdout_text();
    assert!(
        help.contains("Exit codes: 0 fine, 1 done but events were lost or damaged"),
        "{help}"
    );
    let commands = [
        "run", "list", "record", "snapshot", "events", "cat", "verify", "top", "report", "clean",
    ];
    for command in commands {
        assert!(
            help.contains(&format!("  {command} ")),
            "{command}: not in --help"
        );
        let _ = stage.run(&[command, "--help"]).expect_code(0);
    }
    assert!(
        stage
            .run(&["--version"])
            .expect_code(0)
            .stdout_text()
            .starts_with("ringmark ")
    );
}
