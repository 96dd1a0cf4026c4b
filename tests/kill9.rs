//! Promise: what was committed before kill -9 is read from the dead session, and dead sessions
//! never fill the memory.

use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use ringmark_reader::{Access, Session, find};
use ringmark_ring::clean::{self, DEAD_BYTES_MAX};
use ringmark_ring::identity::Liveness;
use ringmark_tests::account::Account;
use ringmark_tests::recording::{decode, read};
use ringmark_tests::stage::{Counters, SOON, Stage};
use ringmark_tests::{Running, is_long, wait_until};

const EMIT: &str = env!("CARGO_BIN_EXE_emit");
const RECORDER: &str = env!("CARGO_BIN_EXE_recorder");
const THREADS: u64 = 3;

fn start(stage: &Stage, ringmark: &str, counters: &Counters) -> Running {
    let arguments = format!("{THREADS} 1000000000 {}", counters.argument());
    let program = stage.start(EMIT, ringmark, &arguments);
    counters.wait_for(THREADS);
    program
}

fn kill_and_read(ringmark: &str, number: u64, with_recorder: bool) -> u64 {
    let stage = Stage::new("kill9");
    let counters = Counters::new(stage.path("committed"));
    let program = start(&stage, ringmark, &counters);
    let ring_file = stage.ring_file();
    let dump = stage.path("a.rmk");
    let recorder =
        with_recorder.then(|| stage.recorder(RECORDER, &dump, Some(&ring_file)).unwrap());
    thread::sleep(Duration::from_micros(500 + 977 * (number % 23)));
    drop(program.kill().unwrap());
    let account = match recorder {
        // The recorder sees by itself that the process is gone, and ends.
        Some(recorder) => {
            let _ = recorder.finish(SOON).expect_code(0);
            Account::of(&decode(&[dump]))
        }
        None => {
            let session = Session::open(&ring_file, Access::Observe).unwrap();
            assert_eq!(session.liveness(), Liveness::Dead);
            drop(session);
            Account::of(&read(&[ring_file]))
        }
    };
    account.expect_committed(&counters.read(THREADS));
    account.delivered()
}

#[test]
fn committed_events_survive_in_both_modes() {
    let kills = if is_long() { 1000 } else { 40 };
    let mut delivered = 0;
    for number in 0..kills {
        for mode in ["overwrite", "lossless"] {
            let ringmark = format!("mode={mode},ring=64K,page=4K,session=8M");
            delivered += kill_and_read(&ringmark, number, false);
            delivered += kill_and_read(&ringmark, number, true);
        }
    }
    println!("{} kills, {delivered} events read", 4 * kills);
}

#[test]
fn after_thirty_killed_writers_a_healthy_one_has_everything() {
    const EVENTS: u64 = 400_000;
    let stage = Stage::new("healthy");
    let ringmark = "mode=lossless,ring=64K,page=4K,session=1M,control=off";
    let mut killed = Vec::new();
    for number in 0..30 {
        let counters = Counters::new(stage.path(&format!("committed{number}")));
        let program = start(&stage, ringmark, &counters);
        thread::sleep(Duration::from_micros(300 * number));
        drop(program.kill().unwrap());
        let known = |path: &PathBuf| killed.iter().any(|(seen, _)| seen == path);
        let file = stage.ring_files().into_iter().find(|path| !known(path));
        killed.push((file.unwrap(), counters));
    }
    let healthy = "mode=lossless,ring=16M,session=64M";
    let program = stage.start(EMIT, healthy, &format!("1 {EVENTS}"));
    let _ = program.finish(SOON).expect_code(0);
    let mut files = stage.ring_files();
    files.retain(|path| killed.iter().all(|(seen, _)| seen != path));
    assert_eq!(files.len(), 1);
    let account = Account::of(&read(&files));
    account.expect_exact(1, EVENTS);
    assert_eq!(account.delivered(), EVENTS);
    for (ring_file, counters) in killed {
        Account::of(&read(&[ring_file])).expect_committed(&counters.read(THREADS));
    }
}

#[test]
fn a_program_that_is_killed_and_restarted_forever_stays_under_the_cap() {
    let restarts = if is_long() { 1000 } else { 150 };
    let stage = Stage::new("crashloop");
    let mut most = 0;
    let mut one = 0;
    for _ in 0..restarts {
        let program = stage.start(EMIT, "mode=overwrite,ring=512K", "0 1000000000");
        let prefix = format!("{}-", program.id());
        wait_until(SOON, "its session", || {
            let mine = |p: &PathBuf| {
                p.file_name()
                    .is_some_and(|n| n.to_string_lossy().starts_with(&prefix))
            };
            stage.ring_files().into_iter().find(mine)
        });
        drop(program.kill().unwrap());
        let now = stage.allocated_bytes();
        one = one.max(now / stage.ring_files().len() as u64);
        most = most.max(now);
    }
    println!("{restarts} restarts: at most {most} bytes, about {one} a session");
    assert!(
        one * restarts > 2 * DEAD_BYTES_MAX,
        "too little to bite: {one} bytes a session"
    );
    assert!(most <= DEAD_BYTES_MAX, "{most}");
}

#[test]
fn dead_sessions_are_found_oldest_first_and_can_be_removed() {
    let stage = Stage::new("dead");
    let counters = || Counters::new(stage.path("committed"));
    for _ in 0..3 {
        let program = start(
            &stage,
            "mode=lossless,ring=64K,page=4K,session=4M,control=off",
            &counters(),
        );
        drop(program.kill().unwrap());
        // Their order is told by the time of their last change.
        thread::sleep(Duration::from_millis(20));
    }
    let alive = start(
        &stage,
        "mode=lossless,ring=64K,page=4K,session=4M",
        &counters(),
    );
    assert_eq!(find::in_directory(&stage.sessions()).unwrap().len(), 4);
    let mut dead = clean::dead_sessions(&stage.sessions());
    assert_eq!(dead.len(), 3);
    dead.sort_by_key(|d| d.changed_ns);
    let removed = clean::remove_beyond(&stage.sessions(), dead[2].bytes);
    assert_eq!(removed, dead[..2]);
    assert_eq!(clean::remove_beyond(&stage.sessions(), 0).len(), 1);
    assert_eq!(stage.ring_files().len(), 1, "the living one stays");
    drop(alive.kill().unwrap());
}
