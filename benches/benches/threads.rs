//! P7: two threads beside one, per thread. On a machine with fewer cores than threads the figure
//! would measure the scheduler, so only as many threads run as there are cores.

use std::hint::black_box;
use std::sync::Barrier;
use std::thread;
use std::time::Instant;

use ringmark::{Mode, Session, event};
use ringmark_benches::{cores, finish, percentiles, pin, print_bar};

const WINDOW: u64 = 1000;
const WINDOWS: usize = 3000;

fn main() {
    Session::builder()
        .mode(Mode::Overwrite)
        .start()
        .expect("a session");
    let (mut alone, mut together) = (Vec::new(), Vec::new());
    for _ in 0..5 {
        alone.extend(run(1));
        together.extend(run(2.min(cores())));
    }
    let [alone, together] = [alone, together].map(|ns| percentiles(ns)[1]);
    println!(
        "one thread {alone:.2} ns, two threads {together:.2} ns per event and thread (medians)"
    );
    let ratio = together / alone;
    print_bar("P7", "two threads / one thread", ratio, 1.05, ratio <= 1.05);
    finish(ratio > 1.05)
}

fn run(threads: usize) -> Vec<f64> {
    let barrier = Barrier::new(threads);
    thread::scope(|scope| {
        let all: Vec<_> = (0..threads)
            .map(|core| {
                scope.spawn({
                    let barrier = &barrier;
                    move || windows(core, barrier)
                })
            })
            .collect();
        all.into_iter()
            .flat_map(|t| t.join().expect("a bench thread"))
            .collect()
    })
}

fn windows(core: usize, barrier: &Barrier) -> Vec<f64> {
    pin(core);
    barrier.wait();
    (0..WINDOWS)
        .map(|_| {
            let start = Instant::now();
            for i in 0..WINDOW {
                event!("bench.threads", value = black_box(i));
            }
            start.elapsed().as_nanos() as f64 / WINDOW as f64
        })
        .collect()
}
