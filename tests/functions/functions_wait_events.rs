//! Promise: with `--wait`, a program that has events of its own, whose threads also emit them inside
//! of traced functions, waits for the recorder in the rings of both; a recorder that is stopped holds
//! each thread up once in all.

use crate::c;

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use ringmark_decoder::Output;
use ringmark_format::counters::Cause;
use ringmark_reader::{Access, Session};
use ringmark_ring::file_lock;
use ringmark_tests::fixture::Fixture;
use ringmark_tests::functions::{SITES, tool};
use ringmark_tests::recording::decode;
use ringmark_tests::{Running, require_tools, wait_until};
use rustix::process::Signal;

const LONG: Duration = Duration::from_secs(120);
/// The longest that a thread may be held up in both sessions together.
const HOLD: Duration = Duration::from_millis(1100);
const THREADS: u64 = 4;
const ROUNDS: u64 = 40_000;
const LEAVES: u64 = 4;

/// A recorder, and its program that has not begun its rounds.
struct Recorded {
    recorder: Running,
    /// The program's own, and the function tracer's.
    sessions: Vec<Session>,
    dump: PathBuf,
    _fixture: Fixture,
}

impl Recorded {
    fn start() -> Option<Self> {
        if !require_tools(&["gcc"]) {
            return None;
        }
        let fixture = Fixture::new("fn-wait-events");
        let sources = "with_functions.c -l:libringmark.a";
        let flags = format!("{SITES} -Wl,--as-needed");
        let program = c::compile(&fixture, c::GCC, sources, &flags, "program");
        let dump = fixture.path("run.rmk");
        let mut command = tool(&fixture);
        command.env("RINGMARK", "mode=discard,ring=256K,session=16M");
        command.args(["record", "--kind", "graph", "--wait", "1s", "-o"]);
        command.arg(&dump).arg("--").arg(program);
        command.args([THREADS, ROUNDS, LEAVES, 0].map(|number| number.to_string()));
        let recorder = Running::start(command.stdin(Stdio::piped())).expect("it starts");
        let sessions = wait_until(LONG, "the recorder of both sessions", || {
            let files = fixture.ring_files();
            let opened = files
                .iter()
                .map(|file| Session::open(file, Access::Observe));
            let sessions = opened.collect::<Result<Vec<_>, _>>().ok()?;
            let are_read = sessions.iter().all(is_read);
            (are_read && sessions.len() == 2).then_some(sessions)
        });
        Some(Self {
            recorder,
            sessions,
            dump,
            _fixture: fixture,
        })
    }

    fn go(&mut self) {
        // Its rounds, and its end.
        let mut input = self.recorder.child().stdin.take().expect("its input");
        input.write_all(b"\n").expect("it reads");
    }

    fn wait_for_program(&self) {
        let path = format!("/proc/{}/stat", self.sessions[0].pid());
        wait_until(LONG, "the end of the program", || {
            let text = fs::read_to_string(&path).unwrap_or_default();
            let state = text.rsplit_once(") ").map_or("gone", |(_, rest)| rest);
            (state == "gone" || state.starts_with('Z')).then_some(())
        });
    }

    /// How long each thread waited, in both sessions together.
    fn held(&self) -> BTreeMap<u32, Duration> {
        let mut held = BTreeMap::new();
        for session in &self.sessions {
            let ring = session.ring();
            for slot in (0..ring.slots_used()).filter_map(|index| ring.slot(index)) {
                *held.entry(slot.tid()).or_default() += Duration::from_nanos(slot.waits().ns);
            }
        }
        held
    }
}

/// What the rings of a session lost because they were full.
fn lost_for_full(session: &Session) -> u64 {
    let ring = session.ring();
    let slots = (0..ring.slots_used()).filter_map(|index| ring.slot(index));
    slots
        .map(|slot| slot.lost()[Cause::RingFull as usize])
        .sum()
}

fn is_read(session: &Session) -> bool {
    let at = session.header().consumed_offset;
    file_lock::is_held_by_other_file(session.ring().file(), at)
}

#[test]
fn a_stopped_recorder_holds_a_thread_up_once_in_both_sessions_together() {
    let Some(mut recorded) = Recorded::start() else {
        return;
    };
    recorded.recorder.signal(Signal::STOP).expect("it runs");
    recorded.go();
    recorded.wait_for_program();
    let held = recorded.held();
    let lost: Vec<_> = recorded.sessions.iter().map(lost_for_full).collect();
    println!("{held:?}, lost {lost:?}");
    let longest = held.values().max().expect("a ring");
    assert!(*longest >= Duration::from_secs(1), "no wait to the end");
    assert!(held.values().all(|held| *held <= HOLD), "{held:?}");
    // Both were full: a wait in each was there to be had.
    assert!(lost.iter().all(|lost| *lost > 0), "{lost:?}");
}

#[test]
fn a_slow_recorder_gets_every_event_and_call() {
    let Some(mut recorded) = Recorded::start() else {
        return;
    };
    recorded.recorder.signal(Signal::STOP).expect("it runs");
    recorded.go();
    // Not before the rings are full.
    wait_until(LONG, "full rings", || {
        let is_full = |session: &Session| {
            let ring = session.ring();
            let mut slots = (0..ring.slots_used()).filter_map(|index| ring.slot(index));
            slots.any(|slot| slot.produced() >= 4)
        };
        recorded.sessions.iter().any(is_full).then_some(())
    });
    recorded
        .recorder
        .signal(Signal::CONT)
        .expect("it is stopped");
    let finished = recorded.recorder.finish(LONG).expect_code(0);
    let text = finished.stderr_text();
    assert!(text.contains(", 0 lost"), "{text}");
    let dump = decode(&[recorded.dump]);
    let mut events = 0;
    let mut calls = 0;
    for item in dump.events() {
        let Output::Event(event) = item else {
            continue;
        };
        events += u64::from(event.name() == b"work.done");
        calls += u64::from(event.ty.function.is_some_and(|of| !of.exit));
    }
    assert_eq!(events, THREADS * ROUNDS);
    assert!(calls >= THREADS * ROUNDS * (1 + LEAVES), "{calls}");
}
