//! Promise: no descriptors, no threads, no memory: the program goes on, with less tracing or none,
//! and prints nothing. What programs do to their own descriptors hurts neither them nor a trace.

use std::fs;
use std::path::Path;

use ringmark_format::attribute::tag;
use ringmark_tests::delivery::Delivery;
use ringmark_tests::fixture::{Fixture, SOON};
use ringmark_tests::recording::{decode, read};
use ringmark_tests::{Finished, Running, binary, is_long, require_tools, run, wait_until};
use rustix::process::Signal;

const EMIT: &str = ringmark_tests::program!("emit");
const ODD: &str = ringmark_tests::program!("odd");
const SESSIONS: [&str; 2] = [
    "mode=overwrite,keep=always",
    "mode=discard,control=off,keep=always",
];

fn odd(fixture: &Fixture, ringmark: &str, arguments: &[&str]) -> Finished {
    let mut command = fixture.program(ODD, ringmark);
    run(command.args(arguments), SOON).unwrap()
}

/// The reason that a program left, which is not traced.
fn note(fixture: &Fixture) -> Option<String> {
    let entries = fs::read_dir(fixture.sessions()).ok()?.flatten();
    let mut paths = entries.map(|entry| entry.path());
    let path = paths.find(|path| path.extension().is_some_and(|e| e == "off"))?;
    fs::read_to_string(path).ok()
}

fn delivered_and_lost(file: &Path) -> u64 {
    let account = Delivery::of(&read(&[file.to_owned()]));
    account.delivered() + account.lost()
}

/// Runs it under a limit. `None`: it cannot live so even when it is not traced. Else whether it was
/// traced; then all its events are there or counted.
fn under(what: u32, value: u64, ringmark: &str) -> Option<bool> {
    let arguments = ["limit", &what.to_string(), &value.to_string()];
    let fixture = Fixture::new("limit");
    let untraced = odd(&fixture, "0", &arguments);
    if untraced.code() != 0 {
        return None;
    }
    let done = odd(&fixture, ringmark, &arguments);
    let place = format!("RINGMARK={ringmark} limit {what} {value}");
    let said = done.stdout_text();
    assert_eq!(
        (done.code(), done.stderr_text()),
        (0, String::new()),
        "{place}: {said}"
    );
    let (is_on, events) = said.trim().split_once(' ').unwrap();
    if is_on == "true" {
        let sum = delivered_and_lost(&fixture.ring_file());
        assert_eq!(sum, events.parse::<u64>().unwrap(), "{place}");
    } else {
        assert_eq!(fixture.ring_files().len(), 0, "{place}");
        let is_out_of_files = what == libc::RLIMIT_NOFILE;
        assert!(
            note(&fixture).is_some() || is_out_of_files,
            "{place}: no reason"
        );
    }
    Some(is_on == "true")
}

#[test]
fn few_descriptors() {
    for ringmark in SESSIONS {
        let traced: Vec<_> = (0..8)
            .map(|limit| under(libc::RLIMIT_NOFILE, limit, ringmark))
            .collect();
        println!("{ringmark}: {traced:?}");
        assert_eq!((traced[3], traced[7]), (Some(false), Some(true)));
    }
}

#[test]
fn little_memory() {
    let step = if is_long() { 4 } else { 64 };
    let limits = [
        // Data, address space, locked memory.
        (libc::RLIMIT_DATA, 64..4096, step << 10),
        (libc::RLIMIT_AS, 2500..32_000, step << 13),
        (libc::RLIMIT_MEMLOCK, 0..1, 1 << 10),
    ];
    for (what, range, step) in limits {
        let (mut tried, mut traced) = (0, 0);
        for value in (range.start << 10..range.end << 10).step_by(step) {
            let ringmark = SESSIONS[tried % 2];
            if let Some(is_on) = under(what, value, ringmark) {
                tried += 1;
                traced += usize::from(is_on);
            }
        }
        println!("limit {what}: {tried} tried, {traced} traced");
        assert!(tried > 0 && traced > 0, "{what}: {tried} {traced}");
    }
}

#[test]
fn no_further_thread() {
    if !require_tools(&["setpriv"]) {
        return;
    }
    // Root may have any number; no other process here has this uid.
    let fixture = Fixture::new("nproc");
    let uid = (3_000_000 + std::process::id()).to_string();
    fs::create_dir(fixture.sessions()).unwrap();
    std::os::unix::fs::chown(fixture.sessions(), uid.parse().ok(), None).unwrap();
    fs::set_permissions(
        fixture.path("."),
        std::os::unix::fs::PermissionsExt::from_mode(0o755),
    )
    .unwrap();
    let mut command = fixture.program("setpriv", SESSIONS[0]);
    command.args(["--reuid", &uid, "--clear-groups", ODD, "limit"]);
    command.args([&libc::RLIMIT_NPROC.to_string(), "1"]);
    let done = run(&mut command, SOON).unwrap().expect_code(0);
    let said = (done.stdout_text(), done.stderr_text());
    assert_eq!(said, ("true 1000\n".to_owned(), String::new()));
    let dump = read(&fixture.ring_files());
    assert_eq!(Delivery::of(&dump).delivered(), 1000);
    let session = &dump.sessions[0];
    let notice = session.attribute(tag::NOTICE).unwrap_or_default();
    let notice = String::from_utf8_lossy(notice);
    assert!(
        notice.starts_with("control is off: no helper thread: "),
        "{notice}"
    );
    assert_eq!(session.header.unwrap().mailbox_offset, 0);
}

#[test]
fn what_is_printed_without_standard_output_lands_in_no_ring_file() {
    for mask in 1..8 {
        for ringmark in [
            "mode=overwrite,keep=always",
            "mode=discard,control=off,keep=always",
        ] {
            let fixture = Fixture::new("closed");
            let mask = mask.to_string();
            let _ = odd(&fixture, ringmark, &["closed", &mask]).expect_code(0);
            assert_eq!(delivered_and_lost(&fixture.ring_file()), 2000, "{mask}");
        }
    }
}

#[test]
fn a_daemon_that_closed_all_descriptors_keeps_its_files_and_its_trace() {
    for ringmark in [
        "mode=overwrite,keep=always",
        "mode=discard,control=off,warm=0,keep=always",
    ] {
        let fixture = Fixture::new("daemon");
        let file = fixture.path("log");
        fs::write(&file, "its own").unwrap();
        let done = odd(&fixture, ringmark, &["daemon", &file.display().to_string()]);
        assert_eq!(done.expect_code(0).stdout_text(), "true 2000\n");
        assert_eq!(fs::read(&file).unwrap(), b"its own");
        let account = Delivery::of(&read(&fixture.ring_files()));
        assert_eq!(account.delivered(), 2000, "{account:?}");
    }
}

/// `record --all` that may have few files open.
fn record_all(fixture: &Fixture, files: u32) -> Running {
    let mut command = fixture.command("prlimit");
    command.arg(format!("--nofile={files}:{files}"));
    command.arg(binary::path()).args(["record", "--all", "-o"]);
    Running::start(command.arg(fixture.path("all.rmk"))).unwrap()
}

#[test]
fn a_recorder_out_of_descriptors_comes_back_to_what_it_left() {
    if !require_tools(&["prlimit"]) {
        return;
    }
    let fixture = Fixture::new("short-recorder");
    let ringmark = "mode=discard,control=off,ring=64K,session=1M";
    let programs: Vec<_> = (0..12)
        .map(|_| fixture.start(EMIT, ringmark, "1 100"))
        .collect();
    for program in programs {
        let _ = program.finish(SOON).expect_code(0);
    }
    assert_eq!(fixture.ring_files().len(), 12);
    let recorder = record_all(&fixture, 16);
    wait_until(3 * SOON, "every session to be recorded", || {
        fixture.ring_files().is_empty().then_some(())
    });
    recorder.signal(Signal::INT).unwrap();
    let said = recorder.finish(SOON).expect_code(0).stderr_text();
    assert!(said.contains("Too many open files"), "{said}");
    let account = Delivery::of(&decode(&[fixture.path("all.rmk")]));
    assert_eq!((account.delivered(), account.lost()), (1200, 0));
}

#[test]
fn sessions_left_out_for_want_of_descriptors_are_told() {
    if !require_tools(&["prlimit"]) {
        return;
    }
    let fixture = Fixture::new("short-recorder-live");
    let start = |_| fixture.start(EMIT, "control=off", "1 1000000000 burst=10 pause=1000");
    let programs: Vec<_> = (0..12).map(start).collect();
    wait_until(SOON, "every session", || {
        (fixture.ring_files().len() == 12).then_some(())
    });
    let recorder = record_all(&fixture, 16);
    wait_until(SOON, "a dump", || {
        fs::metadata(fixture.path("all.rmk"))
            .ok()
            .filter(|about| about.len() > 0)
    });
    recorder.signal(Signal::INT).unwrap();
    let said = recorder.finish(SOON).expect_code(1).stderr_text();
    assert!(said.contains("left out"), "{said}");
    for program in programs {
        drop(program.kill().unwrap());
    }
}
