//! Promise: the specification is enough to write a reader. `independent/ringmark_reader.py` was
//! written from it alone; it must find the same events at the same times as ours.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use ringmark_decoder::{Dump, Event, Output, Value};
use ringmark_reader::{Access, Session};
use ringmark_tests::fixture::{Counters, Fixture, SOON, wait_until_mapped};
use ringmark_tests::recording::{decode, read, record};
use ringmark_tests::{Finished, Running, require_tools, run, wait_until, workspace_root};

const EMIT: &str = ringmark_tests::program!("emit");
const QUIET: &str = ringmark_tests::program!("quiet");
const LONG: Duration = Duration::from_secs(120);
/// Most that a time may differ that was computed while the session ran: less was known then of how
/// its clock ran.
const LIVE_DIFFERENCE_NS: u64 = 2_000_000;

fn python() -> Command {
    let mut command = Command::new("python3");
    command.arg(workspace_root().join("tests/independent/ringmark_reader.py"));
    command
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .stdin(Stdio::null());
    command
}

/// What the script finds in a dump: event lines, and those that start with `# `.
fn python_dump(dump: &Path) -> (Vec<String>, Vec<String>) {
    split(run(python().arg("dump").arg(dump), LONG).unwrap())
}

fn split(done: Finished) -> (Vec<String>, Vec<String>) {
    let text = done.expect_code(0).stdout_text();
    let lines = text.lines().map(str::to_owned);
    lines.partition(|line| !line.starts_with("# "))
}

fn shown(value: Value<'_>) -> String {
    match value {
        Value::U64(n) => n.to_string(),
        Value::I64(n) => n.to_string(),
        Value::F64(n) => format!("{n:?}"),
        Value::Str(bytes) => format!("\"{}\"", bytes.escape_ascii()),
        Value::Bytes(bytes) => bytes.iter().fold("0x".into(), |t, b| format!("{t}{b:02x}")),
        other => panic!("{other:?} is not in these programs"),
    }
}

/// An event as section 17 of the specification writes it.
fn line(event: &Event<'_>) -> String {
    let (session, ring) = (event.session.uuid, event.ring());
    let name = String::from_utf8_lossy(&event.ty.name);
    let mut line = format!("{session} {ring} {} {} {name}", event.seq, event.wall_ns());
    for field in event.ty.fields.iter() {
        let field_name = String::from_utf8_lossy(&field.name);
        line += &format!(" {field_name}={}", shown(field.value(&event.payload)));
    }
    line
}

fn lines(dump: &Dump) -> Vec<String> {
    let events = dump.events().filter_map(|item| match item {
        Output::Event(event) => Some(line(&event)),
        Output::Lost(_) => None,
    });
    events.collect()
}

#[track_caller]
fn expect_same(ours: &[String], theirs: &[String]) {
    for (ours, theirs) in ours.iter().zip(theirs) {
        assert_eq!(ours, theirs);
    }
    assert_eq!(ours.len(), theirs.len());
}

#[test]
fn the_same_events_of_a_dump_in_the_same_order() {
    if !require_tools(&["python3"]) {
        return;
    }
    for (exe, ringmark, arguments) in [
        (QUIET, "mode=discard,keep=always", "events 6000"),
        (
            QUIET,
            "mode=discard,keep=always,clock=monotonic,page=4K",
            "events 600",
        ),
        (QUIET, "mode=discard,keep=always,clock=none", "events 600"),
        (EMIT, "mode=discard,ring=64K,page=4K,keep=always", "3 4000"),
        (
            EMIT,
            "mode=overwrite,ring=32K,page=4K,keep=always",
            "3 9000",
        ),
    ] {
        let fixture = Fixture::new("independent");
        let _ = fixture
            .start(exe, ringmark, arguments)
            .finish(SOON)
            .expect_code(0);
        let dump = fixture.path("a.rmk");
        record(&fixture.ring_file(), &dump);
        let (theirs, notes) = python_dump(&dump);
        let decoded = decode(&[dump]);
        expect_same(&lines(&decoded), &theirs);
        assert!(theirs.len() > 500, "{} events", theirs.len());
        assert!(notes.contains(&"# damaged 0".to_owned()), "{notes:?}");
        // What is not there is counted alike, each in its way.
        let count = |start: &str| -> u64 {
            let found = notes.iter().filter(|n| n.starts_with(start));
            found
                .filter_map(|n| n.rsplit(' ').next()?.parse::<u64>().ok())
                .sum()
        };
        let losses = decoded.events().filter_map(|item| match item {
            Output::Lost(lost) => Some(lost.loss.count),
            Output::Event(_) => None,
        });
        assert_eq!(
            count("# lost ") + count("# missing "),
            losses.sum::<u64>(),
            "{notes:?}"
        );
    }
}

#[test]
fn the_same_events_after_kill_9() {
    if !require_tools(&["python3"]) {
        return;
    }
    let fixture = Fixture::new("killed");
    let ringmark = "mode=overwrite,ring=64K,page=4K,session=8M";
    let program = fixture.start(EMIT, ringmark, "2 1000000000");
    let ring_file = fixture.ring_file();
    let session = Session::open(&ring_file, Access::Observe).unwrap();
    wait_until(SOON, "a ring that was written over", || {
        let slot = session.ring().slot(0)?;
        (slot.produced() > 100).then_some(())
    });
    drop(program.kill().unwrap());
    let dump = fixture.path("a.rmk");
    record(&ring_file, &dump);
    expect_same(
        &lines(&decode(std::slice::from_ref(&dump))),
        &python_dump(&dump).0,
    );
    // And from the dead session itself; in its own order.
    let live = run(python().arg("live").arg(&ring_file), LONG).unwrap();
    expect_alike(&lines(&decode(&[dump])), &split(live).0);
}

/// The same events, whatever their order; times nearly the same.
#[track_caller]
fn expect_alike(ours: &[String], theirs: &[String]) {
    let (ours, theirs) = (by_place(ours), by_place(theirs));
    assert_eq!(ours.len(), theirs.len());
    for (place, (time, what)) in &ours {
        let (their_time, their_what) = &theirs[place];
        assert_eq!(what, their_what, "{place:?}");
        let difference = time.abs_diff(*their_time);
        assert!(
            difference <= LIVE_DIFFERENCE_NS,
            "{place:?}: {difference} ns apart"
        );
    }
}

/// (ring, number) → time and the rest of the line.
fn by_place(lines: &[String]) -> BTreeMap<(u64, u64), (u64, String)> {
    let places = lines.iter().map(|line| {
        let mut parts = line.splitn(5, ' ').skip(1);
        let mut number = || parts.next().unwrap().parse::<u64>().unwrap();
        let (place, time) = ((number(), number()), number());
        (place, (time, parts.next().unwrap().to_owned()))
    });
    let map: BTreeMap<_, _> = places.collect();
    assert_eq!(map.len(), lines.len(), "an event is there twice");
    map
}

#[test]
fn a_live_session_is_followed() {
    if !require_tools(&["python3"]) {
        return;
    }
    let fixture = Fixture::new("follow");
    // Rings so large that we can read everything afterwards.
    let ringmark = "mode=overwrite,ring=1M,page=4K,keep=always";
    let program = fixture.start(EMIT, ringmark, "2 10000 burst=100 pause=10000");
    let ring_file = fixture.ring_file();
    let follower = Running::start(python().arg("live").arg(&ring_file)).unwrap();
    let _ = program.finish(SOON).expect_code(0);
    let (theirs, _) = split(follower.finish(LONG));
    let ours = lines(&read(&[ring_file]));
    assert_eq!(ours.len(), 20_000);
    expect_alike(&ours, &theirs);
}

#[test]
fn a_live_session_is_consumed() {
    if !require_tools(&["python3"]) {
        return;
    }
    let fixture = Fixture::new("consume");
    // Sixteen times as much as a ring holds: without a consumer nearly all is lost.
    let ringmark = "mode=discard,ring=32K,page=4K";
    let counters = Counters::new(fixture.path("counters"));
    let arguments = format!(
        "2 20000 gate=100 burst=100 pause=20000 {}",
        counters.argument()
    );
    let program = fixture.start(EMIT, ringmark, &arguments);
    let ring_file = fixture.ring_file();
    let mut command = python();
    let follower = Running::start(command.arg("live").arg(&ring_file).arg("--consume")).unwrap();
    wait_until_mapped(&follower, &ring_file);
    counters.go();
    let _ = program.finish(LONG).expect_code(0);
    let (events, notes) = split(follower.finish(LONG));
    assert!(
        !notes.iter().any(|n| n.starts_with("# missing")),
        "{notes:?}"
    );
    let lost = notes.iter().filter(|n| n.starts_with("# lost"));
    let lost: u64 = lost
        .map(|n| n.rsplit(' ').next().unwrap().parse::<u64>().unwrap())
        .sum();
    let found = by_place(&events);
    assert_eq!(found.len() as u64 + lost, 2 * 20_000, "{notes:?}");
    println!("consumed {}, lost {lost}", found.len());
    // Several times what the rings hold: how much depends on how often it got a processor.
    assert!(found.len() > 10_000, "{}", found.len());
}
