//! Promise: what another user put where our directories and files would be is refused, with the
//! reason, by the traced program, the reader and every tool; only a session's owner and root see,
//! record, follow or control it.

use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use ringmark_reader::{Access, Session};
use ringmark_tests::binary;
use ringmark_tests::fixture::{Fixture, SOON};
use ringmark_tests::process::SLEEPS;
use ringmark_tests::{Finished, Running, require_tools, run};
use rustix::process::geteuid;

const EMIT: &str = ringmark_tests::program!("emit");
const RECORDER: &str = ringmark_tests::program!("recorder");
const NOBODY: u32 = 65534;
const RINGMARK: &str = "mode=overwrite,ring=64K,page=4K,session=1M";

/// Nothing here may wait: a FIFO in place of a file would let it, for ever.
const LIMIT: Duration = SOON;

fn may_run() -> bool {
    assert!(geteuid().is_root(), "needs root: to be two users");
    require_tools(&["setpriv", "mkfifo"])
}

/// A command of `uid` that looks into `dir`.
fn command(fixture: &Fixture, uid: u32, dir: &Path, exe: &Path) -> Command {
    let mut command = if uid == 0 {
        fixture.command(exe)
    } else {
        let mut command = fixture.command("setpriv");
        let uid = uid.to_string();
        command.args(["--reuid", &uid, "--regid", &uid, "--clear-groups"]);
        command.arg(exe);
        command
    };
    command.env("RINGMARK_DIR", dir);
    command
}

fn tool(fixture: &Fixture, uid: u32, dir: &Path, arguments: &str) -> Finished {
    let mut command = command(fixture, uid, dir, binary::path());
    command.args(arguments.split_ascii_whitespace());
    let running = Running::start(command.current_dir(outputs(fixture, uid))).unwrap();
    // What would go on for ever is ended as a person does.
    let endless = ["record", "cat --follow", "stream"];
    if endless.iter().any(|name| arguments.starts_with(name)) {
        return running.interrupt_after(Duration::from_millis(800), LIMIT);
    }
    running.finish(LIMIT)
}

/// A directory that this user may write dumps to.
fn outputs(fixture: &Fixture, uid: u32) -> PathBuf {
    let path = fixture.path(&format!("out-{uid}"));
    if !path.exists() {
        fs::create_dir(&path).unwrap();
        chown(&path, Some(uid), Some(uid)).unwrap();
    }
    path
}

#[track_caller]
fn expect_told(done: &Finished, code: i32, place: &Path, reason: &str) {
    let (out, err) = (done.stdout_text(), done.stderr_text());
    assert_eq!(done.code(), code, "{}: {out}{err}", place.display());
    let told = |line: &str| line.contains(&*place.to_string_lossy()) && line.contains(reason);
    let is_told = err.split(['\n', ';']).any(told);
    assert!(is_told, "{} is {reason}: {out}{err}", place.display());
}

fn make_dir(fixture: &Fixture, name: &str, owner: u32, mode: u32) -> PathBuf {
    let dir = fixture.path(name);
    fs::create_dir(&dir).unwrap();
    chown(&dir, Some(owner), Some(owner)).unwrap();
    fs::set_permissions(&dir, fs::Permissions::from_mode(mode)).unwrap();
    dir
}

fn make_fifo(path: &Path) {
    let done = run(Command::new("mkfifo").arg(path), SOON).unwrap();
    drop(done.expect_code(0));
}

/// What may stand in the place of a user's session directory, and why it is refused.
fn wrong_directories(fixture: &Fixture, uid: u32) -> Vec<(PathBuf, &'static str)> {
    let kind = "not a directory of its own (a link or a file)";
    let good = make_dir(fixture, "good", uid, 0o700);
    let named = |name: &str| (fixture.path(name), kind);
    let mut wrong = ["link", "dangling", "file", "fifo", "socket"]
        .map(named)
        .to_vec();
    symlink(&good, &wrong[0].0).unwrap();
    symlink(fixture.path("nowhere"), &wrong[1].0).unwrap();
    fs::write(&wrong[2].0, "").unwrap();
    make_fifo(&wrong[3].0);
    drop(UnixListener::bind(&wrong[4].0).unwrap());
    for (name, mode) in [
        ("group", 0o770),
        ("world", 0o702),
        ("all", 0o777),
        ("sticky", 0o1777),
    ] {
        wrong.push((make_dir(fixture, name, uid, mode), "lets others write"));
    }
    wrong
}

#[test]
fn a_wrong_directory_is_refused_by_everybody() {
    if !may_run() {
        return;
    }
    let mut cases = 0;
    for uid in [0, NOBODY] {
        let fixture = Fixture::new("dirs");
        let mut wrong = wrong_directories(&fixture, uid);
        let foreign = make_dir(&fixture, "foreign", NOBODY - uid, 0o755);
        let reason = format!("belongs to uid {}, expected {uid}", NOBODY - uid);
        wrong.push((foreign, reason.leak()));
        for (dir, reason) in &wrong {
            let mut program = command(&fixture, uid, dir, Path::new(EMIT));
            program.args(["0", "10"]);
            program.envs([("RINGMARK", RINGMARK), ("RINGMARK_VERBOSE", "1")]);
            let done = run(&mut program, LIMIT).unwrap();
            expect_told(&done, 0, dir, reason);
            cases += 1;
            if uid == 0 && dir.ends_with("foreign") {
                // Root only writes into its own, and looks into everybody's.
                drop(tool(&fixture, uid, dir, "list").expect_code(0));
                continue;
            }
            let mut recorder = command(&fixture, uid, dir, Path::new(RECORDER));
            let done = run(recorder.arg("/dev/null"), LIMIT).unwrap();
            expect_told(&done, 1, dir, reason);
            cases += 1;
            for arguments in ["list", "list --json", "record --all", "snapshot", "clean"] {
                let done = tool(&fixture, uid, dir, arguments);
                expect_told(&done, 4, dir, reason);
                cases += 1;
            }
        }
        for (dir, _) in wrong.iter().filter(|(dir, _)| dir.is_dir()) {
            assert_eq!(fs::read_dir(dir).unwrap().count(), 0, "{}", dir.display());
        }
    }
    println!("{cases} of {cases} wrong directories refused with the reason");
}

/// What may stand in a user's directory under the name of a ring file, and why it is refused.
fn wrong_files(dir: &Path, elsewhere: &Path, uid: u32) -> Vec<(PathBuf, String)> {
    let regular = "expected a regular file";
    let wrong = [
        ("1-link.ring", format!("a symbolic link, {regular}")),
        ("2-dangling.ring", format!("a symbolic link, {regular}")),
        ("3-fifo.ring", format!("a FIFO, {regular}")),
        ("4-socket.ring", format!("a socket, {regular}")),
        ("5-directory.ring", format!("a directory, {regular}")),
        (
            "6-hard.ring",
            "2 names (hard links), expected one".to_owned(),
        ),
        (
            "7-hard.ring",
            "2 names (hard links), expected one".to_owned(),
        ),
        (
            "8-foreign.ring",
            format!("belongs to uid {}, expected {uid}", NOBODY - uid),
        ),
    ];
    let wrong = wrong
        .map(|(name, reason)| (dir.join(name), reason))
        .to_vec();
    symlink(elsewhere, &wrong[0].0).unwrap();
    symlink("nowhere", &wrong[1].0).unwrap();
    make_fifo(&wrong[2].0);
    drop(UnixListener::bind(&wrong[3].0).unwrap());
    fs::create_dir(&wrong[4].0).unwrap();
    fs::copy(elsewhere, &wrong[5].0).unwrap();
    fs::hard_link(&wrong[5].0, &wrong[6].0).unwrap();
    fs::copy(elsewhere, &wrong[7].0).unwrap();
    for (path, _) in &wrong[2..7] {
        chown(path, Some(uid), Some(uid)).unwrap();
    }
    chown(&wrong[7].0, Some(NOBODY - uid), None).unwrap();
    fs::set_permissions(&wrong[7].0, fs::Permissions::from_mode(0o644)).unwrap();
    wrong
}

#[test]
fn a_wrong_file_is_refused_by_all_and_stands_in_no_ones_way() {
    if !may_run() {
        return;
    }
    let mut cases = 0;
    for uid in [0, NOBODY] {
        let fixture = Fixture::new("files");
        let dead = "mode=overwrite,ring=64K,page=4K,session=1M,keep=always";
        let _ = fixture
            .start(EMIT, dead, "0 10")
            .finish(SOON)
            .expect_code(0);
        let elsewhere = fixture.ring_file();
        fs::set_permissions(fixture.sessions(), fs::Permissions::from_mode(0o755)).unwrap();
        fs::set_permissions(&elsewhere, fs::Permissions::from_mode(0o644)).unwrap();
        let dir = make_dir(&fixture, "dir", uid, 0o700);
        let wrong = wrong_files(&dir, &elsewhere, uid);
        let mut healthy = command(&fixture, uid, &dir, Path::new(EMIT));
        healthy
            .args(["0", "10", "hold=600000"])
            .env("RINGMARK", RINGMARK);
        let healthy = Running::start(&mut healthy).unwrap();
        wait_for_session(&dir, healthy.id());
        for (path, reason) in &wrong {
            let mut recorder = command(&fixture, uid, &dir, Path::new(RECORDER));
            let done = run(recorder.arg("/dev/null").arg(path), LIMIT).unwrap();
            // By its path alone root may read everybody's; others cannot even open it.
            let is_foreign = path.ends_with("8-foreign.ring");
            if is_foreign && uid == 0 {
                continue;
            }
            let denied = "Permission denied";
            expect_told(&done, 1, path, if is_foreign { denied } else { reason });
            cases += 1;
        }
        for arguments in ["list", "list --json", "snapshot", "record --all"] {
            let done = tool(&fixture, uid, &dir, arguments);
            for (path, reason) in &wrong {
                expect_told(&done, 0, path, reason);
                cases += 1;
            }
            if arguments.contains("list") {
                let lines = done.stdout_text();
                assert!(lines.contains(&healthy.id().to_string()), "{lines}");
                assert!(!lines.contains("-foreign.ring"), "{lines}");
            }
        }
        drop(tool(&fixture, uid, &dir, "clean").expect_code(0));
        for (path, _) in &wrong {
            assert!(fs::symlink_metadata(path).is_ok(), "{}", path.display());
        }
        assert!(elsewhere.exists());
        let by_root = Session::open(&wrong[2].0, Access::Observe);
        assert!(by_root.is_err(), "a FIFO");
    }
    println!("{cases} of {cases} wrong files refused with the reason");
}

fn wait_for_session(dir: &Path, pid: u32) {
    let stem = format!("{pid}-");
    ringmark_tests::wait_until(SOON, "the session", || {
        let mut names = fs::read_dir(dir).unwrap().flatten().map(|e| e.file_name());
        let is_it = |name: &str| name.starts_with(&stem) && name.ends_with(".ring");
        names
            .any(|name| is_it(&name.to_string_lossy()))
            .then_some(())
    });
}

#[test]
fn a_squatted_note_is_neither_followed_nor_waited_for() {
    if !may_run() {
        return;
    }
    let fixture = Fixture::new("notes");
    let dir = make_dir(&fixture, "dir", 0, 0o700);
    let victim = fixture.path("victim");
    for plant in [
        "ln -s $1 $2",
        "mkfifo $2",
        "mkdir $2",
        "cp $1 $2",
        "ln $1 $2",
    ] {
        fs::write(&victim, "untouched").unwrap();
        // The program keeps the shell's pid, and the pid is the note's name.
        let script = format!(
            "set -- {} $RINGMARK_DIR/$$.off; {plant}; exec {EMIT} 0 10",
            victim.display()
        );
        let mut shell = command(&fixture, 0, &dir, Path::new("sh"));
        shell
            .args(["-euc", &script])
            .env("RINGMARK", "mode=neither");
        let done = run(&mut shell, LIMIT).unwrap().expect_code(0);
        assert_eq!(done.stderr_text(), "", "{plant}");
        assert_eq!(fs::read_to_string(&victim).unwrap(), "untouched", "{plant}");
        drop(tool(&fixture, 0, &dir, "list").expect_code(0));
    }
}

#[test]
fn a_squatted_default_directory_is_refused() {
    if !may_run() || !require_tools(&["unshare", "mount"]) {
        return;
    }
    let fixture = Fixture::new("default");
    let ringmark = binary::path().display();
    let nobody = format!("setpriv --reuid {NOBODY} --regid {NOBODY} --clear-groups");
    let script = format!(
        "mount -t tmpfs -o size=4m,mode=1777 ringmark-test /dev/shm
         for plant in 'mkdir -m 777' 'mkdir -m 755' 'touch' 'mkfifo' 'ln -s /tmp'; do
             $plant /dev/shm/ringmark-{NOBODY}
             RINGMARK=1 RINGMARK_VERBOSE=1 {nobody} {EMIT} 0 10 2>&1 | grep -q 'off: /dev/shm/ringmark-{NOBODY}'
             for tool in list snapshot clean 'record --all -o /dev/null'; do
                 code=0; {nobody} {ringmark} $tool > /dev/null 2> /dev/shm/said || code=$?
                 [ $code = 4 ]
                 grep -q /dev/shm/ringmark-{NOBODY}: /dev/shm/said
             done
             {ringmark} list 2>&1 > /dev/null | grep -q /dev/shm/ringmark-{NOBODY}:
             rm -r /dev/shm/ringmark-{NOBODY}
             echo $plant
         done"
    );
    // The binaries lie below directories that the other user may enter.
    let mut command = fixture.command("unshare");
    command.args(["--mount", "sh", "-eufc", &script]);
    command.env_remove("RINGMARK_DIR");
    let done = run(&mut command, 2 * SOON).unwrap();
    let done = done.expect_code(0);
    assert_eq!(
        done.stdout_text().lines().count(),
        5,
        "{}",
        done.stdout_text()
    );
}

/// Every command that looks into, records or controls what lives.
fn commands(pid: u32) -> Vec<String> {
    let of_pid = [
        "record -o a.rmk -p",
        "snapshot -o b.rmk -p",
        "list -v --interval 10ms -p",
        "cat -p",
        "cat --follow -p",
        "graph -p",
        "events -p",
        "events --disable emit.* -p",
        "events --enable emit.* -p",
    ];
    let of_all = [
        "list",
        "snapshot -o c.rmk",
        "record --all -o d.rmk",
        "clean",
    ];
    let of_pid = of_pid.iter().map(|command| format!("{command} {pid}"));
    of_pid.chain(of_all.map(str::to_owned)).collect()
}

/// Those that load code into it or wait for a collector: root's would do so.
fn commands_of_strangers(pid: u32) -> Vec<String> {
    let all = [
        "trace status -p",
        "trace start --all-functions --detach -p",
        "trace stop -p",
        "functions -p",
        "stream --to tcp://127.0.0.1:9 -p",
    ];
    all.map(|command| format!("{command} {pid}")).to_vec()
}

#[test]
fn another_user_is_denied_and_root_is_not() {
    if !may_run() {
        return;
    }
    let (mut denied, mut allowed) = (0, 0);
    for memfd in ["", ",memfd=on"] {
        for owner in [0, NOBODY] {
            let fixture = Fixture::new("users");
            let dir = make_dir(&fixture, "dir", owner, 0o700);
            let mut program = command(&fixture, owner, &dir, Path::new(EMIT));
            program.args(["0", "100", "hold=600000"]);
            program.env("RINGMARK", format!("{RINGMARK}{memfd}"));
            let program = Running::start(&mut program).unwrap();
            // It has emitted all it emits.
            program.wait_until_in(&SLEEPS);
            let mut commands = commands(program.id());
            if owner == 0 {
                commands.extend(commands_of_strangers(program.id()));
            }
            for arguments in commands {
                let done = tool(&fixture, NOBODY - owner, &dir, &arguments);
                let text = format!("{arguments}: {}{}", done.stdout_text(), done.stderr_text());
                if owner == NOBODY {
                    let expected = match arguments.split(' ').next() {
                        // No function is traced; a memfd has no name in the directory.
                        Some("graph") => 3,
                        _ if !memfd.is_empty() && arguments == "snapshot -o c.rmk" => 4,
                        _ => 0,
                    };
                    assert_eq!(done.code(), expected, "{text}");
                    allowed += 1;
                    continue;
                }
                assert_eq!(done.code(), 4, "{text}");
                let is_told = text.contains("not permitted") || text.contains("expected 65534");
                assert!(is_told, "{text}");
                assert!(!text.contains("emit.tick"), "{text}");
                denied += 1;
            }
            for name in ["a", "b", "c", "d"] {
                let dump = outputs(&fixture, NOBODY - owner).join(format!("{name}.rmk"));
                let bytes = File::open(dump)
                    .and_then(|f| f.metadata())
                    .map_or(0, |m| m.len());
                assert!(owner == NOBODY || bytes == 0, "{name}: {bytes} bytes");
            }
        }
    }
    println!("{denied} of {denied} commands of another user denied, {allowed} of root allowed");
}
