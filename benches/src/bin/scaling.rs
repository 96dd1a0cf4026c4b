//! One point of a curve: what an event costs with a number of threads and a payload, in a session as
//! `RINGMARK` says. `benches/compare scaling` asks for the points in turn and draws the curves.
//!
//! Prints p10, median and p90 of windows of 1000 events, and the CPU time of an event over all of
//! them, in ns; then how many events there were.

use std::hint::black_box;
use std::process::ExitCode;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use ringmark::{attach_thread, event};
use ringmark_benches::{percentiles, pin, thread_cpu_seconds};

const WINDOW: u64 = 1000;
const USAGE: &str = "usage: RINGMARK=… scaling THREADS PAYLOAD EVENTS";

/// What one thread has measured.
struct Taken {
    windows: Vec<f64>,
    cpu_ns: f64,
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let numbers: Vec<u64> = words.iter().filter_map(|word| word.parse().ok()).collect();
    let [threads, payload, events] = numbers[..] else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let threads = threads as usize;
    let _session = ringmark::start_from_env();
    // Its helper thread makes rings ahead, and a recorder may be on its way.
    thread::sleep(Duration::from_millis(100));
    let payload = vec![7_u8; payload as usize];
    let barrier = Barrier::new(threads);
    let all: Vec<Taken> = thread::scope(|scope| {
        let started: Vec<_> = (0..threads)
            .map(|core| {
                let (barrier, payload) = (&barrier, &payload);
                scope.spawn(move || {
                    // One thread leaves the first core to everybody else.
                    pin(core + usize::from(threads == 1));
                    assert!(attach_thread(), "a ring");
                    barrier.wait();
                    measure(payload, events)
                })
            })
            .collect();
        started
            .into_iter()
            .map(|thread| thread.join().expect("a thread that measures"))
            .collect()
    });
    let cpu_ns = all.iter().map(|taken| taken.cpu_ns).sum::<f64>() / threads as f64;
    let windows: Vec<_> = all.into_iter().flat_map(|taken| taken.windows).collect();
    let emitted = threads as u64 * (events / 2) + windows.len() as u64 * WINDOW;
    let [p10, median, p90] = percentiles(windows);
    println!("{p10} {median} {p90} {cpu_ns} {emitted}");
    ExitCode::SUCCESS
}

fn measure(payload: &[u8], events: u64) -> Taken {
    match payload.len() {
        0 => windows(events, |_| event!("scaling.empty")),
        8 => windows(events, |i| event!("scaling.word", value = black_box(i))),
        _ => windows(events, |_| {
            event!("scaling.bytes", value = black_box(payload));
        }),
    }
}

/// Half of the events go before the first window: the first lap of a ring is not what lasts.
fn windows(events: u64, emit: impl Fn(u64)) -> Taken {
    let mut taken = Vec::with_capacity((events / WINDOW) as usize + 1);
    (0..events / 2).for_each(&emit);
    let cpu = thread_cpu_seconds();
    for _ in 0..(events / 2).div_ceil(WINDOW) {
        let start = Instant::now();
        (0..WINDOW).for_each(&emit);
        taken.push(start.elapsed().as_nanos() as f64 / WINDOW as f64);
    }
    let cpu_ns = (thread_cpu_seconds() - cpu) * 1e9 / (taken.len() as u64 * WINDOW) as f64;
    Taken {
        windows: taken,
        cpu_ns,
    }
}
