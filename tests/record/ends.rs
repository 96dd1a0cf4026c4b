//! Promise: every end of a program but a clean one leaves its evidence, and what is told of how it
//! ended is true or "not known".

use std::process::Command;

use ringmark_tests::delivery::Delivery;
use ringmark_tests::fixture::{Fixture, SOON};
use ringmark_tests::recording::read;
use ringmark_tests::run;

const PROGRAM: &str = env!("CARGO_BIN_EXE_ways_to_end");

/// A way to end, its exit code as a shell gives it, and whether it is a clean end.
const WAYS: [(&str, i32, bool); 13] = [
    ("return-0", 0, true),
    ("return-2", 2, false),
    ("exit-1", 1, false),
    ("_exit-0", 0, false),
    ("abort", 134, false),
    ("segv", 139, false),
    ("kill", 137, false),
    ("panic", 101, false),
    ("panic-abort", 134, false),
    ("caught", 0, true),
    ("overflow", 134, false),
    ("close-return-0", 0, true),
    ("close-segv", 139, false),
];

/// Without core files.
fn program(fixture: &Fixture, ringmark: &str, way: &str) -> Command {
    let mut command = fixture.program("prlimit", ringmark);
    command.args(["--core=0", PROGRAM, way]);
    command
}

/// What stays of a program that no recorder watches.
#[test]
fn every_end_but_a_clean_one_keeps_the_ring_file() {
    for (way, code, is_clean) in WAYS {
        for (keep, always) in [("", None), (",keep=always", Some(true))] {
            let fixture = Fixture::new("ends");
            let ringmark = format!("mode=overwrite{keep}");
            let _ = run(&mut program(&fixture, &ringmark, way), SOON)
                .unwrap()
                .expect_code(code);
            let files = fixture.ring_files();
            let stays = always.unwrap_or(!is_clean);
            assert_eq!(files.len(), usize::from(stays), "{way}{keep}");
            if stays {
                let delivered = Delivery::of(&read(&files)).delivered();
                assert!(delivered >= 1, "{way}{keep}: {delivered} events");
            }
        }
    }
}

#[test]
fn keep_never_removes_it_at_every_exit() {
    for (way, code) in [("return-0", 0), ("return-2", 2), ("panic", 101)] {
        let fixture = Fixture::new("ends-never");
        let _ = run(&mut program(&fixture, "mode=overwrite,keep=never", way), SOON)
            .unwrap()
            .expect_code(code);
        assert!(fixture.ring_files().is_empty(), "{way}");
    }
}
