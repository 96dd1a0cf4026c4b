//! Options of time take times as people have them: local ones, with an offset, of a day, since 1970, the end
//! of the trace.

use crate::common;

use common::{LIMIT, Stage, json_lines};
use ringmark_decoder::{DumpBuilder, Stamper};
use ringmark_tests::run;
use serde_json::Value;

/// Where it is five hours earlier than in UTC, all the year.
const ZONE: &str = "EST5";

/// A recording, and the time of each of its lines, in ns since 1970.
fn recording(label: &str) -> (Stage, Vec<u64>) {
    let stage = Stage::new(label);
    stage.record("a.rmk", &["1", "60", "0", "mix"]);
    let lines = json_lines(&stage.run(&["cat", "a.rmk", "--json"]).expect_code(0));
    let ns = |line: &Value| line["ts_ns"].as_str().unwrap().parse().unwrap();
    let mut times: Vec<u64> = lines.iter().map(ns).collect();
    times.sort_unstable();
    (stage, times)
}

/// Times of the lines of `cat` with these options, in that zone.
fn shown(stage: &Stage, options: &[&str]) -> Vec<u64> {
    let mut command = stage.ringmark(&[&["cat", "a.rmk", "--json"], options].concat());
    let done = run(command.env("TZ", ZONE), LIMIT).unwrap().expect_code(0);
    let ns = |line: &Value| line["ts_ns"].as_str().unwrap().parse().unwrap();
    let mut times: Vec<u64> = json_lines(&done).iter().map(ns).collect();
    times.sort_unstable();
    times
}

/// A moment as UTC with nine digits of a second.
fn utc(ns: u64) -> String {
    String::from_utf8(Stamper::default().stamp(ns).to_vec()).unwrap()
}

/// A moment as local time there.
fn local(ns: u64) -> String {
    let there = utc(ns - 5 * 3600 * 1_000_000_000);
    there.trim_end_matches('Z').to_owned()
}

#[test]
fn one_moment_is_taken_in_every_form() {
    let (stage, times) = recording("times-forms");
    let at = times[times.len() / 2];
    let expected: Vec<u64> = times.iter().copied().filter(|ns| *ns >= at).collect();
    let here = local(at);
    let of_day = here.split_once('T').unwrap().1.to_owned();
    let utc = utc(at);
    for text in [
        &here,
        &here.replace('T', " "),
        &of_day,
        &format!("{here}-05:00"),
        &utc,
        &at.to_string(),
        &format!("@{}.{:09}", at / 1_000_000_000, at % 1_000_000_000),
    ] {
        assert_eq!(shown(&stage, &["--from", text]), expected, "{text}");
    }
    let utc = utc.trim_end_matches('Z');
    assert_eq!(shown(&stage, &["--from", utc, "--utc"]), expected);
    // As the trace is of now, all of it is later than an hour ago.
    assert_eq!(shown(&stage, &["--from", "-1h"]), times);
    assert_eq!(shown(&stage, &["--to", "-1h"]), Vec::<u64>::new());
}

#[test]
fn around_and_last_are_parts_of_the_trace() {
    let (stage, times) = recording("times-parts");
    let (at, end) = (times[times.len() / 2], *times.last().unwrap());
    let half_us = ((end - times[0]) / 2000).max(1);
    for (text, ns) in [
        (format!("±{half_us}us"), half_us * 1000),
        ("+-1us".to_owned(), 1000),
        (String::new(), 1_000_000_000),
    ] {
        let near = times.iter().filter(|time| time.abs_diff(at) <= ns);
        let expected: Vec<u64> = near.copied().collect();
        let text = format!("{}{text}", local(at));
        assert_eq!(shown(&stage, &["--around", &text]), expected, "{text}");
    }
    let mut dump = DumpBuilder::new();
    let file = std::fs::read(stage.path("a.rmk")).unwrap();
    dump.read("a.rmk", file.as_slice()).unwrap();
    let end = dump.finish().end_ns().unwrap();
    let half_us = half_us + (end - times[times.len() - 1]) / 1000;
    let is_late = |ns: &&u64| end - **ns <= half_us * 1000;
    let last: Vec<u64> = times.iter().filter(is_late).copied().collect();
    assert!(last.len() < times.len(), "a part");
    let half = format!("{half_us}us");
    assert_eq!(shown(&stage, &["--last", &half]), last);
    // The other commands that read take the same options.
    let piece = ["cut", "a.rmk", "--last", &half, "-o", "b.rmk"];
    let _ = stage.run(&piece).expect_code(0);
    let of_piece = json_lines(&stage.run(&["cat", "b.rmk", "--json"]).expect_code(0));
    assert!(of_piece.len() >= last.len() && of_piece.len() < times.len());
    let told = stage
        .run(&["report", "a.rmk", "--last", &half])
        .expect_code(0);
    let told = told.stdout_text();
    assert!(told.contains("shown of it: --last "), "{told}");
    for words in [
        ["export", "a.rmk", "--around", "1us±1h", "-o", "-"],
        ["report", "a.rmk", "--around", "1us±1h", "--slowest", "1"],
    ] {
        let _ = stage.run(&words).expect_code(0);
    }
    let local = "2026-01-31T12:00:00";
    let words = ["export", "a.rmk", "--format", "parquet", "--from", local];
    let _ = common::expect(stage.run(&words), 2, "expected times with an offset");
    let wrong = stage.run(&["cat", "a.rmk", "--around", "1ms±x"]);
    let _ = common::expect(wrong, 2, "--around: found \"x\", expected a duration");
}

/// Times since the start are those that lines show, whichever session they are of.
#[test]
fn a_time_since_the_start_is_the_one_that_lines_show() {
    let stage = Stage::new("times-since");
    stage.record("a.rmk", &["1", "20", "1000"]);
    stage.record("b.rmk", &["1", "20", "1000"]);
    let both = ["cat", "a.rmk", "b.rmk", "--time", "relative"];
    let lines = |options: &[&str]| -> Vec<String> {
        let shown = stage.run(&[&both[..], options].concat()).expect_code(0);
        let text = shown.stdout_text();
        text.lines().map(str::to_owned).collect()
    };
    let all = lines(&[]);
    assert_eq!(all.len(), 40);
    for at in [10, 30] {
        let (time, _) = all[at].trim_start().split_once(' ').unwrap();
        let time = time.trim_start_matches('+');
        let time = format!("{}s", time.trim_end_matches('s'));
        assert_eq!(lines(&["--from", &time]), all[at..], "{time}");
        assert_eq!(lines(&["--to", &time]), all[..at], "{time}");
    }
}
