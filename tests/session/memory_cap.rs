//! Promise: too little memory, or a directory that cannot or must not be used, makes tracing smaller
//! or switches it off, with the reason; the program goes on and prints nothing.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::Path;
use std::process::Command;

use ringmark_format::attribute::tag;
use ringmark_tests::delivery::Delivery;
use ringmark_tests::fixture::{Counters, Fixture, SOON};
use ringmark_tests::recording::decode;
use ringmark_tests::{Finished, require_tools, run};
use rustix::process::geteuid;

const EMIT: &str = ringmark_tests::program!("emit");
const RECORDER: &str = ringmark_tests::program!("recorder");
const EVENTS: u64 = 1000;

fn need_root(what: &str) {
    assert!(geteuid().is_root(), "needs root: {what}");
}

/// Runs a shell script in a mount namespace of its own, in which `$DIR` is the session directory.
fn in_own_mounts(fixture: &Fixture, script: &str) -> Finished {
    let mut command = fixture.command("unshare");
    command.args(["--mount", "sh", "-euc", script]);
    command.env("DIR", fixture.sessions());
    fs::create_dir_all(fixture.sessions()).unwrap();
    fs::set_permissions(fixture.sessions(), fs::Permissions::from_mode(0o700)).unwrap();
    run(&mut command, 3 * SOON).unwrap()
}

/// The program ended well and was silent; whatever else the script did.
#[track_caller]
fn expect_silent(done: Finished) {
    let done = done.expect_code(0);
    assert_eq!(
        (done.stdout_text(), done.stderr_text()),
        (String::new(), String::new())
    );
}

/// Emits into a tmpfs of 2 MiB of which `free` bytes are left, reads what is there, and returns
/// what became of the session: its size and its books, or `None` where tracing was off.
fn with_free_bytes(free: u64, ringmark: &str) -> Option<(u64, Delivery)> {
    let fixture = Fixture::new("full");
    let dump = fixture.path("a.rmk");
    let fill = (2 << 20) - free;
    let script = format!(
        "mount -t tmpfs -o size=2m,mode=0700 ringmark-test \"$DIR\"
         [ {fill} = 0 ] || head -c {fill} /dev/zero > \"$DIR/fill\"
         RINGMARK={ringmark} {EMIT} 3 {EVENTS}
         for f in \"$DIR\"/*.ring; do
             [ -e \"$f\" ] || exit 0
             {RECORDER} {dump} \"$f\" > /dev/null < /dev/null
         done",
        dump = dump.display()
    );
    expect_silent(in_own_mounts(&fixture, &script));
    if !dump.exists() {
        return None;
    }
    let decoded = decode(&[dump]);
    let session = &decoded.sessions[0];
    let notice = session.attribute(tag::NOTICE).unwrap_or_default();
    let notice = String::from_utf8_lossy(notice).into_owned();
    assert!(
        notice.contains("a quarter of the filesystem's free space"),
        "{notice}"
    );
    let account = Delivery::of(&decoded);
    assert_eq!(
        account.delivered() + account.lost(),
        3 * EVENTS,
        "{free} bytes free"
    );
    Some((session.header.unwrap().file_bytes, account))
}

#[test]
fn a_full_tmpfs_makes_it_smaller_or_switches_it_off() {
    if !require_tools(&["unshare", "mount"]) {
        return;
    }
    need_root("to mount a small tmpfs in a namespace of its own");
    let mut traced = 0;
    for free in [0, 4, 8, 60, 100, 128, 160, 200, 256, 320, 512, 1024, 2048] {
        for ringmark in ["mode=discard", "mode=discard,control=off,page=4K"] {
            let found = with_free_bytes(free << 10, ringmark);
            if let Some((bytes, account)) = &found {
                traced += 1;
                println!("{free} KiB: {bytes}, delivered {}", account.delivered());
            }
            assert!(free > 60 || found.is_none(), "a session in {free} KiB");
            assert!(free < 1024 || found.is_some(), "no session in {free} KiB");
        }
    }
    assert!(traced >= 4, "{traced}");
}

#[test]
fn a_tmpfs_that_fills_up_later_costs_events_and_nothing_else() {
    if !require_tools(&["unshare", "mount"]) {
        return;
    }
    need_root("to mount a small tmpfs in a namespace of its own");
    let fixture = Fixture::new("later");
    let dump = fixture.path("a.rmk");
    let counters = Counters::new(fixture.path("counters"));
    // The session starts with room enough; when its threads emit, there is none left.
    let script = format!(
        "mount -t tmpfs -o size=8m,mode=0700 ringmark-test \"$DIR\"
         RINGMARK=mode=discard,control=off,warm=0,keep=always {EMIT} 12 {EVENTS} gate=0 {ledger} &
         while ! ls \"$DIR\"/*.ring > /dev/null 2>&1; do :; done
         head -c 9000000 /dev/zero > \"$DIR/fill\" 2> /dev/null || :
         {go}
         wait $!
         {RECORDER} {dump} \"$DIR\"/*.ring > /dev/null < /dev/null",
        ledger = counters.argument(),
        go = counters.go_in_shell(),
        dump = dump.display()
    );
    expect_silent(in_own_mounts(&fixture, &script));
    let account = Delivery::of(&decode(&[dump]));
    println!("delivered {}, lost {}", account.delivered(), account.lost());
    assert_eq!((account.delivered(), account.lost()), (0, 12 * EVENTS));
    assert_eq!(account.elsewhere.get("no memory"), Some(&(12 * EVENTS)));
}

#[test]
fn a_read_only_directory_switches_it_off() {
    if !require_tools(&["unshare", "mount"]) {
        return;
    }
    need_root("to mount a read-only tmpfs in a namespace of its own");
    let fixture = Fixture::new("readonly");
    let script = format!(
        "mount -t tmpfs -o ro,mode=0700 ringmark-test \"$DIR\"
         RINGMARK=1 {EMIT} 2 {EVENTS}
         RINGMARK=1 RINGMARK_VERBOSE=1 {EMIT} 2 {EVENTS} 2> {}",
        fixture.path("said").display()
    );
    expect_silent(in_own_mounts(&fixture, &script));
    let said = fs::read_to_string(fixture.path("said")).unwrap();
    assert!(said.contains("Read-only file system"), "{said}");
}

#[test]
fn little_address_space_never_hurts_the_program() {
    let fixture = Fixture::new("rlimit");
    let run_with = |limit_kib: u64, ringmark: &str| {
        let mut command = fixture.program("sh", ringmark);
        let script = format!("ulimit -v {limit_kib} && exec {EMIT} 0 {EVENTS}");
        command.args(["-c", &script]);
        run(&mut command, SOON).unwrap()
    };
    let (mut untraced, mut traced) = (0, 0);
    for limit_kib in (2000..40_000).step_by(500) {
        if run_with(limit_kib, "0").code() != 0 {
            continue;
        }
        untraced += 1;
        expect_silent(run_with(limit_kib, "mode=overwrite,keep=always"));
        traced += fixture.ring_files().len();
        fs::remove_dir_all(fixture.sessions()).unwrap_or(());
    }
    println!("{untraced} limits that the program lives with, {traced} of them traced");
    assert!(untraced > 20 && traced > 0 && traced < untraced);
}

#[test]
fn a_limit_on_file_sizes_never_hurts_the_program() {
    let fixture = Fixture::new("fsize");
    for blocks in [0, 1, 8, 100, 200, 400, 4000] {
        for memfd in ["", ",memfd=on"] {
            let mut command = fixture.program("sh", &format!("mode=overwrite,keep=always{memfd}"));
            let script = format!("ulimit -f {blocks} && exec {EMIT} 0 {EVENTS}");
            command.args(["-c", &script]);
            expect_silent(run(&mut command, SOON).unwrap());
        }
    }
    assert!(!fixture.ring_files().is_empty(), "none of them was traced");
}

/// What a program with this uid says when it is traced into `dir`.
fn said_by(uid: u32, dir: &Path) -> String {
    let mut command = Command::new("setpriv");
    let uid = uid.to_string();
    command.args(["--reuid", &uid, "--clear-groups", EMIT, "0", "10"]);
    command
        .envs([("RINGMARK", "1"), ("RINGMARK_VERBOSE", "1")])
        .env("RINGMARK_DIR", dir);
    run(&mut command, SOON)
        .unwrap()
        .expect_code(0)
        .stderr_text()
}

/// Files below `dir`, of any owner.
fn files_in(dir: &Path) -> usize {
    fs::read_dir(dir).unwrap().count()
}

#[test]
fn links_foreign_owners_and_open_directories_are_refused() {
    if !require_tools(&["setpriv"]) {
        return;
    }
    need_root("to run as two users");
    const NOBODY: u32 = 65534;
    let fixture = Fixture::new("refused");
    fs::set_permissions(fixture.path("."), fs::Permissions::from_mode(0o755)).unwrap();
    let make = |name: &str, owner: u32, mode: u32| {
        let dir = fixture.path(name);
        fs::create_dir(&dir).unwrap();
        chown(&dir, Some(owner), Some(owner)).unwrap();
        fs::set_permissions(&dir, fs::Permissions::from_mode(mode)).unwrap();
        dir
    };
    let (roots, nobodys) = (make("roots", 0, 0o755), make("nobodys", NOBODY, 0o700));
    let open = make("open", NOBODY, 0o777);
    let link = fixture.path("link");
    symlink(&nobodys, &link).unwrap();
    for (uid, dir, expected) in [
        (NOBODY, &roots, "belongs to uid 0, expected 65534"),
        (0, &nobodys, "belongs to uid 65534, expected 0"),
        (NOBODY, &open, "lets others write"),
        (
            NOBODY,
            &link,
            "not a directory of its own (a link or a file)",
        ),
        (0, &link, "not a directory of its own (a link or a file)"),
    ] {
        let said = said_by(uid, dir);
        assert!(
            said.contains(expected),
            "{uid} in {}: {said}",
            dir.display()
        );
        assert_eq!(
            files_in(dir),
            0,
            "something was written into {}",
            dir.display()
        );
    }
    assert_eq!(said_by(NOBODY, &nobodys), "", "its own directory is fine");
}

#[test]
fn ring_files_are_for_their_owner_alone() {
    let fixture = Fixture::new("mode");
    let program = fixture.start(EMIT, "1", "0 10 hold=600000");
    let about = fs::metadata(fixture.ring_file()).unwrap();
    assert_eq!(about.mode() & 0o7777, 0o600);
    let dir = fs::metadata(fixture.sessions()).unwrap();
    assert_eq!(dir.mode() & 0o7777, 0o700);
    drop(program);
}
