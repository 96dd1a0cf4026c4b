//! Promise: a recorder that stands outside holds a descriptor of each session: when the process
//! dies, together with its namespaces and the memory file system of its ring file, its last
//! committed event is still dumped.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use ringmark_tests::delivery::Delivery;
use ringmark_tests::fixture::{Counters, Fixture, SOON, stop_recorder, wait_until_mapped};
use ringmark_tests::recording::decode;
use ringmark_tests::{Running, TempDir, require_tools, wait_until};
use rustix::process::{Pid, Signal, geteuid, kill_process};

const EMIT: &str = ringmark_tests::program!("emit");
const RECORDER: &str = ringmark_tests::program!("recorder");
const THREADS: u64 = 2;

fn start_watch(mut command: Command, dumps: &Path) -> Running {
    fs::create_dir_all(dumps).unwrap();
    command.arg("--on-death").arg(dumps).stdin(Stdio::piped());
    Running::start(&mut command).unwrap()
}

/// The dump of the process with this pid in its own namespace, once it is written.
fn wait_for_dump(dumps: &Path, pid: u32) -> PathBuf {
    let of_pid = format!("-{pid}-");
    wait_until(SOON, "a dump", || {
        let entries = fs::read_dir(dumps).unwrap().flatten().map(|e| e.path());
        let mut ours = entries.filter(|p| p.to_string_lossy().contains(&of_pid));
        ours.find(|path| ends_with_counters(path))
    })
}

/// A dump ends with its counters: only then is it complete.
fn ends_with_counters(path: &Path) -> bool {
    let dump = decode(&[path.to_owned()]);
    dump.sessions.iter().any(|s| s.is_final())
}

#[test]
fn a_killed_process_is_dumped_even_if_its_file_was_deleted() {
    for mode in ["overwrite", "discard"] {
        let fixture = Fixture::new("ondeath");
        let dumps = fixture.path("dumps");
        let watch = start_watch(fixture.command(RECORDER), &dumps);
        let counters = Counters::new(fixture.path("committed"));
        let arguments = format!("{THREADS} 1000000000 {}", counters.argument());
        let ringmark = format!("mode={mode},ring=64K,page=4K,session=8M");
        let program = fixture.start(EMIT, &ringmark, &arguments);
        let pid = program.id();
        let ring_file = fixture.ring_file();
        counters.wait_for(THREADS);
        wait_until_mapped(&watch, &ring_file);
        fs::remove_file(&ring_file).unwrap();
        watch.wait_for_sleeps(3);
        drop(program.kill().unwrap());
        let dump = wait_for_dump(&dumps, pid);
        let _ = stop_recorder(watch, SOON);
        Delivery::of(&decode(&[dump])).expect_ledger(&counters.ledger(THREADS));
    }
}

#[test]
fn a_clean_end_is_not_a_death() {
    let fixture = Fixture::new("clean");
    let dumps = fixture.path("dumps");
    let watch = start_watch(fixture.command(RECORDER), &dumps);
    let counters = Counters::new(fixture.path("committed"));
    let arguments = format!("1 1000 gate=500 {}", counters.argument());
    let program = fixture.start(EMIT, "mode=overwrite", &arguments);
    wait_until_mapped(&watch, &fixture.ring_file());
    counters.go();
    let _ = program.finish(SOON).expect_code(0);
    let maps = format!("/proc/{}/maps", watch.id());
    wait_until(SOON, "the recorder to let it go", || {
        let maps = fs::read_to_string(&maps).unwrap();
        (!maps.contains(".ring")).then_some(())
    });
    let said = stop_recorder(watch, SOON);
    assert!(said.contains("Closed"), "{said}");
    assert_eq!(fs::read_dir(&dumps).unwrap().count(), 0);
}

/// A traced program as the first process of its own pid namespace, with a `/dev/shm` of its own.
fn start_container(counters: &Counters) -> Running {
    let script = format!(
        "mount -t tmpfs ringmark-test /dev/shm && exec {EMIT} {THREADS} 1000000000 {}",
        counters.argument()
    );
    let mut command = Command::new("unshare");
    command.args([
        "--mount",
        "--pid",
        "--fork",
        "--kill-child",
        "sh",
        "-c",
        &script,
    ]);
    command
        .env_remove("RINGMARK_DIR")
        .env("RINGMARK", "mode=overwrite,ring=64K,page=4K");
    Running::start(&mut command).unwrap()
}

/// Its first process, as we see it.
fn init_of(container: &Running) -> u32 {
    let pid = container.id();
    wait_until(SOON, "the container's first process", || {
        let path = format!("/proc/{pid}/task/{pid}/children");
        fs::read_to_string(path).ok()?.trim().parse().ok()
    })
}

#[test]
fn a_container_dies_with_its_memory_and_is_dumped() {
    if !require_tools(&["unshare", "mount"]) {
        return;
    }
    assert!(
        geteuid().is_root(),
        "needs root: a mount namespace and a pid namespace of its own"
    );
    let fixture = Fixture::new("container");
    // The container's /dev/shm is another one: what is shared with it lies elsewhere.
    let outside = TempDir::new_in(&std::env::temp_dir(), "container").unwrap();
    let counters = Counters::new(outside.join("committed"));
    let dumps = fixture.path("dumps");
    let watch = start_watch(fixture.command(RECORDER), &dumps);
    let container = start_container(&counters);
    let init = init_of(&container);
    counters.wait_for(THREADS);
    let directory = format!("/proc/{init}/root/dev/shm/ringmark-0");
    let mut files = fs::read_dir(directory).unwrap().flatten();
    let ring_file = files.next().unwrap().path();
    assert!(
        !Path::new("/dev/shm")
            .join(ring_file.file_name().unwrap())
            .exists()
    );
    wait_until_mapped(&watch, &ring_file);
    let init = Pid::from_raw(init as i32).unwrap();
    kill_process(init, Signal::KILL).unwrap();
    drop(container);
    let dump = wait_for_dump(&dumps, 1);
    let said = stop_recorder(watch, SOON);
    let ledger = counters.ledger(THREADS);
    let account = Delivery::of(&decode(&[dump]));
    let delivered = account.delivered();
    println!("calls returned and begun {ledger:?}, {delivered} in the dump; {said}");
    account.expect_ledger(&ledger);
}
