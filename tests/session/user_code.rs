//! Promise: code of the program that runs in the middle of an event may panic: the record is cancelled,
//! the ring goes on, the panic is the program's. Its allocator may emit.

use std::collections::BTreeMap;

use ringmark_decoder::Output;
use ringmark_tests::delivery::Delivery;
use ringmark_tests::fixture::{Fixture, SOON};
use ringmark_tests::recording::read;
use ringmark_tests::run;

const RUDE: &str = ringmark_tests::program!("rude");

/// What it printed, events by name, and the books.
fn rude(what: &str, ringmark: &str) -> (Vec<u64>, BTreeMap<String, u64>, Delivery) {
    let fixture = Fixture::new("rude");
    let mut command = fixture.program(RUDE, ringmark);
    let done = run(command.arg(what), SOON).unwrap().expect_code(0);
    assert_eq!(done.stderr_text(), "");
    let said = done.stdout_text();
    let numbers = said.split_whitespace().map(|n| n.parse().unwrap());
    let dump = read(&fixture.ring_files());
    let mut names = BTreeMap::new();
    for item in dump.events() {
        if let Output::Event(event) = item {
            let name = String::from_utf8_lossy(event.name()).into_owned();
            *names.entry(name).or_default() += 1;
        }
    }
    (numbers.collect(), names, Delivery::of(&dump))
}

#[test]
fn a_panic_in_a_value_cancels_one_record_and_is_the_programs() {
    for mode in [
        "discard,ring=4M,session=32M",
        "discard,ring=4M,session=32M,control=off",
    ] {
        let (said, names, account) = rude("panics", &format!("mode={mode},keep=always"));
        assert_eq!(names.get("rude.tick"), Some(&said[0]));
        assert_eq!(names.get("rude.bomb"), None, "a record without its end");
        // Shown: every fourth; encoded: every fourth (the others are measured before). One of these
        // may come where its page is full, inside a reservation: that is counted.
        let nested = names.get("rude.nested").copied().unwrap_or(0);
        println!("{names:?}, {} lost", account.lost());
        assert_eq!(nested + account.lost(), said[0] / 2);
        assert!(account.lost() < 20, "{}", account.lost());
    }
}

#[test]
fn an_allocator_may_emit() {
    for control in ["on", "off"] {
        let options = "ring=1M,session=64M,keep=always";
        let (said, names, _) = rude(
            "allocator",
            &format!("mode=discard,{options},control={control}"),
        );
        assert_eq!(names.get("rude.tick"), Some(&said[0]));
        let emitted = names.get("rude.alloc").copied().unwrap_or(0);
        // Those before the session, and while a thread attaches or has ended, are none or counted.
        assert!(
            emitted > 500 && emitted <= said[1],
            "{emitted} of {}",
            said[1]
        );
    }
}
