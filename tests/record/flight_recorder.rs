//! Promise: overwrite mode keeps the newest events, as many as fit, and knows how many are gone.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use ringmark_decoder::{Dump, Output};
use ringmark_tests::delivery::{Delivery, expect_whole, number};
use ringmark_tests::fixture::{Counters, Fixture};
use ringmark_tests::recording::{read, snapshot};
use ringmark_tests::{is_long, wait_until};

const EMIT: &str = ringmark_tests::program!("emit");
const EVENTS: u64 = 501_000;
const RINGMARK: &str = "mode=overwrite,ring=4M,session=16M,keep=always";
const SECONDS: Duration = Duration::from_secs(60);

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
    let account = Delivery::of(&dump);
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
    let fixture = Fixture::new("flight");
    let arguments = format!("0 {EVENTS} shape=one hold=600000");
    let program = fixture.start(EMIT, RINGMARK, &arguments);
    let ring_file = fixture.ring_file();
    wait_for_the_last(&ring_file);
    let alive = expect_newest(&ring_file);
    let again = expect_newest(&ring_file);
    assert_eq!(alive, again, "observing takes nothing away");
    drop(program.kill().unwrap());
    assert_eq!(expect_newest(&ring_file), alive, "and after kill -9");
    println!("{alive} newest events");
}

/// Events that each reader must have seen.
const SEEN: u64 = 1000;

/// Each look at the living session: nothing torn, every event in its place, none that was not yet
/// emitted. Returns events seen and looks.
fn look_on(look: impl Fn() -> Dump, counters: &Counters, time: Duration) -> (u64, u64) {
    let (mut seen, mut looks, begun) = (0, 0, Instant::now());
    // Longer where the writers often overtake it, or it seldom gets a processor.
    while begun.elapsed() < time || seen <= SEEN && begun.elapsed() < SECONDS {
        let dump = look();
        let after = counters.ledger(2);
        seen += expect_whole(&dump);
        looks += 1;
        let account = Delivery::of(&dump);
        account.expect_no_errors();
        for ring in account.rings.values() {
            let Some(thread) = ring.thread else { continue };
            let (_, begun) = after[thread as usize];
            assert!(ring.emitted() <= begun, "{after:?} {ring:?}");
        }
    }
    (seen, looks)
}

#[test]
fn live_readers_beside_an_overwriting_writer_get_nothing_torn() {
    let time = Duration::from_secs(if is_long() { 10 } else { 2 });
    for how in ["bulk=100", "bulk=1500"] {
        let fixture = Fixture::new("torn");
        let counters = Counters::new(fixture.path("ledger"));
        let ringmark = "mode=overwrite,ring=32K,page=4K,session=1M,keep=always";
        let arguments = format!("2 1000000000 {how} {}", counters.argument());
        let program = fixture.start(EMIT, ringmark, &arguments);
        counters.wait_for(2);
        let ring_file = fixture.ring_file();
        let path = fixture.path("snapshot.rmk");
        let looks = thread::scope(|scope| {
            let snapshots = || look_on(|| snapshot(&ring_file, &path), &counters, time);
            let records = || {
                let copy = || read(std::slice::from_ref(&ring_file));
                look_on(copy, &counters, time)
            };
            [scope.spawn(snapshots), scope.spawn(records)].map(|reader| reader.join().unwrap())
        });
        counters.stop();
        let _ = program.finish(SECONDS).expect_code(0);
        // At the end the books are exact, to the event.
        let ledger = counters.ledger(2);
        assert!(ledger.iter().all(|(returned, begun)| returned == begun));
        let account = Delivery::of(&read(&[ring_file]));
        account.expect_ledger(&ledger);
        let emitted: u64 = ledger.iter().map(|(returned, _)| returned).sum();
        let (delivered, lost) = (account.delivered(), account.lost());
        println!(
            "{how}: snapshots and records {looks:?} (events, looks); emitted {emitted}, delivered {delivered}, overwritten {lost}"
        );
        assert_eq!(delivered + lost, emitted);
        assert!(looks.iter().all(|(seen, _)| *seen > SEEN), "{looks:?}");
    }
}

#[test]
fn a_reader_of_a_running_writer_sees_whole_pages_only() {
    let fixture = Fixture::new("live");
    let ringmark = "mode=overwrite,ring=64K,page=4K,session=8M";
    let program = fixture.start(EMIT, ringmark, "2 100000000000");
    let ring_file = fixture.ring_file();
    let (mut last, begun) = (0, Instant::now());
    let mut reads = 0;
    while reads < 200 || last <= 100_000 && begun.elapsed() < SECONDS {
        reads += 1;
        // Every event numbered, in order, in its place: or it was overwritten, and counted.
        let dump = read(std::slice::from_ref(&ring_file));
        let account = Delivery::of(&dump);
        account.expect_no_errors();
        // A reader that is overtaken on its way may end with an older page than the time before.
        let emitted = account.rings.values().map(|ring| ring.emitted());
        last = last.max(emitted.max().unwrap_or(0));
    }
    drop(program.kill().unwrap());
    assert!(last > 100_000, "the writer did not run: {last}");
}
