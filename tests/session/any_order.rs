//! Promise: reservations of one thread end in any order, in Rust and in C, through the inline path
//! and through the library. No record is lost, replaced or left behind by it.

use crate::c;

use std::collections::BTreeMap;
use std::path::Path;

use c::{LIMIT, compile, compilers};
use ringmark_decoder::Output;
use ringmark_tests::fixture::Fixture;
use ringmark_tests::recording::read;
use ringmark_tests::{is_long, require_tools, run};

/// Room for two pages, which a round fills four times; and room for all rounds.
const RINGS: [&str; 2] = [
    "mode=overwrite,ring=8K,page=4K,keep=always",
    "mode=discard,ring=16M,page=4K,session=64M,keep=always",
];

/// Runs it in both modes. All is accounted for, and nothing is lost but by being overwritten.
fn check(fixture: &Fixture, program: &Path, how: &str) {
    let rounds: u64 = if is_long() { 2000 } else { 20 };
    for ringmark in RINGS {
        let mut command = fixture.program(&program.to_string_lossy(), ringmark);
        command.args([how, &rounds.to_string()]);
        let done = run(&mut command, LIMIT).expect("it starts").expect_code(0);
        let emitted: u64 = done.stdout_text().trim().parse().expect("a number");
        let dump = read(&[fixture.ring_file()]);
        let (mut events, mut lost) = (BTreeMap::new(), BTreeMap::new());
        for item in dump.events() {
            match item {
                Output::Event(event) => {
                    let name = String::from_utf8_lossy(event.name()).into_owned();
                    *events.entry(name).or_insert(0_u64) += 1;
                }
                Output::Lost(l) => *lost.entry(l.loss.why.cause()).or_insert(0) += l.loss.count,
            }
        }
        let what = format!("{how}, {ringmark}: {events:?}, {lost:?}, emitted {emitted}");
        let verdict = dump.verify();
        assert_eq!((verdict.uncommitted, verdict.missing), (0, 0), "{what}");
        let sum = events.values().sum::<u64>() + lost.values().sum::<u64>();
        assert_eq!(sum, emitted, "{what}");
        // Inside of a pair, what does not fit into the page goes to another ring.
        assert!(lost.keys().all(|cause| *cause == "overwritten"), "{what}");
        if ringmark.contains("discard") {
            assert_eq!(lost.len(), 0, "{what}");
            let counts = ["Outer", "aside.after"].map(|name| events[name]);
            assert_eq!(counts, [rounds, 300 * rounds + 1], "{what}");
        }
        std::fs::remove_file(fixture.ring_file()).expect("the ring file");
    }
}

#[test]
fn in_rust() {
    let fixture = Fixture::new("any-order");
    check(
        &fixture,
        Path::new(ringmark_tests::program!("set_aside")),
        "crossed",
    );
}

#[test]
fn in_c_inline_and_through_the_library() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("any-order-c");
    for compiler in compilers() {
        let program = compile(&fixture, compiler, "crossed.c", "-O2", "crossed");
        for how in ["inline", "call"] {
            check(&fixture, &program, how);
        }
    }
}
