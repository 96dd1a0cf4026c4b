//! Promise: `ringmark snapshot --last` is of that part and no other, in every command that reads it;
//! what is left out by it is not lost, and what reaches into it is there.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use ringmark_decoder::{Event, Output};
use ringmark_format::schema::Shape;
use ringmark_ring::clock::monotonic_ns;
use ringmark_tests::delivery::number;
use ringmark_tests::fixture::{Fixture, SOON};
use ringmark_tests::recording::decode;
use ringmark_tests::{Finished, Running, ringmark, run, wait_until};

const BEATS: &str = ringmark_tests::program!("beats");
const LAST: Duration = Duration::from_millis(50);

fn tool(fixture: &Fixture, arguments: &[&str]) -> Finished {
    let mut command = ringmark();
    command
        .env("RINGMARK_DIR", fixture.sessions())
        .args(arguments);
    run(&mut command, SOON).expect("the tool")
}

/// A snapshot of the last part, and between which times its beginning lies.
fn snapshot(fixture: &Fixture, ring: &str) -> (PathBuf, std::ops::RangeInclusive<u64>) {
    let mut command = fixture.program(BEATS, &format!("mode=overwrite,{ring}"));
    command.arg("150").stdin(Stdio::piped());
    let mut program = Running::start(&mut command).expect("a program");
    let ready = fixture.ring_file();
    wait_until(SOON, "150 beats", || {
        let beats = decoded_beats(fixture, &ready);
        (beats >= 150).then_some(())
    });
    let dump = fixture.path("last.rmk");
    let pid = program.id().to_string();
    let (name, last) = (dump.to_string_lossy().into_owned(), LAST.as_nanos() as u64);
    // On a busy machine a beat may take longer than the part.
    let from = wait_until(SOON, "a beat in the last part", || {
        let before = monotonic_ns();
        let arguments = ["snapshot", "-p", &pid, "--last", "50ms", "-o", &name];
        let _ = tool(fixture, &arguments).expect_code(0);
        let from = before - last..=monotonic_ns() - last;
        let held = decode(std::slice::from_ref(&dump));
        (held.events().any(|item| is_beat(&item))).then_some(from)
    });
    drop(program.child().stdin.take());
    let _ = program.finish(SOON).expect_code(0);
    (dump, from)
}

fn is_beat(item: &Output<'_>) -> bool {
    matches!(item, Output::Event(event) if event.name() == b"beats.beat")
}

/// How many beats there were, as the newest in the rings says.
fn decoded_beats(fixture: &Fixture, ring_file: &Path) -> u64 {
    let dump = ringmark_tests::recording::snapshot(ring_file, &fixture.path("now.rmk"));
    let beats = dump.events().filter_map(|item| match item {
        Output::Event(event) if event.name() == b"beats.beat" => number(&event, "seq"),
        _ => None,
    });
    beats.max().map_or(0, |seq| seq + 1)
}

/// With `has_outer` the beginning of the open span is in the pages that are copied.
fn check(ring: &str, has_outer: bool) {
    let fixture = Fixture::new("last");
    let (path, from) = snapshot(&fixture, ring);
    let dump = decode(std::slice::from_ref(&path));
    let window = dump.sessions[0].window.expect("a window");
    assert!(from.contains(&window), "{window}, expected {from:?}");
    let mut events: Vec<Event<'_>> = Vec::new();
    for item in dump.events() {
        match item {
            Output::Event(event) => events.push(event),
            Output::Lost(lost) => panic!("{lost:?}"),
        }
    }
    let beats: Vec<_> = events
        .iter()
        .filter(|e| e.name() == b"beats.beat")
        .collect();
    let of = |event: &Event<'_>, name| number(event, name).expect("a number");
    let (first, last) = (beats[0], beats[beats.len() - 1]);
    let mono_ns = |event: &Event<'_>| event.session.clock.mono_zero_ns + event.t_ns;
    assert!(mono_ns(first) >= window, "too early");
    assert!(of(first, "before") < window, "too late");
    let seen = of(last, "seq") - of(first, "seq") + 1;
    assert_eq!(seen, beats.len() as u64, "a beat is missing");
    let new = |name: &[u8]| {
        let new = events.iter().filter(|e| e.ty.shape == Some(Shape::SpanNew));
        new.filter(|e| e.name() == name).count()
    };
    assert_eq!(new(b"beats.outer"), usize::from(has_outer), "the open span");
    assert!(
        new(b"beats.inner").abs_diff(beats.len()) <= 2,
        "the closed ones are not"
    );
    let found = dump.verify();
    assert_eq!((found.lost, found.overwritten, found.missing), (0, 0, 0));
    assert!(found.left_out > 0);
    check_tools(&fixture, &path, beats.len(), events.len());
}

fn check_tools(fixture: &Fixture, path: &Path, beats: usize, events: usize) {
    let path = path.to_string_lossy();
    let lines = tool(fixture, &["cat", "--raw", &path])
        .expect_code(0)
        .stdout_text();
    assert_eq!(
        lines.lines().filter(|l| l.contains("beats.beat")).count(),
        beats
    );
    // Below them stands which spans are open.
    let is_event = |line: &&str| line.starts_with(|c: char| c.is_ascii_digit());
    assert_eq!(lines.lines().filter(is_event).count(), events);
    let json = tool(fixture, &["cat", "--raw", "--json", &path])
        .expect_code(0)
        .stdout_text();
    let is_event = |line: &&str| !line.contains("\"kind\":\"open_span\"");
    assert_eq!(json.lines().filter(is_event).count(), events);
    let report = tool(fixture, &["report", &path])
        .expect_code(0)
        .stdout_text();
    let row = report
        .lines()
        .find(|l| l.contains("beats.beat"))
        .expect("a row");
    assert_eq!(
        row.split_whitespace().next(),
        Some(&*beats.to_string()),
        "{row}"
    );
    let listed = tool(fixture, &["list", "--json", &path])
        .expect_code(0)
        .stdout_text();
    let listed: serde_json::Value = serde_json::from_str(listed.trim()).expect("an object");
    assert_eq!(listed["events"], events);
    let verify = tool(fixture, &["verify", &path])
        .expect_code(0)
        .stdout_text();
    assert!(verify.contains("\nleft_out: "), "{verify}");
}

#[test]
fn the_last_part_of_one_page() {
    check("ring=2M,page=1M", true);
}

#[test]
fn the_last_part_of_many_pages() {
    check("ring=64K,page=4K", false);
}
