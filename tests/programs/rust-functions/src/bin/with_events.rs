//! As `tests/programs/c/with_functions.c`, in Rust.
#![forbid(unsafe_code)]

use std::hint::black_box;
use std::io::Read;
use std::sync::Barrier;
use std::time::Duration;
use std::{env, io, process, thread};

use ringmark::event;

/// Events of a thread before its first round.
const EARLY: u64 = 8;

#[ringmark::trace_fn]
#[inline(never)]
fn leaf(n: u64) -> u64 {
    black_box(n) + 1
}

#[ringmark::trace_fn]
#[inline(never)]
fn work(n: u64, leaves: u64) -> u64 {
    let sum = (0..leaves / 2).fold(n, |sum, _| leaf(sum));
    event!("work.done", n = n);
    black_box((leaves / 2..leaves).fold(sum, |sum, _| leaf(sum)))
}

#[ringmark::trace_fn]
#[inline(never)]
fn all_done() {
    black_box(());
}

fn main() {
    let numbers = env::args()
        .skip(1)
        .map(|word| word.parse().expect("a number"));
    let numbers: Vec<u64> = numbers.collect();
    let &[threads, rounds, leaves, pause_us] = &numbers[..] else {
        panic!("expected THREADS ROUNDS LEAVES PAUSE_US");
    };
    if ringmark::start_from_env().is_none() {
        process::exit(3);
    }
    let (ready, go) = (
        Barrier::new(threads as usize + 1),
        Barrier::new(threads as usize + 1),
    );
    let runs = || {
        (0..EARLY).for_each(|n| event!("work.early", n = n));
        ready.wait();
        go.wait();
        for n in 0..rounds {
            work(n, leaves);
            if pause_us != 0 && n % 100 == 99 {
                thread::sleep(Duration::from_micros(pause_us));
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..threads {
            let worker = thread::Builder::new().name("worker".to_owned());
            let _ = worker.spawn_scoped(scope, runs).expect("a thread");
        }
        ready.wait();
        println!("ready");
        let _ = io::stdin().read_line(&mut String::new());
        go.wait();
    });
    all_done();
    let _ = io::stdin().read_to_end(&mut Vec::new());
}
