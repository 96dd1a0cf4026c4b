//! P8: the first lap of a new ring, the attach of a thread, and the slowest events while a reader
//! records and takes snapshots.

use std::hint::black_box;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use ringmark::{Mode, Session, attach_thread, event};
use ringmark_benches::{finish, pin, print_bar};
use ringmark_reader::{
    Access, Destination, Dump, Durability, Output, RecordOptions, Recorder, Rotation, Selection,
};
use ringmark_ring::clock::tsc;

const RING_BYTES: u32 = 256 << 10;
const LAP: usize = RING_BYTES as usize / 16 - 64;

fn main() {
    pin(1);
    let session = Session::builder()
        .mode(Mode::Overwrite)
        .ring_bytes(RING_BYTES)
        .warm(8)
        .start()
        .expect("a session");
    thread::sleep(Duration::from_millis(50));
    let mut attach_us = Vec::new();
    let (mut first, mut steady) = (Vec::new(), Vec::new());
    for _ in 0..20 {
        let (us, lap1, lap2) = thread::spawn(one_thread).join().expect("a bench thread");
        attach_us.push(us);
        first.extend(lap1);
        steady.extend(lap2);
        thread::sleep(Duration::from_millis(20));
    }
    let us = median(&mut attach_us);
    let (first, steady) = (p999(first), p999(steady));
    println!("p99.9 of one event: first lap {first} ticks, later laps {steady} ticks");
    let ratio = first as f64 / steady as f64;
    print_bar(
        "P8",
        "first lap / steady state, p99.9",
        ratio,
        2.0,
        ratio <= 2.0,
    );
    print_bar("P8", "attach with a warm ring, us", us, 50.0, us <= 50.0);
    let live = with_readers(session.path());
    finish(ratio > 2.0 || us > 50.0 || !live)
}

/// Ticks of one event over some seconds: alone, beside a recorder, beside a recorder and snapshots.
fn with_readers(path: &Path) -> bool {
    let seconds = if std::env::var_os("RINGMARK_LONG").is_some() {
        10
    } else {
        2
    };
    let alone = beside(seconds, |_| ());
    let recorded = beside(seconds, |stop| record(path, stop));
    let snapshots = beside(seconds, |stop| take_snapshots(path, stop));
    let mut met = true;
    for (what, found) in [("recorder", &recorded), ("snapshots", &snapshots)] {
        let ratio = found.p999 as f64 / alone.p999 as f64;
        met &= ratio <= 2.0;
        print_bar(
            "P8",
            &format!("p99.9 next to {what} / alone"),
            ratio,
            2.0,
            ratio <= 2.0,
        );
    }
    for (what, found) in [
        ("alone", alone),
        ("recorder", recorded),
        ("snapshots", snapshots),
    ] {
        println!(
            "{what:10} {seconds} s: p99.9 {} ticks, max {} ticks",
            found.p999, found.max
        );
    }
    met
}

struct Slow {
    p999: u64,
    max: u64,
}

fn beside(seconds: u64, reader: impl FnOnce(&AtomicBool) + Send) -> Slow {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            pin(0);
            reader(&stop);
        });
        let found = scope
            .spawn(move || slowest(seconds))
            .join()
            .expect("a bench thread");
        stop.store(true, Relaxed);
        found
    })
}

/// Emits for some seconds on core 1 and counts how long each event took.
fn slowest(seconds: u64) -> Slow {
    pin(1);
    attach_thread();
    let mut counts = vec![0_u64; 1 << 16];
    let (mut max, mut events) = (0, 0_u64);
    let end = Instant::now() + Duration::from_secs(seconds);
    while Instant::now() < end {
        for i in 0..10_000_u64 {
            let before = tsc();
            event!("bench.live", value = black_box(i));
            let ticks = tsc() - before;
            counts[(ticks as usize).min((1 << 16) - 1)] += 1;
            max = max.max(ticks);
        }
        events += 10_000;
    }
    let mut slower = 0;
    let over = |count: &u64| {
        slower += count;
        slower > events / 1000
    };
    let p999 = counts.iter().rposition(over).unwrap_or(0) as u64;
    Slow { p999, max }
}

fn record(path: &Path, stop: &AtomicBool) {
    let to = Destination::File(
        Path::new("/dev/shm").join(format!("ringmark-latency-{}.rmk", std::process::id())),
    );
    let mut dump = Dump::create(&to, Durability::System).expect("a dump");
    dump.set_rotation(Some(Rotation {
        bytes: 64 << 20,
        keep: 1,
    }));
    let selection = Selection::Path(path.to_owned());
    let mut recorder =
        Recorder::new(selection, dump, RecordOptions::default()).expect("a recorder");
    recorder.run(stop).expect("recorded");
    if let Destination::File(path) = to {
        let _ = std::fs::remove_file(path);
    }
}

fn take_snapshots(path: &Path, stop: &AtomicBool) {
    let to = Path::new("/dev/shm").join(format!("ringmark-latency-{}.snap", std::process::id()));
    while !stop.load(Relaxed) {
        let session = ringmark_reader::Session::open(path, Access::Observe).expect("the session");
        let mut dump = Dump::over(Output::create(&to, Durability::System).expect("a file"));
        ringmark_reader::snapshot(session, None, &mut dump).expect("a snapshot");
        thread::sleep(Duration::from_millis(100));
    }
    let _ = std::fs::remove_file(to);
}

fn one_thread() -> (f64, Vec<u64>, Vec<u64>) {
    pin(1);
    let start = Instant::now();
    assert!(attach_thread(), "a ring");
    let us = start.elapsed().as_nanos() as f64 / 1000.0;
    let first = lap();
    for _ in 0..3 {
        black_box(lap());
    }
    (us, first, lap())
}

/// Ticks of every event of one lap.
fn lap() -> Vec<u64> {
    let mut ticks = vec![0; LAP];
    for (i, place) in ticks.iter_mut().enumerate() {
        let before = tsc();
        event!("bench.lap", value = black_box(i as u64));
        *place = tsc() - before;
    }
    ticks
}

fn p999(mut ticks: Vec<u64>) -> u64 {
    ticks.sort_unstable();
    ticks[ticks.len() * 999 / 1000]
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
