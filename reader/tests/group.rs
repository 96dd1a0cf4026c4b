//! Several sessions of one process: found together, recorded together, removed together.
//!
//! The process is the test's own. Each test runs in a process that it starts for itself, with a
//! session directory of its own.

use crate::common;

use std::env;
use std::process::Command;
use std::time::{Duration, Instant};

use common::{Decoded, Dir, Layout, Producer, emit};
use ringmark_format::session::{Mode, phase};
use ringmark_reader::{
    Access, Destination, Dump, Durability, Ended, ReaderError, RecordOptions, Recorder, Selection,
    Session, control, find,
};
use ringmark_ring::identity;
use ringmark_ring::mailbox::Answer;

/// Runs `test` in a new process, with a session directory; a test of the name `name` calls this.
fn inside(name: &str, test: fn(&Dir, &Dir)) {
    const PLACES: &str = "RINGMARK_TEST_PLACES";
    if let Some(places) = env::var_os(PLACES) {
        let places = places.into_string().unwrap();
        let (directory, elsewhere) = places.split_once(':').unwrap();
        let dir = |path: &str| std::mem::ManuallyDrop::new(Dir(path.into()));
        return test(&dir(directory), &dir(elsewhere));
    }
    let (directory, elsewhere) = (Dir::new("group"), Dir::new("elsewhere"));
    let places = format!("{}:{}", directory.0.display(), elsewhere.0.display());
    let ended = Command::new(env::current_exe().unwrap())
        .args(["--exact", &format!("group::{name}"), "--nocapture"])
        .env("RINGMARK_DIR", &directory.0)
        .env(PLACES, places)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&ended.stdout);
    let is_run = text.contains("1 passed");
    assert!(ended.status.success() && is_run, "{name}: {ended:?}");
}

/// A living session of this process with one event.
fn session(dir: &Dir, name: &str, mode: Mode, thread: u64) -> Producer {
    let producer = Producer::new(dir, name, Layout::new(mode));
    assert!(identity::hold_lock(producer.ring.file()));
    assert!(emit(producer.writer(0), thread, 0));
    producer
}

fn recorder(dir: &Dir) -> Result<Recorder, ReaderError> {
    let to = Destination::File(dir.join("out.rmk"));
    let dump = Dump::create(&to, Durability::System)?;
    let selection = Selection::Pid(std::process::id());
    Recorder::new(selection, dump, RecordOptions::default())
}

/// Steps until it is so.
fn step_until(recorder: &mut Recorder, is_so: impl Fn(&Recorder) -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !is_so(recorder) {
        assert!(Instant::now() < end, "{:?}", recorder.progress());
        recorder.step().unwrap();
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn sessions_in_the_directory_and_elsewhere_are_found_each_once() {
    inside(
        "sessions_in_the_directory_and_elsewhere_are_found_each_once",
        |dir, elsewhere| {
            let _in_directory = session(dir, "a", Mode::Discard, 0);
            let _mapped_only = session(elsewhere, "b", Mode::Overwrite, 1);
            let deleted = session(dir, "c", Mode::Discard, 2);
            std::fs::remove_file(&deleted.path).unwrap();
            let found = find::by_pid(std::process::id()).unwrap();
            let open = |place| Session::open_found(place, Access::Observe).unwrap();
            let mut uuids: Vec<_> = found.iter().map(|place| open(place).uuid().0).collect();
            uuids.sort_unstable();
            uuids.dedup();
            assert_eq!((found.len(), uuids.len()), (3, 3), "{found:?}");
        },
    );
}

#[test]
fn a_recording_takes_sessions_that_start_later_and_removes_all_at_the_end() {
    inside(
        "a_recording_takes_sessions_that_start_later_and_removes_all_at_the_end",
        |dir, elsewhere| {
            let first = session(dir, "a", Mode::Discard, 0);
            let mut recorder = recorder(elsewhere).unwrap();
            let second = session(dir, "b", Mode::Discard, 1);
            let third = session(elsewhere, "c", Mode::Discard, 2);
            step_until(&mut recorder, |r| r.progress().sessions_open == 3);
            first.set_phase(phase::CLOSED);
            step_until(&mut recorder, |r| r.progress().sessions_done == 1);
            assert!(first.path.exists(), "others of its process are recorded");
            second.set_phase(phase::CLOSED);
            third.set_phase(phase::CLOSED);
            let stop = std::sync::atomic::AtomicBool::new(false);
            assert_eq!(recorder.run(&stop).unwrap(), Ended::SessionsEnded);
            for producer in [first, second, third] {
                assert!(!producer.path.exists());
            }
            let decoded = Decoded::of_file(&elsewhere.join("out.rmk"));
            assert_eq!(decoded.events(), (0..3).map(|n| (n, 0)).collect());
        },
    );
}

#[test]
fn all_sessions_are_held_or_none() {
    inside("all_sessions_are_held_or_none", |dir, elsewhere| {
        let _free = session(dir, "a", Mode::Discard, 0);
        let held = session(dir, "b", Mode::Discard, 1);
        let consume = |name: &str| Session::open(&dir.join(name), Access::Consume);
        let other = consume("b.ring").unwrap();
        let busy = recorder(elsewhere).unwrap_err();
        assert!(matches!(busy, ReaderError::Busy { .. }), "{busy}");
        drop(consume("a.ring").expect("none is held by a recorder that began none"));
        drop(other);
        let mut recorder = recorder(elsewhere).unwrap();
        assert_eq!(recorder.progress().sessions_open, 2);
        drop(held);

        let _late = session(elsewhere, "c", Mode::Discard, 2);
        let other = Session::open(&elsewhere.join("c.ring"), Access::Consume).unwrap();
        step_until(&mut recorder, |r| r.progress().sessions_refused == 1);
        assert_eq!(recorder.take_notices().len(), 1, "told once");
        drop(other);
        step_until(&mut recorder, |r| r.progress().sessions_open == 3);
        assert_eq!(recorder.progress().sessions_refused, 0);
        assert_eq!(recorder.take_notices(), Vec::<String>::new());
    });
}

#[test]
fn a_request_goes_to_all_and_one_that_is_silent_is_named() {
    let dir = Dir::new("request");
    let producers = ["a", "b", "silent"];
    let producers = producers.map(|name| Producer::new(&dir, name, Layout::new(Mode::Discard)));
    let open = |p: &Producer| Session::open(&p.path, Access::Control).unwrap();
    let sessions: Vec<_> = producers.iter().map(open).collect();
    let mailboxes = producers.each_ref().map(|p| p.ring.mailbox().unwrap());
    let answers = std::thread::scope(|scope| {
        for (number, mailbox) in mailboxes[..2].iter().enumerate() {
            scope.spawn(move || {
                while mailbox.requested() == 0 {
                    std::thread::yield_now();
                }
                assert!(mailbox.take(1));
                let text = format!("{number} {}", mailbox.request_text());
                mailbox.answer(1, &Answer { status: 0, text });
            });
        }
        control::request_all(&sessions, "enable *", Duration::from_millis(500))
    });
    let texts: Vec<_> = answers
        .into_iter()
        .map(|answer| answer.map_or_else(|error| error.to_string(), |answer| answer.text))
        .collect();
    assert_eq!(texts[..2], ["0 enable *", "1 enable *"]);
    assert!(texts[2].contains("silent.ring: no answer"), "{texts:?}");
}
