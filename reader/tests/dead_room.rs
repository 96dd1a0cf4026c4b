//! What a starting program removes of the dead while a reader comes for all sessions: those that
//! were read to their end, the oldest first, beyond the cap. Others stay, however old they are.

mod common;

use std::fs::File;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, SystemTime};

use common::{Dir, Layout, Producer, emit};
use ringmark_format::session::Mode;
use ringmark_reader::{Destination, Dump, Durability, Ended, RecordOptions, Recorder, Selection};
use ringmark_ring::all_lease::AllLease;
use ringmark_ring::clean;

/// Pages of each ring: a session takes 3/16 of the cap, so seven exceed it.
const PAGES: u32 = (clean::DEAD_BYTES_MAX * 3 / 16 / 4096 / common::SLOTS as u64) as u32;

/// A dead session with events.
fn dead(dir: &Dir, name: &str) -> Producer {
    let mut layout = Layout::new(Mode::Discard).dead();
    layout.pages = PAGES;
    let producer = Producer::new(dir, name, layout);
    let writer = producer.writer(0);
    (0..100).for_each(|n| assert!(emit(writer, 0, n)));
    producer
}

/// Reads a session to its end, and leaves its ring file.
fn read(dir: &Dir, producer: &Producer) {
    let to = Destination::File(dir.join("out.rmk"));
    let dump = Dump::create(&to, Durability::System).expect("a trace file");
    let options = RecordOptions {
        remove_drained: false,
        ..RecordOptions::default()
    };
    let selection = Selection::Path(producer.path.clone());
    let mut recorder = Recorder::new(selection, dump, options).expect("a recorder");
    let ended = recorder.run(&AtomicBool::new(false));
    assert_eq!(ended.expect("a recording"), Ended::SessionsEnded);
}

/// Two hours old, so that no recorder is awaited for them, in this order.
fn make_old(sessions: &[Producer]) {
    let first = SystemTime::now() - Duration::from_secs(7200);
    for (session, later) in sessions.iter().zip(0..) {
        let file = File::options().write(true).open(&session.path);
        let at = first + Duration::from_secs(later);
        file.expect("a ring file").set_modified(at).expect("a time");
    }
}

fn names(sessions: &[Producer]) -> Vec<PathBuf> {
    let there = sessions.iter().filter(|session| session.path.exists());
    there.map(|session| session.path.clone()).collect()
}

/// The oldest session is unread, the six after it are read.
fn one_unread_and_six_read(dir: &Dir) -> Vec<Producer> {
    let sessions: Vec<_> = (0..7).map(|n| dead(dir, &format!("dead{n}"))).collect();
    sessions[1..].iter().for_each(|session| read(dir, session));
    make_old(&sessions);
    sessions
}

#[test]
fn read_sessions_go_beyond_the_cap_while_a_reader_comes_for_the_others() {
    let dir = Dir::new("dead-room");
    let sessions = one_unread_and_six_read(&dir);
    let lease = AllLease::take(&dir.0).expect("a lease");
    // 21/16 of the cap: five of 3/16 go, until half of the cap is free.
    assert_eq!(clean::before_start(&dir.0, 1 << 20), 5);
    let left = [&sessions[0], &sessions[6]].map(|session| session.path.clone());
    assert_eq!(names(&sessions), left);
    assert_eq!(clean::before_start(&dir.0, 1 << 20), 0, "below the cap");
    drop(lease);
}

#[test]
fn without_such_a_reader_the_oldest_go_read_or_not() {
    let dir = Dir::new("dead-room-alone");
    let sessions = one_unread_and_six_read(&dir);
    assert_eq!(clean::before_start(&dir.0, 1 << 20), 5);
    let left = [&sessions[5], &sessions[6]].map(|session| session.path.clone());
    assert_eq!(names(&sessions), left);
}
