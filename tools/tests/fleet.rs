//! A collector and its streams, and a store of several hosts: what commands say of them, as text
//! and as JSON.

use crate::common;

use std::fs;

use common::{LIMIT, Stage};
use ringmark_tests::json_schema::checked;
use ringmark_tests::{Finished, Running, wait_until};
use rustix::process::Signal;
use serde_json::{Value, json};

/// Starts a command whose standard output goes to a file.
fn start(stage: &Stage, arguments: &[&str], output: &str) -> Running {
    let mut command = stage.command("sh");
    command.args(["-c", "f=$1; shift; exec \"$@\" >$f", "sh", output]);
    command.arg(env!("CARGO_BIN_EXE_ringmark")).args(arguments);
    Running::start(&mut command).expect("it starts")
}

/// The objects that are in a file by now, all lines whole.
fn objects(stage: &Stage, file: &str) -> Vec<Value> {
    let text = fs::read_to_string(stage.path(file)).unwrap_or_default();
    let whole = text.rfind('\n').map_or(0, |end| end + 1);
    checked(&text[..whole])
}

fn only(mut objects: Vec<Value>) -> Value {
    assert_eq!(objects.len(), 1, "{objects:?}");
    objects.remove(0)
}

/// A stage with a store of two hosts, and the pid of the traced process of each.
fn two_hosts(label: &str) -> (Stage, [String; 2]) {
    let stage = Stage::new(label);
    let listen = "collect --json --store store --listen tcp://127.0.0.1:0";
    let listen: Vec<_> = listen.split(' ').collect();
    let collector = start(&stage, &listen, "collector");
    let address = listening(&stage);
    let pids = [("web-1", "300"), ("db-1", "200")].map(|(host, events)| {
        let service = format!("{}-service", &host[..2]);
        let traced = stage
            .command("env")
            .arg(format!("OTEL_SERVICE_NAME={service}"))
            .arg("RINGMARK=mode=discard,keep=always")
            .arg(common::traced_program())
            .args(["2", events, "0"])
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let pid = traced.id().to_string();
        assert!(traced.wait_with_output().unwrap().status.success());
        let stream = ["stream", "--all", "--to", &address, "--host", host];
        let streamer = start(&stage, &[&stream[..], &["--json"]].concat(), host);
        wait_until(LIMIT, "the session is stored", || {
            let last = objects(&stage, host).pop()?;
            (last["sessions_done"] == 1).then_some(())
        });
        streamer.signal(Signal::TERM).unwrap();
        let _ = streamer.finish(LIMIT).expect_code(0);
        let _ = fs::remove_dir_all(stage.path("sessions"));
        pid
    });
    collector.signal(Signal::TERM).unwrap();
    let _ = collector.finish(LIMIT).expect_code(0);
    (stage, pids)
}

/// The address at which the collector of a stage listens.
fn listening(stage: &Stage) -> String {
    wait_until(LIMIT, "the collector listens", || {
        let first = objects(stage, "collector").into_iter().next()?;
        assert_eq!(first["state"], "listening");
        Some(first["listening"][0].as_str()?.to_owned())
    })
}

#[test]
fn a_store_of_several_hosts_is_told_and_chosen_by_host() {
    let (stage, [web, db]) = two_hosts("fleet-hosts");
    let text = |words: &str| {
        let words: Vec<_> = words.split(' ').collect();
        stage.run(&words).expect_code(0).stdout_text()
    };
    let lines = text("cat store");
    let of = |origin: &str| {
        lines
            .lines()
            .filter(|line| line.split(' ').nth(1) == Some(origin))
            .count()
    };
    assert_eq!(of(&format!("web-1/we-service[{web}]")), 600);
    assert_eq!(of(&format!("db-1/db-service[{db}]")), 400);
    assert_eq!(lines.lines().count(), 1000);
    // One host: the lines are as those of any trace file.
    for (choice, events) in [
        ("--host web-*".to_owned(), 600),
        ("--host *-1 --service db*".to_owned(), 400),
        (format!("--pid {web}"), 600),
        (format!("-p {db} --host db-1"), 400),
    ] {
        let chosen = text(&format!("cat store {choice}"));
        assert_eq!(chosen.lines().count(), events, "{choice}");
        assert!(!chosen.contains("-1/"), "{choice}");
        let events_in = |object: &Value| object["events"].as_u64().unwrap();
        let json = checked(&text(&format!("list store {choice} --json")));
        assert_eq!(
            json.iter().map(events_in).sum::<u64>(),
            events as u64,
            "{choice}"
        );
        assert_eq!(
            checked(&text(&format!("cat store {choice} --json"))).len(),
            events
        );
        let rows = text(&format!("export store {choice} --format csv -o -"));
        assert_eq!(rows.lines().count(), 1 + events, "{choice}");
    }
    expect_tables(&stage);
    let none = stage
        .run(&["cat", "store", "--host", "none"])
        .expect_code(0);
    assert!(
        none.stderr_text().contains("choose no process"),
        "{}",
        none.stderr_text()
    );
    let live = stage
        .run(&["cat", "-p", "1", "--host", "web-1"])
        .expect_code(2);
    assert!(
        live.stderr_text().contains("expected FILE"),
        "{}",
        live.stderr_text()
    );
}

/// What each host has is told where there are two.
fn expect_tables(stage: &Stage) {
    let text = |words: &str| {
        let words: Vec<_> = words.split(' ').collect();
        stage.run(&words).expect_code(0).stdout_text()
    };
    let hosts = only(checked(&text("verify store --json")));
    let host = |n: usize| (&hosts["hosts"][n]["host"], &hosts["hosts"][n]["events"]);
    assert_eq!(host(0), (&json!("db-1"), &json!(400)));
    assert_eq!(host(1), (&json!("web-1"), &json!(600)));
    for command in ["verify", "report"] {
        let table = text(&format!("{command} store"));
        let row = table.lines().find(|line| line.starts_with("web-1 "));
        let row: Vec<_> = row.expect(command).split_whitespace().collect();
        assert_eq!(row[1..4], ["1", "600", "0"], "{command}");
        let one = text(&format!("{command} store --host db-1"));
        assert!(!one.contains("HOST"), "{command}: {one}");
    }
    let listed = text("list store");
    assert!(
        listed.lines().count() == 3 && listed.contains("we-service"),
        "{listed}"
    );
    assert_eq!(
        checked(&text("list store --json --service db-*"))[0]["host"],
        "db-1"
    );
}

/// Runs `ringmark` with these words.
fn run(stage: &Stage, words: &str) -> Finished {
    let words: Vec<_> = words.split_whitespace().collect();
    stage.run(&words)
}

/// All commands show the same of one choice of files and times as of the other.
#[track_caller]
fn expect_same(stage: &Stage, commands: &[&str], found: &str, expected: &str) {
    for command in commands {
        let text = |of: &str| {
            run(stage, &format!("{command} {of}"))
                .expect_code(0)
                .stdout_text()
        };
        let (shown, wanted) = (text(found), text(expected));
        assert!(!wanted.is_empty(), "{command} {expected}");
        for (shown, wanted) in shown.lines().zip(wanted.lines()) {
            assert_eq!(shown, wanted, "{command} {found}");
        }
        let lines = (shown.lines().count(), wanted.lines().count());
        assert_eq!(lines.0, lines.1, "{command} {found}");
    }
}

#[test]
fn a_piece_of_a_store_shows_what_the_store_shows_of_that_time() {
    let (stage, [web, db]) = two_hosts("fleet-cut");
    let all = checked(&run(&stage, "cat store --json").expect_code(0).stdout_text());
    let at = |n: usize| all[n]["ts"].as_str().unwrap().to_owned();
    // The hosts ran one after the other.
    let times = format!("--from {} --to {}", at(350), at(850));
    // Events before these may be of the same nanosecond.
    let is_in =
        |event: &&Value| (at(350)..at(850)).contains(&event["ts"].as_str().unwrap().to_owned());
    let inside = all.iter().filter(is_in).count();
    let told = run(&stage, &format!("cut store {times} -o piece.rmk")).expect_code(0);
    let told = told.stderr_text();
    let expected = format!("ringmark: piece.rmk: {inside} events of 2 sessions, ");
    assert!(told.contains(&expected), "{told}");
    let expected = format!("left out: {} events, 0 sessions", all.len() - inside);
    assert!(told.contains(&expected), "{told}");
    let commands = ["cat", "cat --json", "cat --raw", "report --json"];
    let [of_piece, of_store] = ["piece.rmk", "store"].map(|files| format!("{files} {times}"));
    expect_same(&stage, &commands, &of_piece, &of_store);
    // It has nothing else.
    expect_same(&stage, &commands[..3], "piece.rmk", &of_store);
    let account = run(&stage, "verify piece.rmk --json").expect_code(0);
    let account = only(checked(&account.stdout_text()));
    let counts = ["events", "lost", "missing", "overwritten"].map(|key| account[key].clone());
    assert_eq!(counts, [inside, 0, 0, 0].map(|count| json!(count)));
    assert_eq!(account["damage"], json!([]));
    // A piece of the piece, of one host and process.
    for (choice, pid) in [("--host web-1", &web), ("--service db-*", &db)] {
        let cut = format!("cut piece.rmk {choice} --from {} -o one.rmk", at(500));
        let _ = run(&stage, &cut).expect_code(0);
        let times = format!("--from {} --to {}", at(500), at(850));
        let (one, store) = (
            format!("one.rmk {times}"),
            format!("store -p {pid} {times}"),
        );
        expect_same(&stage, &commands, &one, &store);
    }
    // Beside the store it brings nothing.
    expect_same(&stage, &commands, "piece.rmk store", "store");
}

#[test]
fn an_empty_piece_is_refused() {
    let stage = Stage::new("cut-empty");
    let _ = stage.record("run.rmk", &["1", "100", "0"]);
    for (words, code, why) in [
        (
            "run.rmk --from 1h",
            3,
            "nothing to cut: none of 100 events is in the piece",
        ),
        (
            "run.rmk --from 2s --to 1s",
            2,
            "found an end before the beginning",
        ),
        ("run.rmk --from soon", 2, "soon"),
        ("none.rmk", 3, "none.rmk"),
        ("-p 1", 2, "ringmark snapshot -p 1"),
    ] {
        let refused = run(&stage, &format!("cut {words} -o piece.rmk")).expect_code(code);
        assert!(
            refused.stderr_text().contains(why),
            "{}",
            refused.stderr_text()
        );
        assert!(!stage.path("piece.rmk").exists());
    }
}

#[test]
fn a_collector_and_a_streamer_say_how_they_are() {
    let stage = Stage::new("json-fleet");
    let listen = ["--listen", "tcp://127.0.0.1:0", "--status-file", "c.status"];
    let collect = [&["collect", "--json", "--store", "store"], &listen[..]].concat();
    let collector = start(&stage, &collect, "collector");
    let address = listening(&stage);
    let traced = stage.start_with("mode=discard", &["1", "300", "0", "hold=60000"], 300);
    let pid = traced.id().to_string();
    let to = ["--to", &address, "--host", "web-1", "--open-every", "50ms"];
    let stream = [&["stream", "-p", &pid, "--json"], &to[..]].concat();
    let stream = [&stream[..], &["--status-file", "s.status"]].concat();
    let streamer = start(&stage, &stream, "streamer");
    wait_until(LIMIT, "pages on their way", || {
        let last = objects(&stage, "streamer").pop()?;
        assert_eq!(
            (&last["kind"], &last["host"]),
            (&json!("stream"), &json!("web-1"))
        );
        (last["pages"].as_u64()? > 0 && last["connected"] == true).then_some(())
    });
    traced.kill().unwrap();
    let _ = streamer.finish(LIMIT);
    collector.signal(Signal::TERM).unwrap();
    let _ = collector.finish(LIMIT).expect_code(0);
    let said = objects(&stage, "streamer");
    let status = only(objects(&stage, "s.status"));
    assert_eq!(said.last(), Some(&status));
    assert_eq!(
        (&status["sessions_done"], &status["lost"]),
        (&json!(1), &json!(0))
    );
    let (said, status) = (
        objects(&stage, "collector"),
        only(objects(&stage, "c.status")),
    );
    assert_eq!(said.last(), Some(&status));
    assert_eq!(
        (&status["state"], &status["store"]),
        (&json!("ended"), &json!("store"))
    );
    assert_eq!(status["sessions_total"], 1);
}

#[test]
fn certificates_are_told_as_they_are_made() {
    let stage = Stage::new("json-certs");
    let run = |words: &str| {
        let words: Vec<_> = words.split(' ').collect();
        checked(&stage.run(&words).expect_code(0).stdout_text())
    };
    let ca = only(run("certs ca keys --json"));
    assert_eq!((&ca["of"], &ca["path"]), (&json!("ca"), &json!("keys")));
    let collector = only(run("certs --json collector keys a.example b.example"));
    assert_eq!(collector["names"], json!(["a.example", "b.example"]));
    let hosts = run("certs host keys web-1 web-2 --json");
    let names: Vec<_> = hosts.iter().map(|host| &host["names"][0]).collect();
    assert_eq!(names, ["web-1", "web-2"]);
    for host in &hosts {
        assert!(
            stage
                .path(host["path"].as_str().unwrap())
                .join("key.pem")
                .is_file()
        );
    }
    // Where the second fails, the first is told.
    let again = stage.run(&["certs", "host", "keys", "web-3", "web-1", "--json"]);
    assert_eq!(
        only(checked(&again.expect_code(2).stdout_text()))["names"],
        json!(["web-3"])
    );
}
