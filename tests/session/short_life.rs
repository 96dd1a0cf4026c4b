//! Promise: a program that emits 10 events and exits at once leaves all of them, every time.

use ringmark_tests::delivery::Delivery;
use ringmark_tests::fixture::{Fixture, SOON, stop_recorder};
use ringmark_tests::recording::{decode, read};
use ringmark_tests::{is_long, ringmark, run, wait_until};

const EMIT: &str = ringmark_tests::program!("emit");
const RECORDER: &str = ringmark_tests::program!("recorder");
const RUNS: usize = 1000;

fn emit_ten(fixture: &Fixture, ringmark: &str) {
    let program = fixture.start(EMIT, ringmark, "0 10");
    let _ = program.finish(SOON).expect_code(0);
}

#[test]
fn a_thousand_of_a_thousand_are_recorded_while_they_run() {
    let fixture = Fixture::new("short");
    let dump = fixture.path("a.rmk");
    let recorder = fixture.recorder(RECORDER, &dump, None).unwrap();
    for number in 0..RUNS {
        // With and without the helper thread, in pages and rings of several sizes.
        let more = ["", ",control=off", ",page=4K,ring=16K"][number % 3];
        emit_ten(&fixture, &format!("mode=discard{more}"));
    }
    let drained = || fixture.ring_files().is_empty().then_some(());
    wait_until(SOON, "drained sessions are removed", drained);
    let said = stop_recorder(recorder, SOON);
    let decoded = decode(&[dump]);
    let account = Delivery::of(&decoded);
    account.expect_no_errors();
    assert_eq!(decoded.sessions.len(), RUNS, "{said}");
    assert_eq!((account.lost(), account.delivered()), (0, 10 * RUNS as u64));
    assert!(account.rings.values().all(|ring| ring.delivered == 10));
    assert!(decoded.sessions.iter().all(|s| s.is_final()));
}

#[test]
fn they_can_be_read_after_their_end() {
    let runs = if is_long() { 500 } else { 50 };
    for ringmark in ["mode=discard", "mode=overwrite,keep=always"] {
        for _ in 0..runs {
            let fixture = Fixture::new("after");
            emit_ten(&fixture, ringmark);
            let account = Delivery::of(&read(&[fixture.ring_file()]));
            account.expect_exact(1, 10);
            assert_eq!(account.lost(), 0, "{ringmark}");
        }
    }
}

#[test]
fn a_clean_exit_leaves_what_keep_says() {
    for (ringmark, stays) in [
        ("mode=discard", true),
        ("mode=discard,keep=never", false),
        ("mode=overwrite", false),
        ("mode=overwrite,keep=always", true),
        ("mode=overwrite,keep=never", false),
    ] {
        let fixture = Fixture::new("keep");
        emit_ten(&fixture, ringmark);
        assert_eq!(fixture.ring_files().len(), usize::from(stays), "{ringmark}");
    }
}

/// Many more than the directory keeps of dead sessions, while the recorder does not look.
#[test]
fn what_a_recorder_comes_for_is_not_cleaned_away_before() {
    let fixture = Fixture::new("awaited");
    let dump = fixture.path("a.rmk");
    let script = format!(
        "kill -STOP $PPID; i=0; while [ $i -lt 60 ]; do '{EMIT}' 4 5 & i=$((i+1)); done; wait; \
         kill -CONT $PPID"
    );
    let mut command = fixture.command(ringmark().get_program());
    command.args(["record", "-o"]).arg(&dump);
    command.args(["--", "sh", "-c", &script]);
    let _ = run(&mut command, SOON).unwrap().expect_code(0);
    let decoded = decode(&[dump]);
    let account = Delivery::of(&decoded);
    assert_eq!(decoded.sessions.len(), 60);
    assert_eq!((account.lost(), account.delivered()), (0, 60 * 20));
}
