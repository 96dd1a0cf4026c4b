//! Promise: whichever call of a recorder on its dump fails, the dump keeps a valid prefix, it is told once, the
//! exit code says so, the program goes on, and what is not in the dump is still in the rings.

use std::fs;
use std::time::{Duration, SystemTime};

use ringmark_tests::delivery::Delivery;
use ringmark_tests::faulty_recorder::{DISCARD, LeftSession, THREADS};
use ringmark_tests::fixture::SOON;
use ringmark_tests::recording::{decode, record};
use ringmark_tests::{Finished, binary, is_long, require_tools, run};

const EMIT: &str = ringmark_tests::program!("emit");

/// What a recorder says of its failure: one line, which names the dump, the cause and, if it was
/// a write, where.
#[track_caller]
fn expect_told_once(left: &LeftSession, done: &Finished, cause: &str, what: &str) {
    let said = done.stderr_text();
    assert_eq!(said.lines().count(), 1, "{what}: {said}");
    assert_eq!(said.matches(cause).count(), 1, "{what}: {said}");
    let dump = left.dump().display().to_string();
    let parent = left.fixture.path("out").display().to_string();
    assert!(
        said.contains(&dump) || said.contains(&parent),
        "{what}: {said}"
    );
    if let Some((_, at)) = said.split_once("at offset ") {
        let at: u64 = at.split(':').next().and_then(|n| n.parse().ok()).unwrap();
        // A file that could not be made is as long as an empty one.
        let bytes = fs::metadata(left.dump()).map_or(0, |about| about.len());
        assert_eq!(at, bytes, "{what}: {said}");
    }
}

const CAUSES: [(&str, &str); 2] = [
    ("28", "No space left on device"),
    ("5", "Input/output error"),
];

/// Which of the many cases are tried: all, or a share that another run chooses otherwise.
struct Share {
    every: usize,
    place: usize,
}

impl Share {
    fn of(every: usize) -> Self {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let seed = since.unwrap_or(Duration::ZERO).subsec_micros() as usize % every;
        let every = if is_long() { 1 } else { every };
        println!("one of {every}, seed {seed}");
        Self { every, place: seed }
    }

    fn takes_next(&mut self) -> bool {
        self.place += 1;
        self.place.is_multiple_of(self.every)
    }
}

/// Fails call N, for every N of the share; returns how many did.
fn fail_each(left: &LeftSession, options: &str, call: &str, first: u64, share: &mut Share) -> u64 {
    let mut failed = 0;
    for number in first..=left.calls(options)[call] {
        for (error, cause) in CAUSES {
            if !share.takes_next() {
                continue;
            }
            failed += 1;
            let what = format!("{options:?}: {call} {number} fails with {cause}");
            let when = number.to_string();
            let faults = [
                ("SHIM_CALL", call),
                ("SHIM_WHEN", &when),
                ("SHIM_ERROR", error),
            ];
            let done = left.record(options, &faults);
            assert_eq!(done.code(), 1, "{what}: {}", done.stderr_text());
            if done.stderr_text().contains("removed the oldest file") {
                // A full disk costs a rotating dump its oldest file.
                assert!(decode(&left.files()).damage.is_empty(), "{what}");
                continue;
            }
            expect_told_once(left, &done, cause, &what);
            expect_verified(left, &what);
            left.expect_nothing_lost(&what);
        }
    }
    failed
}

/// `ringmark verify` finds nothing wrong with what a failure left.
fn expect_verified(left: &LeftSession, what: &str) {
    let mut files = left.files();
    files.retain(|file| fs::metadata(file).unwrap().len() > 0);
    let mut command = left.fixture.command(binary::path());
    command.args(["verify", "--json"]).args(&files);
    let said = run(&mut command, SOON).unwrap().stdout_text();
    let is_clean = said.contains("\"damaged\":0");
    assert!(files.is_empty() || is_clean, "{what}: {said}");
}

#[test]
fn any_call_on_the_dump_may_fail() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let left = LeftSession::new("faults", EMIT);
    let _ = left.record("", &[]).expect_code(0);
    left.expect_nothing_lost("no fault");
    let rotating = "--rotate 20K --keep 100";
    let mut share = Share::of(3);
    for (options, call, first) in [
        ("", "write", 1),
        (rotating, "write", 1),
        ("--compress delta", "write", 1),
        ("--sync", "fdatasync", 1),
        (rotating, "rename", 1),
        // The first one is below: there is no file yet.
        (rotating, "open", 2),
        ("--sync --rotate 20K --keep 100", "fsync", 2),
    ] {
        let count = fail_each(&left, options, call, first, &mut share);
        println!("{options:?}: {count} failures of {call}");
        assert!(count > 0, "{options:?} {call}");
    }
    for call in ["open", "fsync"] {
        let faults = [("SHIM_CALL", call), ("SHIM_ERROR", "28")];
        let done = left.record("--sync", &faults);
        expect_told_once(&left, &done, CAUSES[0].1, call);
        // The file is made with the first block, so this is a failure of the recording.
        assert_eq!(done.code(), 1);
        left.expect_nothing_lost(call);
    }
}

#[test]
fn interrupted_and_short_writes_are_made_again() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let left = LeftSession::new("short", EMIT);
    let options = "--rotate 20K --keep 100 --sync";
    let calls = left.calls(options);
    let mut share = Share::of(4);
    for (call, error, short, times) in [
        ("write", "4", "0", 3),
        ("write", "0", "1", 1),
        ("write", "0", "700", 50),
        ("fdatasync", "4", "0", 2),
    ] {
        for number in 1..=calls[call] {
            if !share.takes_next() {
                continue;
            }
            let what = format!("{call} {number}: error {error}, short by {short}");
            let (when, times) = (number.to_string(), times.to_string());
            let faults = [
                ("SHIM_CALL", call),
                ("SHIM_WHEN", &when),
                ("SHIM_TIMES", &times),
                ("SHIM_ERROR", error),
                ("SHIM_SHORT", short),
            ];
            let done = left.record(options, &faults);
            assert_eq!(done.code(), 0, "{what}: {}", done.stderr_text());
            assert!(decode(&left.files()).verify().complete, "{what}");
            left.expect_nothing_lost(&what);
        }
    }
}

#[test]
fn a_full_disk_is_waited_for_if_that_was_asked_for() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let left = LeftSession::new("waits", EMIT);
    let mut share = Share::of(5);
    for (options, call) in [
        ("--wait-for-space", "write"),
        ("--wait-for-space --rotate 20K --keep 100", "write"),
        ("--wait-for-space --rotate 20K --keep 100", "open"),
        ("--wait-for-space --rotate 20K --keep 100", "rename"),
    ] {
        let first = if call == "open" { 2 } else { 1 };
        for number in first..=left.calls(options)[call] {
            if !share.takes_next() {
                continue;
            }
            let what = format!("{options:?}: {call} {number}");
            let when = number.to_string();
            let faults = [
                ("SHIM_CALL", call),
                ("SHIM_WHEN", &when),
                ("SHIM_ERROR", "28"),
            ];
            let done = left.record(options, &faults);
            let said = done.stderr_text();
            // The first write of all is made before there is anything to wait with.
            if (call, number) == ("write", 1) {
                assert_eq!(done.code(), 1, "{what}: {said}");
                continue;
            }
            let removed = said.matches("removed the oldest file").count();
            let waited = said.matches("waiting for space").count();
            assert_eq!(done.code(), i32::from(removed > 0), "{what}: {said}");
            assert_eq!(removed + waited, 1, "{what}: {said}");
            for file in left.files() {
                let found = decode(&[file]);
                assert!(found.damage.is_empty(), "{what}: {:?}", found.damage);
            }
            if removed == 0 {
                assert!(decode(&left.files()).verify().complete, "{what}");
                left.expect_nothing_lost(&what);
            }
        }
    }
}

/// Records a running program whose recorder fails at write `number`.
fn fail_beside_program(number: u64, error: &str) -> u64 {
    let left = LeftSession::new("beside", EMIT);
    left.reset();
    fs::remove_file(&left.ring_file).unwrap();
    let events = 4000;
    let mut command = left.fixture.command(binary::path());
    command.args(["record", "-o"]).arg(left.dump()).arg("--");
    command.args([EMIT, "2", &events.to_string(), "burst=200", "pause=3000"]);
    command.env("RINGMARK", DISCARD);
    let when = number.to_string();
    let faults = [
        ("SHIM_CALL", "write"),
        ("SHIM_WHEN", &when),
        ("SHIM_ERROR", error),
    ];
    let done = run(left.with_shim(&mut command, &faults), SOON).unwrap();
    // The program ends with 0; what is not recorded is told by 1.
    let done = done.expect_code(1);
    let (out, said) = (done.stdout_text(), done.stderr_text());
    assert_eq!(out, "", "the program itself says nothing");
    let told = said.matches("at offset").count();
    assert!(
        told == 1 && said.lines().count() == 1,
        "write {number}: {said}"
    );
    let mut dumps = left.files();
    assert!(decode(&dumps).damage.is_empty());
    for ring_file in left.fixture.ring_files() {
        let rest = left.fixture.path("out/rest");
        record(&ring_file, &rest);
        dumps.push(rest);
    }
    let account = Delivery::of(&decode(&dumps));
    account.expect_exact(THREADS, events);
    account.lost()
}

#[test]
fn the_program_goes_on_when_its_recorder_fails() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let mut lossy = 0;
    for number in 1..=if is_long() { 12 } else { 5 } {
        let (error, _) = CAUSES[number as usize % 2];
        lossy += u64::from(fail_beside_program(number, error) > 0);
    }
    println!("{lossy} of them lost events, each counted");
    assert!(
        lossy > 0,
        "no ring was full behind a failed recorder: the test does not bite"
    );
}

/// Every system call of a recorder, as strace lists them: name and how often.
fn system_calls(left: &LeftSession) -> Vec<(String, usize)> {
    let log = left.fixture.path("log");
    let _ = under_strace(left, &[]).expect_code(0);
    let text = fs::read_to_string(log).unwrap();
    let mut calls: Vec<(String, usize)> = Vec::new();
    for line in text.lines() {
        let (_, call) = line.split_once(' ').unwrap_or_default();
        let name = call.trim_start().split('(').next().unwrap_or_default();
        if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
            continue;
        }
        match calls.iter_mut().find(|(n, _)| n == name) {
            Some((_, count)) => *count += 1,
            None => calls.push((name.to_owned(), 1)),
        }
    }
    calls
}

fn under_strace(left: &LeftSession, options: &[&str]) -> Finished {
    left.reset();
    let mut command = left.fixture.command("strace");
    command
        .arg("-f")
        .args(options)
        .arg("-o")
        .arg(left.fixture.path("log"));
    command
        .arg(binary::path())
        .args(["record", "-p", &left.pid, "-o"]);
    command
        .arg(left.dump())
        .args(["--sync", "--rotate", "60K", "--keep", "9"]);
    run(&mut command, SOON).unwrap()
}

#[test]
fn any_system_call_of_a_recorder_may_fail() {
    if !require_tools(&["strace"]) {
        return;
    }
    let mut share = Share::of(23);
    let left = LeftSession::new("calls", EMIT);
    let (mut tried, mut failed) = (0, 0);
    for (name, count) in system_calls(&left) {
        // The process's start and end; and what the standard library cannot do without.
        let fatal = [
            "execve",
            "exit",
            "exit_group",
            "rt_sigreturn",
            "arch_prctl",
            "getrandom",
        ];
        if fatal.contains(&name.as_str()) {
            continue;
        }
        for number in 1..=count {
            for error in ["ENOSPC", "EIO", "EINTR"] {
                if !share.takes_next() {
                    continue;
                }
                tried += 1;
                let injection = format!("inject={name}:error={error}:when={number}");
                failed += u64::from(survives(&left, &injection));
            }
        }
    }
    println!("{tried} calls failed one at a time, {failed} recordings with them");
    assert!(tried > 10 && failed > 0, "{tried} {failed}");
}

/// Whether the recording failed, too; whatever happens, nothing is lost and nothing is wrong.
fn survives(left: &LeftSession, injection: &str) -> bool {
    let done = under_strace(left, &["-e", injection]);
    let (code, said) = (done.code(), done.stderr_text());
    // The standard library gives up like that before `main`, without its memory for signal handlers.
    let is_ours = said.contains("panicked") && !said.contains("/std/src/sys/");
    assert!(!is_ours, "{injection}: {said}");
    // 127 and 134: the loader, or the runtime before `main`, could not go on.
    let known = matches!(code, 0..=4 | 127) || left.files().is_empty();
    assert!(known, "{injection}: exit code {code}, {said}");
    if code == 0 {
        assert!(
            decode(&left.files()).verify().complete,
            "{injection}: {said}"
        );
    }
    if said.contains("removed the oldest file") {
        // A full disk costs a rotating dump its oldest file.
        assert!(decode(&left.files()).damage.is_empty(), "{injection}");
    } else {
        left.expect_nothing_lost(injection);
    }
    code != 0
}

#[test]
fn a_small_disk() {
    if !require_tools(&["unshare", "mount"]) {
        return;
    }
    let left = LeftSession::new("small", EMIT);
    left.reset();
    let out = left.fixture.path("out");
    let on_small_disk = |options: &str, beside: &str| {
        left.reset();
        let mut command = left.fixture.command("unshare");
        let script = format!(
            "mount -t tmpfs -o size=64k,mode=0700 ringmark-test \"$OUT\"
             head -c 40000 /dev/zero > \"$OUT/fill\"
             ({beside}) &
             code=0; {} record -p {} -o \"$OUT/a.rmk\" {options} || code=$?
             wait; mkdir \"$OUT.kept\"; cp -a \"$OUT\"/a.rmk* \"$OUT.kept\"; exit $code",
            binary::path().display(),
            left.pid
        );
        command
            .args(["--mount", "sh", "-euc", &script])
            .env("OUT", &out);
        let kept = left.fixture.path("out.kept");
        let _ = fs::remove_dir_all(&kept);
        let done = run(&mut command, SOON).unwrap();
        fs::remove_dir_all(&out).unwrap();
        fs::rename(kept, &out).unwrap();
        done
    };
    let done = on_small_disk("", ":");
    expect_told_once(&left, &done, "No space left on device", "full");
    assert_eq!(done.code(), 1);
    left.expect_nothing_lost("full");

    let done = on_small_disk(
        "--wait-for-space --compress delta",
        "sleep 0.5; rm \"$OUT/fill\"",
    )
    .expect_code(0);
    let said = done.stderr_text();
    assert!(
        !said.contains("No space") || said.contains("waiting for space"),
        "{said}"
    );
    assert!(decode(&left.files()).verify().complete);

    let done = on_small_disk("--rotate 8K --keep 100", ":").expect_code(1);
    let said = done.stderr_text();
    assert!(said.contains("removed the oldest file"), "{said}");
    let found = decode(&left.files());
    assert!(found.damage.is_empty(), "{:?}", found.damage);
    assert!(left.files().len() > 1, "{:?}", left.files());
}
