//! What a starting program removes of the dead while a reader comes for all sessions: those that
//! were read to their end, the oldest first, beyond the cap. Others stay, however old they are. The
//! sessions of one process go together.

use crate::common;

use std::fs::File;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, SystemTime};

use common::{Dir, Layout, Producer, emit};
use ringmark_format::session::Mode;
use ringmark_reader::{
    Access, Destination, Dump, Durability, Ended, RecordOptions, Recorder, Selection, Session,
};
use ringmark_ring::consumer_lease::AllLease;
use ringmark_ring::{clean, identity};

/// Pages of each ring: a session takes 3/16 of the cap, so seven exceed it.
const PAGES: u32 = (clean::DEAD_BYTES_MAX * 3 / 16 / 4096 / common::SLOTS as u64) as u32;

/// A dead session with events, of the `process`th of several processes.
fn dead(dir: &Dir, name: &str, process: u64) -> Producer {
    let mut layout = Layout::new(Mode::Discard).dead();
    layout.start_time += process;
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
    let sessions: Vec<_> = (0..7).map(|n| dead(dir, &format!("dead{n}"), n)).collect();
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

/// Sessions of these processes, in the order of age.
fn of_processes(dir: &Dir, processes: &[u64]) -> Vec<Producer> {
    let numbered = processes.iter().zip(0..);
    let sessions = numbered.map(|(process, n): (_, u32)| dead(dir, &format!("of{n}"), *process));
    let sessions: Vec<_> = sessions.collect();
    make_old(&sessions);
    sessions
}

fn paths(sessions: &[&Producer]) -> Vec<PathBuf> {
    sessions
        .iter()
        .map(|session| session.path.clone())
        .collect()
}

#[test]
fn the_sessions_of_a_process_go_together() {
    let dir = Dir::new("dead-room-together");
    // The first process has the oldest and the youngest one.
    let sessions = of_processes(&dir, &[0, 1, 1, 2, 2, 3, 0]);
    // 21/16 of the cap: five of 3/16 go, and with the last of them its process's other one.
    assert_eq!(clean::before_start(&dir.0, 1 << 20), 6);
    assert_eq!(names(&sessions), paths(&[&sessions[5]]));
    // By hand, too: with the one that is left there is room for half of a process, which is none.
    let sessions = of_processes(&dir, &[0, 1, 1]);
    let one = clean::dead_sessions(&dir.0)[0].bytes;
    assert_eq!(clean::remove_beyond(&dir.0, 2 * one).unwrap().len(), 3);
    assert_eq!(names(&sessions), Vec::<PathBuf>::new());
}

/// A process may be killed while it lays its session out.
#[test]
fn what_dead_processes_left_beside_sessions_goes_by_hand() {
    let dir = Dir::new("dead-room-left");
    let own = std::process::id();
    let left = |name: String, age: Duration| {
        let path = dir.join(&name);
        let file = std::fs::File::create(&path).unwrap();
        file.set_modified(SystemTime::now() - age).unwrap();
        path
    };
    let (old, new) = (Duration::from_secs(100), Duration::from_secs(1));
    let mut child = Command::new("true").spawn().unwrap();
    let dead = child.id();
    child.wait().unwrap();
    let gone = left(format!("{dead}-a1b2c3d4.starting"), old);
    let fresh = left(format!("{dead}-a1b2c3d5.starting"), new);
    let live = left(format!("{own}-a1b2c3d4.starting"), old);
    assert_eq!(clean::remove_beyond(&dir.0, 0).unwrap().len(), 0);
    assert_eq!(
        [gone, fresh, live].map(|path| path.exists()),
        [false, true, true]
    );
}

#[test]
fn a_process_of_which_one_session_is_read_stays_whole() {
    let dir = Dir::new("dead-room-read");
    let sessions = of_processes(&dir, &[0, 0, 1]);
    let session = Session::open(&sessions[1].path, Access::Consume).expect("a session");
    assert_eq!(clean::remove_beyond(&dir.0, 0).unwrap().len(), 1);
    assert_eq!(names(&sessions), paths(&[&sessions[0], &sessions[1]]));
    drop(session);
    assert_eq!(clean::remove_beyond(&dir.0, 0).unwrap().len(), 2);
}

#[test]
fn a_process_with_a_living_session_stays_whole() {
    let dir = Dir::new("dead-room-living");
    let living = Producer::new(&dir, "living", Layout::new(Mode::Discard));
    assert!(identity::hold_lock(living.ring.file()));
    // No process holds or maps the copy.
    let copy = living.path.with_file_name("copy.ring");
    let _ = std::fs::copy(&living.path, &copy).expect("a copy");
    let other = dead(&dir, "other", 0);
    assert_eq!(clean::remove_beyond(&dir.0, 0).unwrap().len(), 1);
    assert!(living.path.exists() && copy.exists() && !other.path.exists());
}
