//! Functions of every kind that Rust has, which count their own calls: `functions-sites ROUNDS US`
//! prints a sum to stdout and `calls NAME NUMBER` to stderr, and waits so long between rounds.
#![forbid(unsafe_code)]

mod count;
mod kinds;
mod leaves;

use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use std::{env, thread};

/// The program.
pub fn run() {
    let mut arguments = env::args().skip(1).map(|word| word.parse::<i64>());
    let mut next = |otherwise| arguments.next().and_then(Result::ok).unwrap_or(otherwise);
    // Below 0: the program runs until it is killed.
    let rounds = u64::try_from(next(10)).unwrap_or(u64::MAX);
    let pause = Duration::from_micros(next(0).unsigned_abs());
    panic::set_hook(Box::new(|_| {}));
    let mut sum = 0_u64;
    for round in 0..rounds {
        let others: Vec<_> = (1..4)
            .map(|thread| thread::spawn(move || work(round + thread)))
            .collect();
        sum = sum.wrapping_add(work(round));
        for other in others {
            // It catches its own panics.
            sum = sum.wrapping_add(other.join().unwrap_or(1));
        }
        if !pause.is_zero() {
            thread::sleep(pause);
        }
    }
    println!("{sum}");
    for count in kinds::COUNTS.iter().chain(&leaves::COUNTS) {
        eprintln!("calls {} {}", count.name, count.calls.load(Relaxed));
    }
}

fn work(n: u64) -> u64 {
    let fine = kinds::all(n).wrapping_add(leaves::all(n));
    let caught = panic::catch_unwind(AssertUnwindSafe(|| kinds::falls(n % 20)));
    fine.wrapping_add(u64::from(caught.is_err()))
}
