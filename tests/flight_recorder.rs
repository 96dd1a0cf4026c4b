//! Promise: overwrite mode keeps the newest events, as many as fit, and knows how many are gone.

use std::path::Path;
use std::time::Duration;

use ringmark_decoder::{Dump, Output};
use ringmark_tests::account::{Account, number};
use ringmark_tests::recording::read;
use ringmark_tests::stage::Stage;
use ringmark_tests::wait_until;

const EMIT: &str = env!("CARGO_BIN_EXE_emit");
const EVENTS: u64 = 501_000;
const RINGMARK: &str = "mode=overwrite,ring=4M,session=16M,keep=always";
const SECONDS: Duration = Duration::from_secs(20);

/// The numbers that are there, in order.
fn numbers(dump: &Dump) -> Vec<u64> {
    let events = dump.events().filter_map(|item| match item {
        Output::Event(event) => number(&event, "seq"),
        Output::Lost(_) => None,
    });
    events.collect()
}

fn expect_newest(ring_file: &Path) -> u64 {
    let dump = read(&[ring_file.to_owned()]);
    let numbers = numbers(&dump);
    let (first, count) = (numbers[0], numbers.len() as u64);
    assert!(numbers.windows(2).all(|pair| pair[0] + 1 == pair[1]));
    assert_eq!(
        numbers.last(),
        Some(&(EVENTS - 1)),
        "the newest event is there"
    );
    assert!(count >= 250_000, "{count} events of 16 bytes from 4 MiB");
    let account = Account::of(&dump);
    assert_eq!(account.lost(), first, "overwritten events are counted");
    let ring = account.rings.values().next().unwrap();
    assert_eq!(ring.lost.keys().collect::<Vec<_>>(), [&"overwritten"]);
    count
}

fn wait_for_the_last(ring_file: &Path) {
    wait_until(SECONDS, "the last event", || {
        // While it writes, it may overtake the reader: then there are gaps.
        let numbers = numbers(&read(&[ring_file.to_owned()]));
        (numbers.last() == Some(&(EVENTS - 1))).then_some(())
    });
}

#[test]
fn four_mebibytes_hold_the_newest_quarter_of_a_million() {
    let stage = Stage::new("flight");
    let arguments = format!("0 {EVENTS} shape=one hold=60000");
    let program = stage.start(EMIT, RINGMARK, &arguments);
    let ring_file = stage.ring_file();
    wait_for_the_last(&ring_file);
    let alive = expect_newest(&ring_file);
    let again = expect_newest(&ring_file);
    assert_eq!(alive, again, "observing takes nothing away");
    drop(program.kill().unwrap());
    assert_eq!(expect_newest(&ring_file), alive, "and after kill -9");
    println!("{alive} newest events");
}

#[test]
fn a_reader_of_a_running_writer_sees_whole_pages_only() {
    let stage = Stage::new("live");
    let ringmark = "mode=overwrite,ring=64K,page=4K,session=8M";
    let program = stage.start(EMIT, ringmark, "2 100000000");
    let ring_file = stage.ring_file();
    let mut last = 0;
    for _ in 0..200 {
        // Every event numbered, in order, in its place: or it was overwritten, and counted.
        let dump = read(std::slice::from_ref(&ring_file));
        let account = Account::of(&dump);
        account.expect_no_errors();
        // A reader that is overtaken on its way may end with an older page than the time before.
        let emitted = account.rings.values().map(|ring| ring.emitted());
        last = last.max(emitted.max().unwrap_or(0));
    }
    drop(program.kill().unwrap());
    assert!(last > 100_000, "the writer did not run: {last}");
}
