//! Promise: a session belongs to a process, not to a number: it is alive as long as its process is,
//! also in another pid namespace, and only its owner or root may read it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use ringmark_decoder::Output;
use ringmark_reader::{Access, Session};
use ringmark_ring::clean;
use ringmark_ring::identity::{self, Liveness};
use ringmark_tests::delivery::Delivery;
use ringmark_tests::fixture::{Counters, Fixture, SOON, wait_until_mapped};
use ringmark_tests::process::wait_for_end;
use ringmark_tests::recording::read;
use ringmark_tests::{Running, require_tools, run, wait_until};
use rustix::process::{Pid, Signal, geteuid, kill_process};

const EMIT: &str = ringmark_tests::program!("emit");
const FORKS: &str = ringmark_tests::program!("forks");
const RECORDER: &str = ringmark_tests::program!("recorder");
const RINGMARK: &str = "mode=overwrite,ring=64K,page=4K,session=4M";

/// A traced program as the first process of a pid namespace of its own.
struct First {
    container: Running,
    counters: Counters,
    ring_file: PathBuf,
}

impl First {
    fn start(fixture: &Fixture, name: &str, known: &[&Path]) -> Self {
        let counters = Counters::new(fixture.path(name));
        let mut command = fixture.program("unshare", RINGMARK);
        command.args(["--pid", "--fork", "--kill-child", EMIT, "1", "1000000000"]);
        let container = Running::start(command.arg(counters.argument())).unwrap();
        counters.wait_for(1);
        let is_new = |path: &PathBuf| !known.contains(&path.as_path());
        let ring_file = fixture.ring_files().into_iter().find(is_new).unwrap();
        Self {
            container,
            counters,
            ring_file,
        }
    }

    fn session(&self) -> Session {
        Session::open(&self.ring_file, Access::Observe).unwrap()
    }

    fn kill(&self) {
        let pid = self.container.id();
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
        let init = Pid::from_raw(children.trim().parse().unwrap()).unwrap();
        kill_process(init, Signal::KILL).unwrap();
        wait_for_end(init);
    }
}

#[test]
fn two_first_processes_in_one_directory_are_not_mixed_up() {
    if !require_tools(&["unshare"]) {
        return;
    }
    let fixture = Fixture::new("pidns");
    let one = First::start(&fixture, "one", &[]);
    let two = First::start(&fixture, "two", &[&one.ring_file]);
    let (a, b) = (one.session(), two.session());
    assert_eq!((a.pid(), b.pid()), (1, 1));
    assert_ne!(a.header().pid_namespace, b.header().pid_namespace);
    assert_eq!(
        (a.liveness(), b.liveness()),
        (Liveness::Alive, Liveness::Alive)
    );
    one.kill();
    wait_until(SOON, "its death", || {
        (a.liveness() == Liveness::Dead).then_some(())
    });
    assert_eq!(b.liveness(), Liveness::Alive);
    let account = Delivery::of(&read(std::slice::from_ref(&one.ring_file)));
    account.expect_ledger(&one.counters.ledger(1));
    two.kill();
    wait_until(SOON, "its death", || b.process_ended().then_some(()));
}

#[test]
fn a_process_that_closed_all_its_descriptors_is_alive() {
    let fixture = Fixture::new("closed");
    let program = fixture.start(FORKS, "mode=discard,ring=64K,page=4K,session=4M", "close");
    let ring_file = fixture.ring_file();
    let session = Session::open(&ring_file, Access::Observe).unwrap();
    // 100 before, 100 behind: the ring that it has stays usable. Another thread finds none.
    wait_until(SOON, "its events", || {
        let dump = read(std::slice::from_ref(&ring_file));
        let is_event = |item: &Output<'_>| matches!(item, Output::Event(_));
        (dump.events().filter(is_event).count() >= 200).then_some(())
    });
    assert_eq!(session.liveness(), Liveness::Alive);
    assert!(!session.process_ended());
    drop(program.kill().unwrap());
    assert_eq!(session.liveness(), Liveness::Dead);
}

/// A command that runs `script` in a pid namespace of its own, which has `/proc`.
fn namespace(fixture: &Fixture, ringmark: &str, script: &str) -> Command {
    assert!(geteuid().is_root(), "needs root: a pid namespace");
    let mut command = fixture.program("unshare", ringmark);
    let options = ["--pid", "--fork", "--kill-child", "--mount-proc"];
    command.args(options).args(["sh", "-c", script]);
    command
}

/// The process that a shell which is the first of its namespace has started.
fn only_child_of_init(container: &Running) -> Pid {
    let child = |pid: i32| -> Option<i32> {
        let path = format!("/proc/{pid}/task/{pid}/children");
        fs::read_to_string(path).ok()?.trim().parse().ok()
    };
    let pid = wait_until(SOON, "the namespace's processes", || {
        child(child(container.id() as i32)?)
    });
    Pid::from_raw(pid).unwrap()
}

#[test]
fn one_elsewhere_that_closed_all_its_descriptors_is_alive() {
    if !require_tools(&["unshare"]) {
        return;
    }
    let fixture = Fixture::new("elsewhere");
    let command = &mut namespace(&fixture, RINGMARK, &format!("{FORKS} close & wait"));
    let container = Running::start(command).unwrap();
    let ring_file = fixture.ring_file();
    let session = Session::open(&ring_file, Access::Observe).unwrap();
    wait_until(SOON, "its events", || {
        let dump = read(std::slice::from_ref(&ring_file));
        let is_event = |item: &Output<'_>| matches!(item, Output::Event(_));
        (dump.events().filter(is_event).count() >= 200).then_some(())
    });
    assert!(
        !identity::lock_is_held(session.ring().file()),
        "it held its lock"
    );
    assert_eq!(session.liveness(), Liveness::Alive);
    assert!(!session.process_ended());
    assert_eq!(clean::dead_sessions(&fixture.sessions()), []);
    kill_process(only_child_of_init(&container), Signal::KILL).unwrap();
    wait_until(SOON, "its death", || session.process_ended().then_some(()));
    assert_eq!(clean::dead_sessions(&fixture.sessions()).len(), 1);
}

/// Containers are shown a boot id of their own: it says nothing of who lives.
#[test]
fn a_process_with_another_boot_id_is_alive() {
    if !require_tools(&["unshare", "mount"]) {
        return;
    }
    assert!(geteuid().is_root(), "needs root: a mount namespace");
    let fixture = Fixture::new("boot");
    let boot_id = "01234567-89ab-cdef-0123-456789abcdef";
    let script = format!(
        "echo {boot_id} > $1 && mount --bind $1 /proc/sys/kernel/random/boot_id &&
        exec {EMIT} 0 1000 hold=60000"
    );
    let mut command = fixture.program("unshare", RINGMARK);
    command.args(["--mount", "sh", "-c", &script, "sh"]);
    let program = Running::start(command.arg(fixture.path("boot_id"))).unwrap();
    let ring_file = fixture.ring_file();
    let session = Session::open(&ring_file, Access::Observe).unwrap();
    assert_eq!(session.header().boot_id, identity::parse_uuid(boot_id));
    session.look_thoroughly();
    assert_eq!(session.liveness(), Liveness::Alive);
    assert!(!session.process_ended() && session.shares_clocks());
    assert_eq!(clean::dead_sessions(&fixture.sessions()), []);
    drop(program.kill().unwrap());
    wait_until(SOON, "its death", || session.process_ended().then_some(()));
    assert_eq!(clean::dead_sessions(&fixture.sessions()).len(), 1);
}

#[test]
fn one_elsewhere_is_dead_though_its_child_and_other_readers_hold_its_file() {
    if !require_tools(&["unshare"]) {
        return;
    }
    let fixture = Fixture::new("parent");
    let script = format!("exec 3<&0; {FORKS} silent <&3 & wait; sleep 60");
    let command = &mut namespace(&fixture, RINGMARK, &script);
    let container = Running::start(command.stdin(Stdio::piped())).unwrap();
    let ring_file = fixture.ring_file();
    let session = Session::open(&ring_file, Access::Observe).unwrap();
    let parent = only_child_of_init(&container);
    let children = format!("/proc/{0}/task/{0}/children", parent.as_raw_nonzero());
    wait_until(SOON, "its child", || {
        let text = fs::read_to_string(&children).unwrap();
        (!text.is_empty()).then_some(())
    });
    let dump = fixture.path("a.rmk");
    let recorder = fixture.recorder(RECORDER, &dump, Some(&ring_file)).unwrap();
    wait_until_mapped(&recorder, &ring_file);
    assert!(!session.process_ended());
    kill_process(parent, Signal::KILL).unwrap();
    wait_for_end(parent);
    wait_until(SOON, "its death", || {
        (session.process_ended()).then_some(())
    });
    let _ = recorder.finish(SOON).expect_code(0);
}

#[test]
fn a_pid_that_another_process_has_now_says_nothing() {
    if !require_tools(&["unshare"]) {
        return;
    }
    // The next process gets the pid behind the last one.
    let script = format!(
        "{EMIT} 0 1000 hold=600000 & a=$!
        until [ -e $RINGMARK_DIR/$a-*.ring ]; do :; done
        file=$(echo $RINGMARK_DIR/$a-*.ring)
        {RECORDER} --liveness $file
        kill -9 $a; wait $a
        echo $((a - 1)) > /proc/sys/kernel/ns_last_pid || exit 3
        $1 & b=$!
        until [ $(ls $RINGMARK_DIR/*.ring | wc -l) = $2 ]; do :; done
        {RECORDER} --liveness $file
        echo $((a - b))
        [ $2 = 1 ] || {RECORDER} --liveness $(ls $RINGMARK_DIR/*.ring | grep -v $file)
        kill -9 $b"
    );
    // The next owner of the pid is a program that is not traced, or one that is.
    let emit = format!("{EMIT} 0 1000 hold=600000");
    for (next, sessions, said) in [
        ("sleep 60", "1", "Alive false\nDead true\n0\n"),
        (&emit, "2", "Alive false\nDead true\n0\nAlive false\n"),
    ] {
        let fixture = Fixture::new("reuse");
        let mut command = namespace(&fixture, RINGMARK, &script);
        let done = run(command.args(["sh", next, sessions]), SOON).unwrap();
        let done = done.expect_code(0);
        assert_eq!(done.stdout_text(), said, "{}", done.stderr_text());
    }
}

#[test]
fn another_user_reads_nothing() {
    if !require_tools(&["setpriv"]) {
        return;
    }
    assert!(geteuid().is_root(), "needs root: to run as another user");
    let fixture = Fixture::new("users");
    let program = fixture.start(EMIT, RINGMARK, "0 10 hold=600000");
    let ring_file = fixture.ring_file();
    // Even where everybody may enter the directory, the file is its owner's.
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(fixture.sessions(), open).unwrap();
    for access in ["read", "write"] {
        let mut command = fixture.command("setpriv");
        command.args(["--reuid", "65534", "--clear-groups"]);
        match access {
            "read" => command.arg("cat").arg(&ring_file),
            _ => command.arg(RECORDER).arg("/dev/null").arg(&ring_file),
        };
        let done = run(&mut command, SOON).unwrap();
        assert_eq!((done.code(), done.stdout.len()), (1, 0));
        assert!(
            done.stderr_text().contains("ermission denied"),
            "{}",
            done.stderr_text()
        );
    }
    drop(program);
}
