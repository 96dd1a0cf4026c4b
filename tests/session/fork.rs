//! Promise: parent and child are traced each in a session of its own; no event of one process is
//! ever found in the session of another.

use std::collections::BTreeMap;
use std::process::Stdio;

use ringmark_decoder::{Dump, Output};
use ringmark_reader::{Access, Session, find};
use ringmark_ring::identity::Liveness;
use ringmark_tests::delivery::number;
use ringmark_tests::fixture::{Fixture, SOON};
use ringmark_tests::process::wait_for_end;
use ringmark_tests::recording::read;
use ringmark_tests::{Finished, Running, wait_until};
use rustix::process::Pid;

const FORKS: &str = ringmark_tests::program!("forks");
/// Small sessions that stay: dead ones beyond 64 MiB would be cleared away.
const SMALL: &str = "ring=64K,page=4K,session=1M,warm=1,keep=always";
/// What each part of the program emits.
const EVENTS: u64 = 100;

fn run(fixture: &Fixture, mode: &str, arguments: &str) -> Finished {
    let program = fixture.start(FORKS, &format!("mode={mode},{SMALL}"), arguments);
    let done = program.finish(3 * SOON).expect_code(0);
    assert_eq!(done.stderr_text(), "");
    done
}

/// Events by session, each session told by its pid; nothing foreign, nothing lost.
fn events_by_pid(dump: &Dump) -> BTreeMap<u32, u64> {
    let (found, lost) = events_and_losses(dump);
    assert_eq!(lost, 0, "{found:?}");
    found
}

/// As [`events_by_pid`], and what was lost for want of a ring.
fn events_and_losses(dump: &Dump) -> (BTreeMap<u32, u64>, u64) {
    let (mut found, mut losses) = (BTreeMap::new(), 0);
    for item in dump.events() {
        match item {
            Output::Event(event) => {
                let pid = event.session.pid();
                assert_eq!(number(&event, "pid"), Some(pid.into()), "a foreign event");
                *found.entry(pid).or_default() += 1;
            }
            // A parent whose children take long writes its ring over: that was written.
            Output::Lost(lost) if lost.loss.why.cause() == "overwritten" => {}
            Output::Lost(lost) => {
                assert_eq!(lost.loss.why.cause(), "no ring");
                losses += lost.loss.count;
            }
        }
    }
    (found, losses)
}

/// As many sessions as processes, with this many events, in the order of size.
#[track_caller]
fn expect(fixture: &Fixture, expected: &[u64]) {
    let files = fixture.ring_files();
    assert_eq!(files.len(), expected.len(), "{files:?}");
    let dump = read(&files);
    let mut counts: Vec<_> = events_by_pid(&dump).into_values().collect();
    counts.sort_unstable();
    assert_eq!(counts, expected);
}

#[test]
fn a_forked_child_has_a_session_of_its_own() {
    for mode in ["discard", "overwrite"] {
        let fixture = Fixture::new("fork");
        run(&fixture, mode, "plain");
        expect(&fixture, &[EVENTS, 3 * EVENTS]);
    }
}

#[test]
fn so_has_the_child_of_the_child() {
    let fixture = Fixture::new("nested");
    run(&fixture, "discard", "nested");
    expect(&fixture, &[EVENTS, EVENTS, 2 * EVENTS]);
}

#[test]
fn a_child_is_not_traced_if_asked_for() {
    let fixture = Fixture::new("off");
    run(&fixture, "discard,fork=off", "plain");
    expect(&fixture, &[3 * EVENTS]);
}

#[test]
fn other_threads_emit_during_every_fork() {
    let fixture = Fixture::new("threaded");
    run(&fixture, "overwrite", "threaded 40");
    let files = fixture.ring_files();
    assert_eq!(files.len(), 41);
    let parent: Vec<_> = files
        .iter()
        .filter(|f| is_largest(f, &files))
        .cloned()
        .collect();
    let children: Vec<_> = files
        .iter()
        .filter(|f| !parent.contains(f))
        .cloned()
        .collect();
    let (counts, lost) = events_and_losses(&read(&children));
    assert_eq!(counts.len(), 40);
    // Two threads emit at once before the child has its session: it is started by one, and the
    // other does not wait.
    assert_eq!(
        counts.values().sum::<u64>() + lost,
        40 * 2 * EVENTS,
        "{counts:?}, lost {lost}"
    );
    assert!(counts.values().all(|n| *n >= EVENTS), "{counts:?}");
    let (_, lost) = events_and_losses(&read(&parent));
    assert_eq!(lost, 0);
}

/// The parent's session: the one whose events include the first of all.
fn is_largest(file: &std::path::Path, files: &[std::path::PathBuf]) -> bool {
    let start = |path: &std::path::Path| {
        Session::open(path, Access::Observe)
            .unwrap()
            .header()
            .mono_zero_ns
    };
    files.iter().all(|other| start(file) <= start(other))
}

#[test]
fn two_hundred_children_at_once() {
    let fixture = Fixture::new("storm");
    run(&fixture, "discard,control=off", "storm 200");
    let mut expected = vec![EVENTS; 200];
    expected.push(2 * EVENTS);
    expect(&fixture, &expected);
}

#[test]
fn a_raw_clone_writes_nothing_and_counts() {
    let fixture = Fixture::new("clone");
    let done = run(&fixture, "discard", "clone");
    assert_eq!(done.stdout_text(), format!("{EVENTS}\n"));
    expect(&fixture, &[2 * EVENTS]);
}

#[test]
fn a_command_is_a_session_and_its_parent_stays_one() {
    let fixture = Fixture::new("command");
    run(&fixture, "discard", "command");
    expect(&fixture, &[EVENTS, 2 * EVENTS]);
}

#[test]
fn exec_ends_a_session_and_the_new_program_has_its_own() {
    let fixture = Fixture::new("exec");
    let program = fixture.start(FORKS, &format!("mode=discard,{SMALL}"), "exec");
    let pid = program.id();
    let _ = program.finish(SOON).expect_code(0);
    let files = fixture.ring_files();
    assert_eq!(files.len(), 2);
    let dump = read(&files);
    assert!(dump.sessions.iter().all(|s| s.pid() == pid));
    assert_eq!(events_by_pid(&dump), BTreeMap::from([(pid, 2 * EVENTS)]));
    assert!(dump.sessions.iter().all(|s| s.is_final()));
}

#[test]
fn a_dead_parent_is_dead_while_a_silent_child_holds_its_files() {
    let fixture = Fixture::new("silent");
    let mut command = fixture.program(FORKS, &format!("mode=discard,{SMALL}"));
    command.arg("silent").stdin(Stdio::piped());
    let program = Running::start(&mut command).unwrap();
    let ring_file = fixture.ring_file();
    let session = Session::open(&ring_file, Access::Observe).unwrap();
    wait_until(SOON, "the child", || children_of(program.id()));
    assert_eq!(session.liveness(), Liveness::Alive);
    assert!(!session.process_ended());
    program.signal(rustix::process::Signal::KILL).unwrap();
    wait_for_end(Pid::from_raw(program.id() as i32).unwrap());
    // The child goes on, and is not waited for.
    wait_until(SOON, "its end", || session.process_ended().then_some(()));
    assert_eq!(session.liveness(), Liveness::Dead);
    assert_eq!(find::in_directory(&fixture.sessions()).unwrap().len(), 1);
    drop(program);
    expect(&fixture, &[EVENTS]);
}

fn children_of(pid: u32) -> Option<()> {
    let path = format!("/proc/{pid}/task/{pid}/children");
    let children = std::fs::read_to_string(path).ok()?;
    (!children.trim().is_empty()).then_some(())
}

#[test]
fn what_a_child_does_with_its_parents_handles_stays_in_the_child() {
    let fixture = Fixture::new("reserved");
    // During this the parent's own helper makes no ring ready.
    let ringmark = format!("mode=overwrite,{}", SMALL.replace("warm=1", "warm=0"));
    let done = fixture.start(FORKS, &ringmark, "reserved").finish(SOON);
    let done = done.expect_code(0);
    let (changed, places) = (done.stdout_text(), done.stderr_text());
    assert_eq!(changed.trim(), "0", "bytes of the parent changed: {places}");
}

#[test]
fn a_fork_while_the_session_starts_leaves_no_lock_taken() {
    let fixture = Fixture::new("starting");
    let done = run(&fixture, "overwrite", "starting 150");
    assert_eq!(done.stdout_text().trim(), "0", "children got stuck");
}
