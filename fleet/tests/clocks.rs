//! Promise: whatever the clocks of hosts, collectors and of the machine with `compact` say, tables have all rows when hosts have
//! sent all, a host that was given up and speaks again goes on, and nothing is deleted that is not due.

#[path = "../../decoder/tests/common/mod.rs"]
mod common;
mod common_store;

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use ringmark_fleet::{Stored, TABLES, Wanted};

use common_store::{
    Sent, Store, batches, begun, cell, hour_of, make_old, now_ns, paths_below, put_in, segments,
    sessions,
};

const HOUR_S: i64 = 3600;
const S: i64 = 1_000_000_000;
/// By how much a clock is wrong, in s.
const WRONG: [i64; 4] = [25 * HOUR_S, -25 * HOUR_S, 8 * 24 * HOUR_S, -8 * 24 * HOUR_S];

/// By how much clocks are ahead, in s.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Clocks {
    host: i64,
    collector: i64,
    compact: i64,
}

impl Clocks {
    /// Puts a segment that is uploaded so many seconds ago. Hosts speak then.
    fn put(self, store: &Store, number: usize, of: &[(&Sent, Vec<u8>)], ago_s: i64) {
        let at = |ahead: i64| now_ns().saturating_add_signed((ahead - ago_s) * S);
        let ahead_ns = (self.host - self.collector) * S;
        let said = of.iter().map(|(sent, blocks)| {
            let said = sent.said((at(self.host), ahead_ns));
            (*sent, [&said, &blocks[..]].concat())
        });
        let hour = hour_of(at(self.collector));
        put_in(store, &hour, number, &said.collect::<Vec<_>>());
    }

    /// Makes tables, or whatever `words` say.
    fn compact(self, store: &Store, words: &str) -> String {
        let mut command = store.command(words);
        command.env("RINGMARK_FLEET_CLOCK_AHEAD_S", self.compact.to_string());
        let done = command.output().expect("it runs");
        let said = common_store::said(&done);
        assert!(done.status.success(), "{said}");
        said
    }
}

/// The events that are lost, by session. Why is known when the last of its counters are read: in parts it may not be.
fn losses(store: &Store) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    for batch in store.files("losses").iter().flat_map(|file| batches(file)) {
        let column = |name: &str| batch.column_by_name(name).expect("a column").clone();
        let (session, events) = (column("session"), column("events"));
        for row in 0..batch.num_rows() {
            let count: u64 = cell(&events, row).parse().expect("a number");
            *sums.entry(cell(&session, row)).or_default() += count;
        }
    }
    sums
}

/// How many rows a query sees: those of the tables, and those that are in segments alone.
fn asked(store: &Store) -> usize {
    let place = store.0.display().to_string();
    let stored = Stored::open(&place, None).expect("a store");
    let of_table = |table: &&str| {
        let files = stored.files(table).iter();
        let mut rows: usize = files.map(|file| file.rows as usize).sum();
        let read = stored.each_batch((table, &[0]), &Wanted::default(), |batch| {
            rows += batch.num_rows();
            Ok(())
        });
        assert!(read.expect("rows").damage.is_empty());
        rows
    };
    TABLES.iter().map(of_table).sum()
}

/// Checks that tables have what tables have that are made of all segments at once, with right clocks.
fn check_whole(store: &Store, what: &str) {
    store.check(&store.scanned(), what);
    let into = store.0.with_extension("whole");
    let _ = fs::remove_dir_all(&into);
    let whole = Store(into);
    fs::create_dir(&whole.0).expect("a directory");
    let words = format!("compact . --into {}", whole.0.display());
    Clocks::default().compact(store, &words);
    let (rows, expected) = (store.rows(), whole.rows());
    assert!(
        rows == expected,
        "{what}: {} rows, {}",
        rows.len(),
        expected.len()
    );
    assert_eq!(losses(store), losses(&whole), "{what}");
}

/// All files of the tables, with those that were replaced.
fn table_files(store: &Store) -> Vec<PathBuf> {
    let files = paths_below(&store.0.join("tables")).into_iter();
    let is_one = |path: &PathBuf| path.extension().is_some_and(|of| of == "parquet");
    files.filter(is_one).collect()
}

/// What an operator runs all day.
const DAILY: &str = "compact . --merge --keep-raw 24h";

#[test]
fn one_clock_that_is_wrong_loses_no_row_and_deletes_nothing() {
    let sent = sessions();
    for wrong in WRONG {
        let one = [
            Clocks {
                host: wrong,
                ..Clocks::default()
            },
            Clocks {
                collector: wrong,
                ..Clocks::default()
            },
            Clocks {
                compact: wrong,
                ..Clocks::default()
            },
        ];
        for (number, clocks) in one.into_iter().enumerate() {
            let what = format!("{clocks:?}");
            let store = begun(&format!("one-{number}"), &sent);
            let segments = segments(&sent, 6);
            let (right, mut made) = (Clocks::default(), Vec::new());
            // The host's clock is as it is, all the time.
            let host = Clocks {
                host: clocks.host,
                ..right
            };
            for (number, of) in segments.iter().enumerate() {
                let now = if (2..4).contains(&number) {
                    clocks
                } else {
                    host
                };
                now.put(&store, number, of, 0);
                now.compact(&store, DAILY);
                made.extend(table_files(&store));
                assert_eq!(
                    paths_below(&store.0.join("raw")).len(),
                    number + 1,
                    "{what}"
                );
            }
            assert!(made.iter().all(|path| path.exists()), "{what}");
            check_whole(&store, &what);
        }
    }
}

#[test]
fn a_host_that_was_given_up_goes_on_when_it_speaks_again() {
    let sent = [Sent::new(19, 1500), Sent::new(23, 1000), Sent::new(29, 800)];
    let store = begun("given-up", &sent);
    let segments = segments(&sent, 6);
    // The second and the third session are those of a host that is away for a day; a part of it waits on its disk.
    let away = |number: usize| segments[number][1..].to_vec();
    let here = |number: usize| segments[number][..1].to_vec();
    let right = Clocks::default();
    right.put(&store, 0, &segments[0], 30 * HOUR_S);
    right.put(&store, 1, &segments[2], 26 * HOUR_S);
    right.put(&store, 2, &here(1), 0);
    let said = right.compact(&store, "compact . --silent 48h");
    assert!(said.contains("segments that wait"), "{said}");
    let waiting = store.rows();
    right.compact(&store, "compact .");
    let given_up = store.rows();
    assert!(
        given_up.len() > waiting.len(),
        "{} {}",
        given_up.len(),
        waiting.len()
    );
    // Later runs give it up no second time, and neither merge nor delete what undoes it.
    right.put(&store, 3, &here(3), 0);
    make_old(&store, Duration::from_secs(40 * 3600));
    right.compact(&store, DAILY);
    let said = right.compact(&store, DAILY);
    assert!(said.contains("0 rows of 0 segments in 0 batches"), "{said}");
    assert_eq!(paths_below(&store.0.join("raw")).len(), 4);
    assert!(store.rows().len() >= given_up.len());
    // Its streamer comes back and sends what it had, one after the other.
    let back = [away(1), away(3), segments[4].clone(), segments[5].clone()];
    right.put(&store, 4, &back[0], 0);
    assert_eq!(
        asked(&store),
        store.scanned().len(),
        "a query undoes it as the next run does"
    );
    let said = right.compact(&store, "compact . --merge");
    assert!(said.contains("heard again: 2"), "{said}");
    for (number, of) in back.iter().enumerate().skip(1) {
        right.put(&store, 4 + number, of, 0);
        let said = right.compact(&store, "compact . --merge");
        assert!(!said.contains("heard again"), "{said}");
    }
    check_whole(&store, "back");
    // What was read is deleted when it is old.
    make_old(&store, Duration::from_secs(40 * 3600));
    let said = right.compact(&store, DAILY);
    assert!(said.contains(": 2 segments and 0 schema"), "{said}");
}

/// The last word of a host may be all that was missing.
#[test]
fn a_host_that_was_given_up_and_says_that_this_was_all_has_ended() {
    let sent = [Sent::new(19, 1500), Sent::new(23, 1000)];
    let store = begun("last-word", &sent);
    let right = Clocks::default();
    let mut ended = segments(&sent, 1);
    let ends: Vec<_> = ended[0]
        .iter()
        .map(|(sent, _)| (*sent, sent.end.clone()))
        .collect();
    for (sent, blocks) in &mut ended[0] {
        let pages = sent.pages.concat();
        *blocks = [pages, sent.counters(sent.pages.len() - 1)].concat();
    }
    right.put(&store, 0, &ended[0], 30 * HOUR_S);
    right.put(&store, 1, &ends[..1], 0);
    right.compact(&store, "compact .");
    right.put(&store, 2, &ends[1..], 0);
    let said = right.compact(&store, "compact .");
    assert!(said.contains("heard again: 1"), "{said}");
    check_whole(&store, "ended");
}

/// Numbers of chance: the same for the same seed.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 8) % end
    }

    fn clock(&mut self) -> i64 {
        match self.below(3) {
            0 => WRONG[self.below(4) as usize],
            _ => 0,
        }
    }
}

/// Clocks are set while hosts send, pages come in any order, and some runs are killed.
#[test]
fn clocks_that_are_set_at_any_time_lose_no_row_and_repeat_none() {
    let seeds = if std::env::var_os("RINGMARK_LONG").is_some() {
        200
    } else {
        12
    };
    let mut taken_back = 0;
    for seed in 1..=seeds {
        let mut random = Random(seed);
        let sent = [Sent::new(19, 900), Sent::new(23, 700), Sent::new(29, 500)];
        let store = begun("chaos", &sent);
        // Each segment has pages of one or of all.
        let mut left: Vec<_> = segments(&sent, 4)
            .into_iter()
            .flat_map(|of| match random.below(2) {
                0 => vec![of],
                _ => of.into_iter().map(|one| vec![one]).collect(),
            })
            .collect();
        let mut number = 0;
        while !left.is_empty() {
            let clocks = Clocks {
                host: 0,
                collector: random.clock(),
                compact: random.clock(),
            };
            for _ in 0..=random.below(2) {
                if left.is_empty() {
                    break;
                }
                let of = left.swap_remove(random.below(left.len() as u64) as usize);
                clocks.put(&store, number, &of, 0);
                number += 1;
            }
            let mut command = store.command("compact . --merge --silent 1h");
            command.env("RINGMARK_FLEET_CLOCK_AHEAD_S", clocks.compact.to_string());
            if random.below(3) == 0 {
                command.env("RINGMARK_FLEET_ABORT_AT", random.below(30).to_string());
            }
            let done = command.output().expect("it runs");
            taken_back += u64::from(common_store::said(&done).contains("heard again"));
        }
        Clocks::default().compact(&store, "compact . --merge");
        check_whole(&store, &format!("seed {seed}"));
    }
    assert!(taken_back > 0, "no host was given up and heard again");
}
