//! Promise: with `--wait`, a thread whose ring is full waits for the recorder as long as it reads,
//! and loses nothing; whatever becomes of the recorder, each thread is held up for 1.1 s at most, and
//! what must never wait does not.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use ringmark_reader::{Access, Session};
use ringmark_ring::file_lock;
use ringmark_tests::fixture::{Fixture, SOON};
use ringmark_tests::functions::{SITES, calls, compile, expect_error, tool};
use ringmark_tests::{Running, require_tools, run, wait_until};
use rustix::process::Signal;

const LONG: Duration = Duration::from_secs(120);
/// The longest that a thread may be held up in all.
const HOLD: Duration = Duration::from_millis(1100);
/// Rings that are full at once.
const SMALL: &str = "mode=discard,ring=256K,session=16M";

/// A program that is recorded with `--wait 1s`, and has not begun its work.
struct Recorded {
    fixture: Fixture,
    recorder: Running,
    session: Session,
    dump: PathBuf,
}

impl Recorded {
    /// Starts `waits MODE N`; `None`: there is no compiler.
    fn start(mode: &str, n: u64) -> Option<Self> {
        if !require_tools(&["gcc"]) {
            return None;
        }
        let fixture = Fixture::new("fn-wait");
        let program = compile(&fixture, "waits.c", "waits", &format!("{SITES} -pthread"));
        let (dump, go) = (fixture.path("run.rmk"), fixture.path("go"));
        let mut command = tool(&fixture);
        command.env("RINGMARK", SMALL);
        command.args(["record", "--kind", "graph", "--wait", "1s", "-o"]);
        command.arg(&dump).arg("--").arg(program).arg(go);
        command.args([mode, &n.to_string()]);
        let recorder = Running::start(&mut command).expect("it starts");
        let session = Session::open(&fixture.ring_file(), Access::Observe).expect("a session");
        let at = session.header().consumed_offset;
        wait_until(SOON, "the recorder", || {
            file_lock::is_held_by_other_file(session.ring().file(), at).then_some(())
        });
        Some(Self {
            fixture,
            recorder,
            session,
            dump,
        })
    }

    /// Whether no page of some ring is free.
    fn is_full(&self) -> bool {
        let ring = self.session.ring();
        let mut slots = (0..ring.slots_used()).filter_map(|index| ring.slot(index));
        slots.any(|slot| slot.produced() >= slot.consumed() + 4)
    }

    /// Whether no thread of the program runs.
    fn sleeps(&self) -> bool {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.session.pid()));
        let stats = tasks.into_iter().flatten().flatten();
        let mut stats = stats.map(|task| fs::read_to_string(task.path().join("stat")));
        stats.all(|stat| {
            let text = stat.unwrap_or_default();
            text.rsplit_once(") ")
                .is_some_and(|(_, rest)| rest.starts_with('S'))
        })
    }

    fn go(&self) {
        fs::write(self.fixture.path("go"), "").expect("a file");
    }

    /// Waits until the program has ended, by itself, though the recorder does not.
    fn wait_for_program(&self) {
        let path = format!("/proc/{}/stat", self.session.pid());
        wait_until(LONG, "the end of the program", || {
            let text = fs::read_to_string(&path).unwrap_or_default();
            let state = text.rsplit_once(") ").map_or("gone", |(_, rest)| rest);
            (state == "gone" || state.starts_with('Z')).then_some(())
        });
    }

    /// How often threads waited, and how long in each slot.
    fn waits(&self) -> (u64, Vec<Duration>) {
        let ring = self.session.ring();
        let slots = (0..ring.slots_used()).filter_map(|index| ring.slot(index));
        let waits: Vec<_> = slots.map(|slot| slot.waits()).collect();
        let held = waits.iter().map(|slot| Duration::from_nanos(slot.ns));
        (waits.iter().map(|slot| slot.times).sum(), held.collect())
    }

    fn expect_held_at_most(&self, hold: Duration) -> u64 {
        let (times, held) = self.waits();
        println!("{times} waits: {held:?}");
        assert!(held.iter().all(|held| *held <= hold), "{held:?}");
        times
    }
}

/// The program while its recorder is stopped; the number of its waits.
fn beside_a_stopped_recorder(mode: &str, n: u64) -> Option<(Recorded, u64)> {
    let recorded = Recorded::start(mode, n)?;
    recorded.recorder.signal(Signal::STOP).expect("it runs");
    recorded.go();
    recorded.wait_for_program();
    let times = recorded.expect_held_at_most(HOLD);
    Some((recorded, times))
}

#[test]
fn a_stopped_recorder_holds_a_thread_up_once() {
    let Some((recorded, times)) = beside_a_stopped_recorder("one", 3_000_000) else {
        return;
    };
    assert_eq!(times, 1, "a second wait, or none");
    let (_, held) = recorded.waits();
    let longest = held.iter().max().expect("a ring");
    assert!(
        *longest >= Duration::from_secs(1),
        "{longest:?}: no wait to the end"
    );
    recorded
        .recorder
        .signal(Signal::CONT)
        .expect("it is stopped");
    let finished = recorded.recorder.finish(LONG);
    expect_error(
        finished,
        1,
        "the program waited for the recorder 1 time, 1.0",
    );
    let found = calls(&recorded.fixture, "", &recorded.dump);
    assert!(
        found["leaf"] > 1000 && found["leaf"] < 3_000_000,
        "{found:?}"
    );
}

#[test]
fn five_hundred_short_threads_are_not_held_up_one_after_the_other() {
    let Some((_recorded, times)) = beside_a_stopped_recorder("short", 50_000) else {
        return;
    };
    // Those that ran when the first wait came to its end.
    assert!((1..=5).contains(&times), "{times} waits");
}

#[test]
fn a_lock_that_a_waiting_thread_holds_is_given_back() {
    let Some((_recorded, times)) = beside_a_stopped_recorder("malloc", 500_000) else {
        return;
    };
    assert!((1..=4).contains(&times), "{times} waits");
}

#[test]
fn a_real_time_thread_never_waits() {
    let Some((recorded, times)) = beside_a_stopped_recorder("real-time", 1_000_000) else {
        return;
    };
    assert_eq!(times, 0);
    recorded
        .recorder
        .signal(Signal::CONT)
        .expect("it is stopped");
    let _ = recorded.recorder.finish(LONG);
}

#[test]
fn a_signal_handler_never_waits_and_does_not_make_its_thread_wait_longer() {
    let Some((_recorded, times)) = beside_a_stopped_recorder("handler", 1_000_000) else {
        return;
    };
    assert_eq!(times, 1, "of the thread itself");
}

#[test]
fn where_a_filter_forbids_to_sleep_no_thread_waits() {
    let Some((_recorded, times)) = beside_a_stopped_recorder("no-sleep", 1_000_000) else {
        return;
    };
    assert!(times <= 1, "{times} waits");
}

/// Hooks of the fork call traced functions, and so do the children, which have no reader.
#[test]
fn a_fork_and_its_child_do_not_wait_one_after_the_other() {
    let Some((_recorded, times)) = beside_a_stopped_recorder("forks", 20_000) else {
        return;
    };
    assert!((1..=2).contains(&times), "{times} waits in the parent");
}

/// The process exits while a thread waits, and its last function calls on when that one goes on.
#[test]
fn an_exit_while_a_thread_waits_is_held_up_once() {
    let Some((_recorded, times)) = beside_a_stopped_recorder("exits", 100_000) else {
        return;
    };
    assert_eq!(times, 1, "of the thread, and none of the exit");
}

#[test]
fn a_recorder_that_is_killed_is_not_waited_for() {
    let Some(recorded) = Recorded::start("one", 3_000_000) else {
        return;
    };
    recorded.recorder.signal(Signal::STOP).expect("it runs");
    recorded.go();
    wait_until(SOON, "a full ring", || recorded.is_full().then_some(()));
    recorded.recorder.signal(Signal::KILL).expect("it is there");
    recorded.wait_for_program();
    assert!(recorded.expect_held_at_most(HOLD) <= 1);
}

/// The recorder stands still most of the time; the threads wait instead of losing calls.
#[test]
fn a_slow_recorder_gets_every_call() {
    let Some(recorded) = Recorded::start("one", 2_000_000) else {
        return;
    };
    recorded.go();
    let stat = PathBuf::from(format!("/proc/{}", recorded.session.pid()));
    for _ in 0..20 {
        recorded.recorder.signal(Signal::STOP).expect("it runs");
        let (before, _) = recorded.waits();
        let mut has_ended = false;
        wait_until(SOON, "a thread that waits for room", || {
            has_ended = !Path::new(&stat).exists();
            (has_ended || recorded.is_full() && recorded.sleeps()).then_some(())
        });
        recorded
            .recorder
            .signal(Signal::CONT)
            .expect("it is stopped");
        if has_ended {
            break;
        }
        wait_until(SOON, "the end of its wait", || {
            let has_ended = !Path::new(&stat).exists();
            (has_ended || recorded.waits().0 > before).then_some(())
        });
    }
    let (times, _) = recorded.waits();
    assert!(times > 0, "it never had to wait");
    let finished = recorded.recorder.finish(LONG).expect_code(0);
    assert!(
        finished.stderr_text().contains(", 0 lost"),
        "{}",
        finished.stderr_text()
    );
    let found = calls(&recorded.fixture, "", &recorded.dump);
    assert_eq!(found.get("leaf"), Some(&2_000_000), "{found:?}");
}

#[test]
fn what_cannot_wait_is_refused() {
    let fixture = Fixture::new("fn-wait-no");
    let refused = |settings: &str, words: &str, text: &str| {
        let mut command: Command = tool(&fixture);
        command.env("RINGMARK", settings).args(words.split(' '));
        expect_error(run(&mut command, LONG).expect("it starts"), 2, text);
    };
    let overwrite = "overwrite mode never waits";
    refused("mode=overwrite", "run --wait 1s -- true", overwrite);
    refused("1", "run --wait 20s -- true", "a time from 1ms to 10s");
    refused("1", "record --wait 1s --all", "--wait: expected -- CMD");
}
