//! P8: the first lap of a new ring, and the attach of a thread.

use std::hint::black_box;
use std::thread;
use std::time::{Duration, Instant};

use ringmark::{Mode, Session, attach_thread, event};
use ringmark_benches::{finish, pin, print_bar};
use ringmark_ring::clock::tsc;

const RING_BYTES: u32 = 256 << 10;
const LAP: usize = RING_BYTES as usize / 16 - 64;

fn main() {
    pin(1);
    Session::builder()
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
    finish(ratio > 2.0 || us > 50.0)
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
