//! `record` of a session in overwrite mode says what was overwritten, as `report` and `verify` do.

mod common;

use std::fs;
use std::time::Duration;

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
    for bytes in [100_000, 400_000] {
        wait_until(LIMIT, "pages", || (written() > bytes).then_some(()));
        recorder.signal(Signal::STOP).unwrap();
        std::thread::sleep(Duration::from_millis(300));
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
