//! Promise: what was committed before kill -9 is read from the dead session, and dead sessions
//! never fill the memory.

use std::fs::OpenOptions;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, SystemTime};

use ringmark_decoder::Dump;
use ringmark_reader::{Access, Session, find};
use ringmark_ring::clean::{self, DEAD_BYTES_MAX};
use ringmark_ring::identity::Liveness;
use ringmark_tests::delivery::{Delivery, expect_whole};
use ringmark_tests::fixture::{Counters, Fixture, SOON};
use ringmark_tests::random::Random;
use ringmark_tests::recording::{decode, read};
use ringmark_tests::{Running, is_long, wait_until};

const EMIT: &str = ringmark_tests::program!("emit");
const RECORDER: &str = ringmark_tests::program!("recorder");
const THREADS: u64 = 3;
/// What the writers do, so that they spend most of their time inside a call: long events, or short
/// ones that take long between their two phases.
const HOW: [&str; 2] = ["bulk=2000", "slow=8000"];

fn start(fixture: &Fixture, ringmark: &str, how: &str, counters: &Counters) -> Running {
    let arguments = format!("{THREADS} 1000000000 {how} {}", counters.argument());
    let program = fixture.start(EMIT, ringmark, &arguments);
    counters.wait_for(THREADS);
    program
}

/// What a kill hit. In flight is a call of `event!` that had begun and not returned, as the ledger
/// tells that the program keeps in shared memory around each call; open is a record that was found
/// reserved and not committed.
#[derive(Debug, Default)]
struct Hits {
    kills: u64,
    in_flight: u64,
    open: u64,
    delivered: u64,
}

impl Hits {
    fn add(&mut self, dump: &Dump, ledger: &[(u64, u64)]) {
        let account = Delivery::of(dump);
        account.expect_ledger(ledger);
        expect_whole(dump);
        let open = dump.verify().uncommitted;
        let in_flight = ledger.iter().filter(|(done, begun)| begun > done).count() as u64;
        assert!(open <= in_flight, "{open} records are open: {ledger:?}");
        self.kills += 1;
        self.in_flight += u64::from(in_flight > 0);
        self.open += u64::from(open > 0);
        self.delivered += account.delivered();
    }
}

fn kill_and_read(hits: &mut Hits, ringmark: &str, how: &str, pause: Duration, with_recorder: bool) {
    let fixture = Fixture::new("kill9");
    let counters = Counters::new(fixture.path("committed"));
    let program = start(&fixture, ringmark, how, &counters);
    let ring_file = fixture.ring_file();
    let dump = fixture.path("a.rmk");
    let recorder =
        with_recorder.then(|| fixture.recorder(RECORDER, &dump, Some(&ring_file)).unwrap());
    thread::sleep(pause);
    drop(program.kill().unwrap());
    let dump = match recorder {
        // The recorder sees by itself that the process is gone, and ends.
        Some(recorder) => {
            let _ = recorder.finish(SOON).expect_code(0);
            decode(&[dump])
        }
        None => {
            let session = Session::open(&ring_file, Access::Observe).unwrap();
            assert_eq!(session.liveness(), Liveness::Dead);
            drop(session);
            read(&[ring_file])
        }
    };
    hits.add(&dump, &counters.ledger(THREADS));
}

fn kill_loop(mode: &str) {
    let kills = if is_long() { 2000 } else { 60 };
    let mut random = Random::seeded();
    for with_recorder in [false, true] {
        let mut hits = Hits::default();
        // At least three of ten hit, however seldom the writers or the recorder get a processor.
        let wanted = kills as u64 * 3 / 10;
        for number in 0..10 * kills {
            if number >= kills && hits.open >= wanted {
                break;
            }
            let ringmark = format!("mode={mode},ring=256K,page=16K,session=8M");
            let pause = Duration::from_micros(200 + random.below(20_000));
            kill_and_read(&mut hits, &ringmark, HOW[number % 2], pause, with_recorder);
        }
        println!("{mode}, with a recorder: {with_recorder}: {hits:?}");
        assert!(hits.in_flight >= wanted, "too few hits: {hits:?}");
        assert!(hits.open >= wanted, "too few open records: {hits:?}");
    }
}

#[test]
fn committed_events_survive_kills_in_overwrite_mode() {
    kill_loop("overwrite");
}

#[test]
fn committed_events_survive_kills_in_discard_mode() {
    kill_loop("discard");
}

/// A session whose writers were killed in mid-write: at least one record is reserved and not
/// committed. Tries until it is so.
fn killed_in_mid_write(
    fixture: &Fixture,
    number: usize,
    random: &mut Random,
) -> (PathBuf, Counters) {
    let before = fixture.ring_files();
    let ringmark = "ring=256K,page=16K,session=1M,control=off";
    for _ in 0..200 {
        let counters = Counters::new(fixture.path(&format!("committed{number}")));
        let program = start(fixture, ringmark, HOW[number % 2], &counters);
        thread::sleep(Duration::from_micros(random.below(3000)));
        drop(program.kill().unwrap());
        let mut files = fixture.ring_files();
        files.retain(|path| !before.contains(path));
        let file = files.remove(0);
        if read(std::slice::from_ref(&file)).verify().uncommitted > 0 {
            return (file, counters);
        }
        std::fs::remove_file(file).unwrap();
    }
    panic!("200 kills hit no open record");
}

#[test]
fn after_killed_writers_a_healthy_one_has_everything() {
    const EVENTS: u64 = 400_000;
    let mut random = Random::seeded();
    for writers in [10, 30] {
        let fixture = Fixture::new("healthy");
        let killed: Vec<_> = (0..writers)
            .map(|number| killed_in_mid_write(&fixture, number, &mut random))
            .collect();
        let healthy = "mode=discard,ring=16M,session=64M";
        let program = fixture.start(EMIT, healthy, &format!("1 {EVENTS}"));
        let _ = program.finish(SOON).expect_code(0);
        let mut files = fixture.ring_files();
        files.retain(|path| killed.iter().all(|(seen, _)| seen != path));
        assert_eq!(files.len(), 1);
        let account = Delivery::of(&read(&files));
        account.expect_exact(1, EVENTS);
        assert_eq!(account.delivered(), EVENTS);
        let mut hits = Hits::default();
        for (ring_file, counters) in killed {
            hits.add(&read(&[ring_file]), &counters.ledger(THREADS));
        }
        println!("{writers} writers killed: {hits:?}; then {EVENTS} of {EVENTS}");
        assert_eq!(hits.open, writers as u64);
    }
}

#[test]
fn a_program_that_is_killed_and_restarted_forever_stays_under_the_cap() {
    let restarts = if is_long() { 1000 } else { 150 };
    let fixture = Fixture::new("crashloop");
    let mut most = 0;
    let mut one = 0;
    for _ in 0..restarts {
        let program = fixture.start(EMIT, "mode=overwrite,ring=512K", "0 1000000000");
        let prefix = format!("{}-", program.id());
        wait_until(SOON, "its session", || {
            let mine = |p: &PathBuf| {
                p.file_name()
                    .is_some_and(|n| n.to_string_lossy().starts_with(&prefix))
            };
            fixture.ring_files().into_iter().find(mine)
        });
        drop(program.kill().unwrap());
        let now = fixture.allocated_bytes();
        one = one.max(now / fixture.ring_files().len() as u64);
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
    let fixture = Fixture::new("dead");
    let counters = || Counters::new(fixture.path("committed"));
    for _ in 0..3 {
        let program = start(
            &fixture,
            "mode=discard,ring=64K,page=4K,session=4M,control=off",
            HOW[0],
            &counters(),
        );
        drop(program.kill().unwrap());
    }
    // Their order is told by the time of their last change.
    for (path, n) in fixture.ring_files().iter().zip(1..) {
        let file = OpenOptions::new().write(true).open(path).unwrap();
        let changed = SystemTime::UNIX_EPOCH + Duration::from_secs(n);
        file.set_modified(changed).unwrap();
    }
    let alive = start(
        &fixture,
        "mode=discard,ring=64K,page=4K,session=4M",
        HOW[0],
        &counters(),
    );
    assert_eq!(find::in_directory(&fixture.sessions()).unwrap().len(), 4);
    let mut dead = clean::dead_sessions(&fixture.sessions());
    assert_eq!(dead.len(), 3);
    dead.sort_by_key(|d| d.changed_ns);
    let removed = clean::remove_beyond(&fixture.sessions(), dead[2].bytes).unwrap();
    assert_eq!(removed, dead[..2]);
    assert_eq!(
        clean::remove_beyond(&fixture.sessions(), 0).unwrap().len(),
        1
    );
    assert_eq!(fixture.ring_files().len(), 1, "the living one stays");
    drop(alive.kill().unwrap());
}
