//! Promise: the tables of a store have each row of a scan once, whatever is killed in between, in whatever
//! order pages come, and whatever other runs there are at the same time.

#[path = "../../decoder/tests/common/mod.rs"]
mod common;
mod common_store;

use std::fs;

use common_store::{Sent, Store};

/// Two sessions in segments that each hold some pages of both; the last one has their ends.
fn segments(sent: &[Sent], count: usize) -> Vec<Vec<(&Sent, Vec<u8>)>> {
    let mut segments = Vec::new();
    for number in 0..count {
        let of = sent.iter().map(|sent| {
            let each = sent.pages.len().div_ceil(count);
            let pages = sent.pages.chunks(each).nth(number).unwrap_or_default();
            let mut blocks = pages.concat();
            let last = ((number + 1) * each).min(sent.pages.len()) - 1;
            blocks.extend(sent.counters(last));
            if number + 1 == count {
                blocks.extend_from_slice(&sent.end);
            }
            (sent, blocks)
        });
        segments.push(of.collect());
    }
    segments
}

fn put(store: &Store, number: usize, of: &[(&Sent, Vec<u8>)]) {
    let of: Vec<_> = of
        .iter()
        .map(|(sent, blocks)| (*sent, &blocks[..]))
        .collect();
    store.segment(number as u64, &of);
}

/// A store of some sessions without its segments.
fn begun(name: &str, sent: &[Sent]) -> Store {
    let store = Store::new(name);
    sent.iter().for_each(|sent| store.begin(sent));
    store
}

fn sessions() -> [Sent; 2] {
    [Sent::new(19, 4000), Sent::new(23, 2500)]
}

#[test]
fn tables_have_the_rows_of_a_scan() {
    let sent = sessions();
    let store = begun("tables", &sent);
    let segments = segments(&sent, 7);
    for (number, of) in segments.iter().enumerate() {
        put(&store, number, of);
        // Some runs find one segment, some several.
        if number % 3 != 1 {
            store.compact();
        }
    }
    let rows = store.scanned();
    let unended = store.check(&rows, "all");
    assert!(rows.len() > 2000 && unended > 0, "{} {unended}", rows.len());
    let versions = fs::read_dir(store.0.join("tables/losses/_delta_log")).expect("a log");
    assert_eq!(versions.count(), 5);
    assert!(store.compact().contains("0 rows of 0 segments"));
}

#[test]
fn a_run_that_is_killed_at_any_step_is_taken_up() {
    let sent = sessions();
    let segments = segments(&sent, 3);
    let expected = {
        let store = begun("killed", &sent);
        segments
            .iter()
            .enumerate()
            .for_each(|(number, of)| put(&store, number, of));
        store.scanned()
    };
    let mut steps = 0;
    for at in 0.. {
        let store = begun("killed", &sent);
        put(&store, 0, &segments[0]);
        store.compact();
        put(&store, 1, &segments[1]);
        let mut command = store.command("compact .");
        command.env("RINGMARK_FLEET_ABORT_AT", at.to_string());
        let is_whole = command.output().expect("it runs").status.code().is_some();
        // What comes in between belongs to no batch that was decided before.
        put(&store, 2, &segments[2]);
        store.compact();
        store.check(&expected, &format!("step {at}"));
        steps += 1;
        if is_whole {
            break;
        }
    }
    assert!(steps > 10, "{steps} steps");
}

#[test]
fn two_at_the_same_time_give_each_row_once() {
    let sent = sessions();
    let store = begun("two", &sent);
    let segments = segments(&sent, 4);
    for (number, of) in segments.iter().enumerate() {
        put(&store, number, of);
        let runs: Vec<_> = (0..2)
            .map(|_| store.command("compact .").spawn().expect("it runs"))
            .collect();
        for mut run in runs {
            assert!(
                run.wait()
                    .expect("it ends")
                    .code()
                    .is_some_and(|code| code <= 1)
            );
        }
    }
    store.check(&store.scanned(), "all");
}

#[test]
fn a_segment_that_comes_late_or_twice_changes_nothing() {
    let sent = sessions();
    let store = begun("late", &sent);
    let segments = segments(&sent, 5);
    for number in [0, 3, 1] {
        put(&store, number, &segments[number]);
        store.compact();
    }
    put(&store, 4, &segments[4]);
    put(&store, 2, &segments[2]);
    // The same pages again, in a segment of their own.
    put(&store, 7, &segments[1]);
    store.compact();
    put(&store, 8, &segments[3]);
    store.compact();
    store.check(&store.scanned(), "all");
}
