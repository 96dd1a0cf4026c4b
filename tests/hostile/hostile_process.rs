//! Promise: a program that writes nonsense into its own ring file, or claims to be another one,
//! harms no other process: tools neither crash nor hang nor take memory without end, and what they say of
//! other programs stays true to the event.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use ringmark_decoder::{Dump, DumpBuilder, Output};
use ringmark_format::Uuid;
use ringmark_reader::{Access, Session};
use ringmark_tests::delivery::Delivery;
use ringmark_tests::fixture::{Counters, Fixture, SOON};
use ringmark_tests::random::Random;
use ringmark_tests::{Finished, Running, binary, is_long, require_tools, run, wait_until};
use rustix::process::Signal;

const EMIT: &str = ringmark_tests::program!("emit");
const RECORDER: &str = ringmark_tests::program!("recorder");
const SCRIBBLER: &str = ringmark_tests::program!("scribbler");
const HEALTHY: &str = "mode=discard,ring=8M,page=16K,session=64M,keep=always";
const THREADS: u64 = 2;
const EVENTS: u64 = 100_000;

/// Address space that a tool may take beside a hostile session of 1 MiB.
const TOOL_KIB_MAX: u64 = 256 << 10;
/// Memory that a recorder may have had at most.
const RECORDER_KIB_MAX: u64 = 64 << 10;

/// A program with numbered events whose calls are counted.
fn healthy(fixture: &Fixture, pause_us: u32, hold_ms: u32) -> (Running, Counters, PathBuf) {
    let counters = Counters::new(fixture.path("counters"));
    let arguments = format!(
        "{THREADS} {EVENTS} burst=1000 pause={pause_us} hold={hold_ms} {}",
        counters.argument()
    );
    let program = fixture.start(EMIT, HEALTHY, &arguments);
    counters.wait_for(THREADS);
    let file = own_file(fixture, program.id());
    (program, counters, file)
}

fn own_file(fixture: &Fixture, pid: u32) -> PathBuf {
    let stem = format!("{pid}-");
    wait_until(SOON, "its ring file", || {
        let is_own = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with(&stem)
        };
        fixture.ring_files().into_iter().find(is_own)
    })
}

fn is_endless(arguments: &str) -> bool {
    let endless = ["record", "cat --follow"];
    endless.iter().any(|name| arguments.starts_with(name))
}

/// Runs a tool with bounded memory and time; one that goes on for ever is ended as a person would.
fn tool(fixture: &Fixture, arguments: &str) -> Finished {
    let mut command = fixture.command("prlimit");
    let bytes = TOOL_KIB_MAX << 10;
    command
        .arg(format!("--as={bytes}:{bytes}"))
        .arg(binary::path());
    command.args(arguments.split_ascii_whitespace());
    let running = Running::start(command.current_dir(fixture.path("."))).unwrap();
    if is_endless(arguments) {
        return running.interrupt_after(Duration::from_millis(300), SOON);
    }
    running.finish(SOON)
}

#[track_caller]
fn expect_no_crash(done: &Finished, what: &str) {
    let (code, said) = (done.code(), done.stderr_text());
    assert!(
        [0, 1, 3, 4].contains(&code),
        "{what}: exit code {code}: {said}"
    );
    assert!(!said.contains("panicked"), "{what}: {said}");
}

/// Events of `dump` in all sessions with this uuid, by thread: exact, or an error.
fn expect_exact(dump: &Dump, uuid: Uuid) {
    let account = Delivery::of(dump);
    let rings: Vec<_> = account
        .rings
        .iter()
        .filter(|((of, _), _)| *of == uuid)
        .collect();
    for (place, ring) in &rings {
        assert!(ring.errors.is_empty(), "{place:?}: {:?}", ring.errors);
    }
    let delivered: Vec<_> = rings.iter().map(|(_, ring)| ring.delivered).collect();
    assert_eq!(
        delivered, [EVENTS; THREADS as usize],
        "events of the healthy program"
    );
}

/// Events of `dump` in all sessions with this uuid.
fn delivered(dump: &Dump, uuid: Uuid) -> u64 {
    let rings = Delivery::of(dump).rings;
    let own = rings.iter().filter(|((of, _), _)| *of == uuid);
    own.map(|(_, ring)| ring.delivered).sum()
}

/// A dump that may be damaged: by hostile pages.
fn decode(path: &Path) -> Dump {
    let mut builder = DumpBuilder::new();
    if let Err(damage) = builder.read("dump", File::open(path).unwrap()) {
        panic!("{damage}");
    }
    builder.finish()
}

fn peak_kib(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.and_then(|line| line.split_ascii_whitespace().next()?.parse().ok());
    number.unwrap_or(u64::MAX)
}

#[test]
fn nonsense_harms_no_tool_and_no_other_program() {
    if !require_tools(&["timeout", "prlimit"]) {
        return;
    }
    let mut random = Random::seeded();
    for mode in ["discard", "overwrite"] {
        let fixture = Fixture::new("nonsense");
        let mut command = fixture.program(
            SCRIBBLER,
            &format!("mode={mode},ring=64K,page=4K,session=1M"),
        );
        command.env("RINGMARK_SEED", random.below(u64::MAX).to_string());
        let mut hostile = Running::start(&mut command).unwrap();
        let hostile_file = own_file(&fixture, hostile.id());
        let mut all = fixture.command(binary::path());
        all.args(["record", "--all", "-o"])
            .arg(fixture.path("all.rmk"));
        let all = Running::start(&mut all).unwrap();
        let mut library = fixture
            .recorder(RECORDER, &fixture.path("library.rmk"), None)
            .unwrap();
        let (program, counters, healthy_file) = healthy(&fixture, 25_000, 300);
        let uuid = Session::open(&healthy_file, Access::Observe)
            .unwrap()
            .uuid();
        let seconds = if is_long() { 60 } else { 3 };
        let figures = look_at(
            &fixture,
            hostile.id(),
            &hostile_file,
            Duration::from_secs(seconds),
        );
        let _ = program.finish(SOON).expect_code(0);
        assert_eq!(counters.read(THREADS), [EVENTS; THREADS as usize]);
        assert!(
            hostile.child().try_wait().unwrap().is_none(),
            "the hostile program died"
        );
        assert_eq!(
            hostile.kill().unwrap().stderr_text(),
            "",
            "printed into the program"
        );
        wait_until(SOON, "all of it in the dumps", || {
            (delivered(&both(&fixture), uuid) >= THREADS * EVENTS).then_some(())
        });
        let peak = peak_kib(all.id());
        println!("{mode}: {figures}, recorder's peak {peak} KiB");
        assert!(peak < RECORDER_KIB_MAX, "{peak} KiB");
        all.signal(Signal::INT).unwrap();
        expect_no_crash(&all.finish(SOON), "record --all");
        let is_alive = library.child().try_wait().unwrap().is_none();
        let library = library.kill().unwrap();
        assert!(is_alive, "a recorder ended: {}", library.stderr_text());
        expect_exact(&both(&fixture), uuid);
    }
}

/// The dumps of both recorders, as far as they have written anything: the one that came first has the healthy program.
fn both(fixture: &Fixture) -> Dump {
    let mut builder = DumpBuilder::new();
    let files = ["all.rmk", "library.rmk"].map(|name| (name, fixture.path(name)));
    // A recorder makes its file with the first bytes.
    for (name, path) in files.iter().filter(|(_, path)| path.exists()) {
        let file = File::open(path).unwrap();
        if file.metadata().unwrap().len() > 0
            && let Err(damage) = builder.read(name, file)
        {
            panic!("{damage}");
        }
    }
    builder.finish()
}

/// Has every tool look at the hostile program, again and again.
fn look_at(fixture: &Fixture, pid: u32, file: &Path, time: Duration) -> String {
    let commands = [
        "list".to_owned(),
        "list --json".to_owned(),
        "snapshot -o a.rmk".to_owned(),
        format!("snapshot -o b.rmk -p {pid}"),
        format!("list -v --interval 10ms -p {pid}"),
        format!("cat -p {pid}"),
        format!("cat --follow -p {pid}"),
        format!("graph -p {pid}"),
        format!("events -p {pid}"),
        format!("record -o c.rmk -p {pid}"),
        format!("events --disable scribble.* -p {pid}"),
        format!("events --enable scribble.* -p {pid}"),
        "cat a.rmk".to_owned(),
        "verify b.rmk".to_owned(),
    ];
    let end = Instant::now() + time;
    let (mut runs, mut good, mut longest) = (0, 0, Duration::ZERO);
    while Instant::now() < end {
        for arguments in &commands {
            let start = Instant::now();
            let done = tool(fixture, arguments);
            longest = longest.max(start.elapsed());
            expect_no_crash(&done, arguments);
            runs += 1;
            good += u32::from(done.code() == 0);
        }
        // The library's own recorder, on the one file.
        let mut recorder = fixture.command("timeout");
        recorder
            .args(["0.3", RECORDER])
            .arg(fixture.path("d.rmk"))
            .arg(file);
        let done = run(recorder.stdin(Stdio::null()), SOON).unwrap();
        assert!([0, 1, 124].contains(&done.code()), "{}", done.stderr_text());
    }
    format!("{runs} runs, {good} of them fine, longest {longest:?}")
}

fn start_time(pid: u32) -> String {
    let found = ringmark_ring::identity::start_time(&pid.to_string());
    found.expect("a start time").to_string()
}

#[test]
fn a_claim_to_be_another_process_changes_nothing_about_that_one() {
    if !require_tools(&["timeout", "prlimit"]) {
        return;
    }
    let fixture = Fixture::new("claim");
    let (program, counters, healthy_file) = healthy(&fixture, 100, 600_000);
    wait_until(SOON, "its events", || {
        (counters.read(THREADS) == [EVENTS; 2]).then_some(())
    });
    let victim = program.id();
    let uuid = Session::open(&healthy_file, Access::Observe)
        .unwrap()
        .uuid();
    let mut command = fixture.program(SCRIBBLER, "mode=overwrite,ring=64K,page=4K,session=1M");
    command.args([victim.to_string(), start_time(victim), uuid.to_string()]);
    let hostile = Running::start(&mut command).unwrap();
    let hostile_file = own_file(&fixture, hostile.id());
    wait_until(SOON, "its claim", || {
        let session = Session::open(&hostile_file, Access::Observe).ok()?;
        (session.pid() == victim && session.uuid() == uuid).then_some(())
    });
    expect_told_apart(&fixture, victim, &healthy_file);
    let other = tool(&fixture, &format!("cat -p {}", hostile.id()));
    let other = other.stdout_text();
    assert!(!other.contains("emit.tick"), "{other}");
    let _ = tool(&fixture, &format!("snapshot -o one.rmk -p {victim}"));
    let _ = tool(&fixture, "snapshot -o all.rmk");
    assert_eq!(names(&decode(&fixture.path("one.rmk"))), [["emit.tick"]]);
    let apart: Vec<_> = names(&decode(&fixture.path("all.rmk")));
    assert_eq!(apart, BOTH, "each session its own events");
    let dump = record_both(&fixture, program);
    assert_eq!(names(&dump), BOTH);
    assert_eq!(
        Delivery::of(&dump)
            .rings
            .values()
            .map(|r| r.delivered)
            .sum::<u64>(),
        THREADS * EVENTS
    );
    drop(hostile);
}

/// Events of the victim's session and of the other one.
const BOTH: [[&str; 1]; 2] = [["emit.tick"], ["scribble.tick"]];

/// A recording of all sessions, up to a while after the victim is killed.
fn record_both(fixture: &Fixture, program: Running) -> Dump {
    let mut all = fixture.command(binary::path());
    all.args(["record", "--all", "-o"])
        .arg(fixture.path("record.rmk"));
    let all = Running::start(&mut all).unwrap();
    let dump = fixture.path("record.rmk");
    wait_until(SOON, "events of both", || {
        let is_there = fs::metadata(&dump).is_ok_and(|about| about.len() > 0);
        (is_there && names(&decode(&dump)) == BOTH).then_some(())
    });
    drop(program.kill().unwrap());
    let done = all.interrupt_after(Duration::from_millis(300), SOON);
    let done = done.expect_code(0);
    assert!(
        done.stderr_text().contains("claims the uuid"),
        "{}",
        done.stderr_text()
    );
    decode(&dump)
}

/// `list` and what reads by pid take the victim for itself and the other one for dead.
fn expect_told_apart(fixture: &Fixture, victim: u32, healthy_file: &Path) {
    let lines = tool(fixture, "list --json").expect_code(0).stdout_text();
    for line in lines.lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        let is_healthy = line["path"] == *healthy_file.to_string_lossy();
        let expected = if is_healthy { "alive" } else { "dead" };
        assert_eq!(line["state"], expected, "{line}");
    }
    assert_eq!(lines.lines().count(), 2, "{lines}");
    for arguments in ["cat --json", "events", "cat --json --follow -n 50"] {
        let done = tool(fixture, &format!("{arguments} -p {victim}"));
        let out = done.stdout_text();
        assert!(
            out.contains("emit.tick") && !out.contains("scribble"),
            "{arguments}: {out}"
        );
    }
}

/// Names of the events of each session, in order.
fn names(dump: &Dump) -> Vec<Vec<String>> {
    let mut sessions = std::collections::BTreeMap::<_, Vec<String>>::new();
    for item in dump.events() {
        if let Output::Event(event) = item {
            let name = String::from_utf8_lossy(event.name()).into_owned();
            let names = sessions.entry(event.session.uuid).or_default();
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    let mut names: Vec<_> = sessions.into_values().collect();
    names.sort();
    names
}
