//! `record`, `snapshot` and `stream` of a session in overwrite mode say what was overwritten, as `report`
//! and `verify` do.

use crate::common;

use std::fs;

use common::{LIMIT, Stage};
use ringmark_tests::{Running, wait_until};
use rustix::process::Signal;

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Gaps before the first page, and where the recorder stood still.
#[test]
fn what_was_overwritten_is_counted_as_in_the_file() {
    let stage = Stage::new("overwritten");
    let arguments = ["2", "100000000", "100"];
    let traced = stage.start_with("mode=overwrite,ring=64K,page=4K", &arguments, 5_000);
    let pid = traced.id().to_string();
    wait_until(LIMIT, "overwritten events", || {
        let first = stage.run(&["cat", "-p", &pid, "--json", "-n", "1"]);
        let first = json(&first.stdout_text());
        (first["kind"] == "lost").then_some(())
    });
    let words = [
        "record",
        "-p",
        &pid,
        "-o",
        "a.rmk",
        "--status-file",
        "status",
    ];
    let recorder = Running::start(&mut stage.ringmark(&words)).unwrap();
    let written = || fs::metadata(stage.path("a.rmk")).map_or(0, |file| file.len());
    let emitted = || {
        let _ = stage
            .run(&["snapshot", "-p", &pid, "-o", "now.rmk"])
            .expect_code(0);
        let totals = json(&stage.run(&["verify", "--json", "now.rmk"]).stdout_text());
        let number = |key: &str| totals[key].as_u64().unwrap();
        number("events") + number("overwritten")
    };
    for bytes in [100_000, 400_000] {
        wait_until(LIMIT, "pages", || (written() > bytes).then_some(()));
        recorder.signal(Signal::STOP).unwrap();
        let before = emitted();
        // More than the rings hold.
        wait_until(LIMIT, "rings written over", || {
            (emitted() > before + 10_000).then_some(())
        });
        recorder.signal(Signal::CONT).unwrap();
    }
    wait_until(LIMIT, "more pages", || (written() > 800_000).then_some(()));
    recorder.signal(Signal::INT).unwrap();
    let found = recorder.finish(LIMIT).expect_code(0);
    let totals = json(&stage.run(&["verify", "--json", "a.rmk"]).stdout_text());
    let status = json(&fs::read_to_string(stage.path("status")).unwrap());
    let overwritten = totals["overwritten"].as_u64().unwrap();
    assert!(overwritten > 0, "{totals}");
    assert_eq!(status["overwritten"], overwritten, "{totals}");
    let report = stage.run(&["report", "a.rmk"]);
    let told = format!("{overwritten} events");
    for text in [
        found.stderr_text(),
        report.stdout_text() + &report.stderr_text(),
    ] {
        assert!(text.replace(',', "").contains(&told), "{told}: {text}");
    }
    assert!(found.stderr_text().contains(" were overwritten"));
}

/// A program that has overwritten most of what two threads wrote, and waits.
fn full_rings(stage: &Stage) -> (Running, String) {
    let arguments = ["2", "20000", "0", "hold=60000"];
    let traced = stage.start("mode=overwrite,ring=64K,page=4K", &arguments);
    let pid = traced.id().to_string();
    wait_until(LIMIT, "all events", || {
        let text = stage
            .run(&["list", "-v", "-p", &pid, "--json"])
            .stdout_text();
        let session = json(&text);
        let full = session["threads"].as_array()?.iter().filter(|ring| {
            ring["pages_filled"] == ring["pages"] && ring["events_per_s"].as_f64() == Some(0.0)
        });
        (full.count() == 2).then_some(())
    });
    (traced, pid)
}

fn told(events: u64) -> String {
    format!("; {events} events were overwritten")
}

/// Also with `--last`, which leaves out events that are still there.
#[test]
fn a_snapshot_tells_what_was_overwritten() {
    let stage = Stage::new("overwritten-snapshot");
    let (_traced, pid) = full_rings(&stage);
    let all = ["snapshot", "-p", &pid, "-o", "a.rmk"];
    let found = stage.run(&all).expect_code(0).stderr_text();
    let totals = json(&stage.run(&["verify", "--json", "a.rmk"]).stdout_text());
    let overwritten = totals["overwritten"].as_u64().unwrap();
    assert!(overwritten > 1000, "{totals}");
    for found in [
        found,
        stage
            .run(&[&all[..], &["--last", "1h"]].concat())
            .stderr_text(),
        stage
            .run(&[&all[..], &["--last", "1us"]].concat())
            .stderr_text(),
    ] {
        let text = found.replace(',', "");
        assert!(text.contains(&told(overwritten)), "{overwritten}: {found}");
    }
}

/// In its status, which `list` shows, in its last object and line.
#[test]
fn a_stream_tells_what_was_overwritten() {
    let stage = Stage::new("overwritten-stream");
    let (_traced, pid) = full_rings(&stage);
    let to = format!("unix://{}", stage.path("socket").display());
    let collect = ["collect", "--store", "store", "--listen", &to];
    let collector = Running::start(&mut stage.ringmark(&collect)).unwrap();
    let stream = [
        "stream",
        "-p",
        &pid,
        "--to",
        &to,
        "--open-every",
        "100ms",
        "--status-file",
        "status",
    ];
    let streamer = Running::start(&mut stage.ringmark(&stream)).unwrap();
    let listed = wait_until(LIMIT, "the status of the stream", || {
        let stream =
            json(&stage.run(&["list", "-p", &pid, "--json"]).stdout_text())["stream"].take();
        let is_drained = stream["in_flight"] == 0;
        stream["overwritten"]
            .as_u64()
            .filter(|events| is_drained && *events > 0)
    });
    let text = stage
        .run(&["list", "-v", "-p", &pid])
        .stdout_text()
        .replace(',', "");
    streamer.signal(Signal::TERM).unwrap();
    let found = streamer.finish(LIMIT).expect_code(0).stderr_text();
    collector.signal(Signal::TERM).unwrap();
    let _ = collector.finish(LIMIT).expect_code(0);
    let status = json(&fs::read_to_string(stage.path("status")).unwrap());
    let totals = json(&stage.run(&["verify", "--json", "store"]).stdout_text());
    let overwritten = totals["overwritten"].as_u64().unwrap();
    assert!(overwritten > 1000, "{totals}");
    assert_eq!(status["overwritten"], overwritten, "{totals}");
    assert_eq!(listed, overwritten, "{totals}");
    for text in [text, found.replace(',', "")] {
        assert!(text.contains(&told(overwritten)), "{overwritten}: {text}");
    }
}
