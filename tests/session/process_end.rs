//! Promise: however a thread or the process ends, what was emitted is there or counted, rings are
//! given back, and nothing is printed.

use std::path::{Path, PathBuf};

use ringmark_format::slot::state;
use ringmark_reader::{Access, Session};
use ringmark_tests::delivery::Delivery;
use ringmark_tests::fixture::{Fixture, SOON};
use ringmark_tests::recording::read;

const ENDS: &str = ringmark_tests::program!("ends");
const RINGMARK: &str = "mode=discard,ring=64K,page=4K,session=8M,warm=1,keep=always";

/// For threads that emit until they are stopped.
fn roomy() -> String {
    let roomy = RINGMARK.replace("ring=64K", "ring=16M");
    roomy.replace("session=8M", "session=512M")
}

/// Runs it to its end; its ring file stays.
fn run(fixture: &Fixture, how: &str, code: i32) -> PathBuf {
    let program = fixture.start(ENDS, RINGMARK, how);
    let done = program.finish(SOON).expect_code(code);
    assert_eq!(
        (done.stdout_text(), done.stderr_text()),
        (String::new(), String::new())
    );
    fixture.ring_file()
}

/// Claimed slots that were not given back.
fn rings_in_use(ring_file: &Path) -> usize {
    let session = Session::open(ring_file, Access::Observe).unwrap();
    let ring = session.ring();
    let slots = (0..ring.slots_used()).filter_map(|index| ring.slot(index));
    slots.filter(|slot| slot.state() == state::ACTIVE).count()
}

#[test]
fn a_panicking_thread_gives_its_ring_back() {
    let fixture = Fixture::new("panic");
    let ring_file = run(&fixture, "panic", 0);
    assert_eq!(rings_in_use(&ring_file), 1, "that of the main thread alone");
    Delivery::of(&read(&[ring_file])).expect_exact(2, 100);
}

#[test]
fn events_of_a_panics_hook_and_of_its_unwinding_are_recorded() {
    let fixture = Fixture::new("unwind");
    let ring_file = run(&fixture, "unwind", 0);
    assert_eq!(rings_in_use(&ring_file), 0);
    let account = Delivery::of(&read(&[ring_file]));
    account.expect_exact(20, 30);
    assert_eq!(account.lost(), 0);
}

#[test]
fn threads_of_c_that_exit_or_are_cancelled_give_their_rings_back() {
    for how in ["pthread-exit", "pthread-cancel"] {
        let fixture = Fixture::new(how);
        let done = fixture
            .start(ENDS, &roomy(), how)
            .finish(SOON)
            .expect_code(0);
        let emitted: u64 = done.stdout_text().trim().parse().unwrap();
        let ring_file = fixture.ring_file();
        assert_eq!(rings_in_use(&ring_file), 0);
        let account = Delivery::of(&read(&[ring_file]));
        account.expect_no_errors();
        assert_eq!(account.rings.len(), 20, "{how}");
        assert_eq!(account.delivered() + account.lost(), emitted, "{how}");
        assert_eq!(done.stderr_text(), "");
    }
}

#[test]
fn a_thread_ends_the_process_while_others_emit() {
    for _ in 0..10 {
        let fixture = Fixture::new("exit");
        // However late the thread that ends it gets a processor.
        let done = fixture.start(ENDS, &roomy(), "exit").finish(SOON);
        assert_eq!(done.expect_code(0).stderr_text(), "");
        let account = Delivery::of(&read(&[fixture.ring_file()]));
        account.expect_no_errors();
        assert_eq!(account.rings.len(), 4);
        assert_eq!(account.lost(), 0);
        // The one that ended it emitted 100, the others until they were stopped, early or late.
        assert!(account.rings.values().any(|ring| ring.delivered == 100));
    }
}

#[test]
fn destructors_of_thread_locals_are_recorded() {
    let fixture = Fixture::new("tls");
    let ring_file = run(&fixture, "tls", 0);
    assert_eq!(rings_in_use(&ring_file), 0);
    let account = Delivery::of(&read(&[ring_file]));
    account.expect_exact(20, 30);
    assert_eq!(account.lost(), 0);
}

#[test]
fn events_behind_the_end_of_a_thread_are_counted() {
    let fixture = Fixture::new("key");
    let ring_file = run(&fixture, "key", 0);
    assert_eq!(rings_in_use(&ring_file), 0);
    let account = Delivery::of(&read(&[ring_file]));
    account.expect_no_errors();
    assert_eq!(account.delivered(), 200);
    assert_eq!(account.elsewhere.get("thread exited"), Some(&200));
    assert_eq!(account.lost(), 200);
}

#[test]
fn exit_handlers_emit_too() {
    // Those made after the session run before its end, those made before run behind it.
    for (how, delivered) in [("atexit", 20), ("atexit-before", 20)] {
        let fixture = Fixture::new("atexit");
        let account = Delivery::of(&read(&[run(&fixture, how, 0)]));
        account.expect_no_errors();
        assert_eq!(
            (account.delivered(), account.lost()),
            (delivered, 0),
            "{how}"
        );
    }
}

#[test]
fn an_abort_keeps_everything() {
    let fixture = Fixture::new("abort");
    Delivery::of(&read(&[run(&fixture, "abort", 134)])).expect_exact(1, 100);
}
