//! A program that knows what it made: `known ROUNDS` prints it as a line of JSON.
//!
//! Each of three threads has ROUNDS rounds: a span around others, an event in it, spans in those. For each
//! name it says how many there were, the sum of their numbers, the sum of the spans around each, and
//! between which sums of ns their durations lie: just inside of them, and just outside.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::thread;
use std::time::{Duration, Instant};

use ringmark::{event, span};

const THREADS: u64 = 3;

/// What was made of one name.
#[derive(Default)]
struct Made {
    count: u64,
    sum: u64,
    around: u64,
    least: Duration,
    most: Duration,
}

type ByName = BTreeMap<&'static str, Made>;

fn take<'m>(made: &'m mut ByName, name: &'static str, n: u64, around: u64) -> &'m mut Made {
    let made = made.entry(name).or_default();
    made.count += 1;
    made.sum += n;
    made.around += around;
    made
}

/// Does some work in a span.
macro_rules! in_span {
    ($made:expr, $name:literal, $n:expr, $around:expr, $work:expr) => {{
        let before = Instant::now();
        let span = span!($name, n = $n);
        let begun = Instant::now();
        $work;
        let least = begun.elapsed();
        drop(span);
        let most = before.elapsed();
        let made = take($made, $name, $n, $around);
        made.least += least;
        made.most += most;
    }};
}

fn work(steps: u64) {
    (0..steps).for_each(|step| {
        black_box(step);
    });
}

fn round(made: &mut ByName, n: u64) {
    in_span!(made, "known.outer", n, 0, {
        event!("known.event", n = n, about = "in the middle");
        take(made, "known.event", n, 0);
        for part in 0..n % 4 {
            in_span!(made, "known.inner", part, 1, {
                work(200 * part);
                in_span!(made, "known.leaf", n + part, 2, work(100));
            });
        }
        work(50);
    });
}

fn rounds(rounds: u64) -> ByName {
    let mut made = ByName::new();
    (0..rounds).for_each(|n| round(&mut made, n));
    made
}

fn main() {
    let count: u64 = std::env::args()
        .nth(1)
        .and_then(|text| text.parse().ok())
        .expect("a number of rounds");
    let _session = ringmark::start_from_env();
    let threads = (0..THREADS).map(|number| {
        let named = thread::Builder::new().name(format!("known-{number}"));
        named.spawn(move || rounds(count)).expect("a thread")
    });
    let threads: Vec<_> = threads.collect();
    let mut all = ByName::new();
    for thread in threads {
        for (name, more) in thread.join().expect("its rounds") {
            let made = all.entry(name).or_default();
            made.count += more.count;
            made.sum += more.sum;
            made.around += more.around;
            made.least += more.least;
            made.most += more.most;
        }
    }
    let rows = all.iter().map(|(name, made)| {
        let (least, most) = (made.least.as_nanos(), made.most.as_nanos());
        let Made {
            count, sum, around, ..
        } = made;
        format!("\"{name}\":[{count},{sum},{around},{least},{most}]")
    });
    println!("{{{}}}", rows.collect::<Vec<_>>().join(","));
}
