//! Promise: hosts without `/dev/shm`, `/proc`, a home or anything but the program itself, with little
//! memory or strange masks, are no harm; the reason for less tracing, or none, shows in `list`.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;

use ringmark_tests::delivery::Delivery;
use ringmark_tests::fixture::{Fixture, SOON};
use ringmark_tests::process::SLEEPS;
use ringmark_tests::recording::read;
use ringmark_tests::{Running, binary, require_tools, run, wait_until};

const EMIT: &str = ringmark_tests::program!("emit");
const NOBODY: u32 = 65534;

/// Runs a script in mounts of its own, with `$EMIT`, `$RINGMARK_CLI` and the default session
/// directory; returns what it printed.
fn in_own_mounts(script: &str) -> String {
    let fixture = Fixture::new("host");
    let mut command = fixture.command("unshare");
    command.args(["--mount", "sh", "-euc", script]);
    command.env_remove("RINGMARK_DIR");
    command.envs([("EMIT", EMIT), ("RINGMARK", "mode=overwrite")]);
    command
        .env("CLI", binary::path())
        .env("STAGE", fixture.path("."));
    let done = run(&mut command, 2 * SOON).unwrap().expect_code(0);
    assert_eq!(done.stderr_text(), "", "{script}");
    done.stdout_text()
}

fn has_tools() -> bool {
    require_tools(&["unshare", "mount", "setpriv"])
}

#[test]
fn a_directory_that_cannot_be_used_shows_in_the_list() {
    if !has_tools() {
        return;
    }
    for (mounts, expected) in [
        (
            "mount -t tmpfs none /dev",
            "/dev/shm: No such file or directory",
        ),
        (
            "mount -t tmpfs -o ro none /dev/shm",
            "/dev/shm: Read-only file system",
        ),
        (
            "mount -t tmpfs -o size=16k none /dev/shm",
            "bytes are free, a session needs at least",
        ),
        (
            "mount -t tmpfs none /dev/shm; mkdir -m 777 /dev/shm/ringmark-0; chmod 777 /dev/shm/ringmark-0",
            "lets others write, expected 700",
        ),
    ] {
        let list = "$CLI list 2>&1 || [ $? = 4 ]";
        let said = in_own_mounts(&format!("{mounts}\n$EMIT 2 100\n{list}"));
        assert!(said.contains(expected), "{mounts}: {said}");
        let said = in_own_mounts(&format!("{mounts}\nRINGMARK_VERBOSE=1 $EMIT 2 100 2>&1"));
        assert!(
            said.starts_with("ringmark: tracing is off: "),
            "{mounts}: {said}"
        );
    }
    // Writable for its owner only, who is another user.
    let said = in_own_mounts(
        "mount -t tmpfs -o mode=755 none /dev/shm
         setpriv --reuid 65534 --clear-groups $EMIT 2 100
         setpriv --reuid 65534 --clear-groups $CLI list",
    );
    assert!(said.contains("/dev/shm: Permission denied"), "{said}");
}

#[test]
fn a_small_dev_shm_makes_a_small_session_and_says_so() {
    if !has_tools() {
        return;
    }
    for size in ["1m", "16m"] {
        let said = in_own_mounts(&format!(
            "mount -t tmpfs -o size={size} none /dev/shm
             $EMIT 4 2000 hold=30000 & while ! $CLI list | grep -q alive; do :; done
             $CLI list; kill $!"
        ));
        let expected = "by a quarter of the filesystem's free space";
        assert!(said.contains(expected), "{size}: {said}");
    }
    let said = in_own_mounts(
        "mount -t tmpfs -o size=64m none /dev/shm
         RINGMARK=mode=discard $EMIT 4 2000; $CLI list",
    );
    assert!(
        said.contains("closed") && !said.contains("quarter"),
        "{said}"
    );
}

#[test]
fn a_program_without_proc_is_alive_to_others_until_it_ends() {
    if !has_tools() {
        return;
    }
    for hide in [
        "mount -t tmpfs none /proc",
        "mount -t proc -o hidepid=2 none /proc",
    ] {
        let fixture = Fixture::new("proc");
        let script = format!("{hide}\nexec {EMIT} 2 1000 hold=600000");
        let mut command = fixture.program("unshare", "mode=overwrite");
        let program = Running::start(command.args(["--mount", "sh", "-euc", &script])).unwrap();
        let state = || {
            let mut list = fixture.command(binary::path());
            let said = run(list.args(["list", "--json"]), SOON)
                .unwrap()
                .expect_code(0);
            let said = said.stdout_text();
            let states = ["alive", "dead", "closed"];
            states
                .into_iter()
                .find(|state| said.contains(&format!("\"state\":\"{state}\"")))
        };
        let first = wait_until(SOON, "a session", state);
        assert_eq!(first, "alive", "{hide}");
        // Its session is there before its first event: killed now, it would have fewer.
        program.wait_until_in(&SLEEPS);
        assert_eq!(program.kill().unwrap().stderr_text(), "");
        assert_eq!(state(), Some("dead"), "{hide}");
        assert_eq!(Delivery::of(&read(&fixture.ring_files())).delivered(), 2000);
    }
}

/// Gives the fixture and its session directory to an unprivileged user.
fn give_to_nobody(fixture: &Fixture, mode: u32) {
    fs::set_permissions(fixture.path("."), fs::Permissions::from_mode(0o755)).unwrap();
    fs::create_dir(fixture.path("home")).unwrap();
    fs::set_permissions(fixture.path("home"), fs::Permissions::from_mode(mode)).unwrap();
    chown(fixture.path("home"), Some(NOBODY), None).unwrap();
}

fn check(fixture: &Fixture, sessions: &Path, events: u64) {
    let dir = fs::metadata(sessions).unwrap().permissions().mode();
    assert_eq!(dir & 0o7777, 0o700);
    let files = fs::read_dir(sessions).unwrap().flatten();
    let files: Vec<_> = files.map(|entry| entry.path()).collect();
    assert_eq!(files.len(), 1, "{files:?}");
    let mode = fs::metadata(&files[0]).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o600);
    let dump = fixture.path("a.rmk");
    ringmark_tests::recording::record(&files[0], &dump);
    let account = Delivery::of(&ringmark_tests::recording::decode(&[dump]));
    assert_eq!(account.delivered(), events);
}

#[test]
fn nobody_without_home_or_environment_under_any_mask_is_traced() {
    if !has_tools() {
        return;
    }
    for umask in ["0777", "0000", "0077"] {
        let fixture = Fixture::new("nobody");
        give_to_nobody(&fixture, 0o700);
        let sessions = fixture.path("home").join("sessions");
        let script = format!(
            "umask {umask}; exec env -i RINGMARK=mode=overwrite,keep=always RINGMARK_DIR={} {EMIT} 2 500",
            sessions.display()
        );
        let mut command = fixture.command("setpriv");
        let uid = NOBODY.to_string();
        command.args(["--reuid", &uid, "--clear-groups", "sh", "-euc", &script]);
        let done = run(&mut command, SOON).unwrap().expect_code(0);
        assert_eq!(
            (done.stdout_text(), done.stderr_text()),
            (String::new(), String::new())
        );
        check(&fixture, &sessions, 1000);
    }
}

#[test]
fn a_root_with_nothing_but_the_program_is_enough() {
    if !require_tools(&["chroot", "ldd", "cp"]) {
        return;
    }
    let fixture = Fixture::new("root");
    let root = fixture.path("root");
    let script = "
        mkdir -p $ROOT; cp $EMIT $ROOT/emit
        for lib in $(ldd $EMIT | grep -o '/[^ ]*'); do mkdir -p $ROOT${lib%/*}; cp $lib $ROOT$lib; done
        RINGMARK_DIR=/sessions chroot $ROOT /emit 2 500
        RINGMARK_DIR=/none/sessions chroot $ROOT /emit 2 500";
    let mut command = fixture.program("sh", "mode=overwrite,keep=always");
    command.args(["-euc", script]);
    command.env("ROOT", &root).env("EMIT", EMIT);
    let done = run(&mut command, SOON).unwrap().expect_code(0);
    assert_eq!(
        (done.stdout_text(), done.stderr_text()),
        (String::new(), String::new())
    );
    check(&fixture, &root.join("sessions"), 1000);
}

#[test]
fn a_working_directory_that_is_gone_is_no_harm() {
    let fixture = Fixture::new("gone");
    let script = format!(
        "mkdir {0}; cd {0}; rmdir {0}; {EMIT} 2 500; RINGMARK_DIR=here {EMIT} 2 500",
        fixture.path("cwd").display()
    );
    let mut command = fixture.program("sh", "mode=overwrite,keep=always");
    let done = run(command.args(["-euc", &script]), SOON)
        .unwrap()
        .expect_code(0);
    assert_eq!(
        (done.stdout_text(), done.stderr_text()),
        (String::new(), String::new())
    );
    check(&fixture, &fixture.sessions(), 1000);
}

#[test]
fn a_cgroup_with_little_memory_makes_a_small_session() {
    if !has_tools() {
        return;
    }
    // The limit stands where the process's own group is, or around it, as it would be read.
    let said = in_own_mounts(
        "mount -t tmpfs none /sys/fs/cgroup
         while IFS=: read -r _ names group; do
             case $names in
                 '') file=/sys/fs/cgroup$group/memory.max;;
                 memory|*,memory|memory,*) file=/sys/fs/cgroup/memory$group/memory.limit_in_bytes;;
                 *) continue;;
             esac
             mkdir -p ${file%/*}; echo 16777216 > $file
         done < /proc/self/cgroup
         mount -t tmpfs none /dev/shm
         RINGMARK=mode=discard $EMIT 4 2000; $CLI list",
    );
    assert!(
        said.contains("1048576 bytes by a sixteenth of the cgroup's memory limit"),
        "{said}"
    );
}
