//! Three workers pack boxes; one of them meets a box that is too heavy, and aborts the process.
#![forbid(unsafe_code)]

use std::thread;
use std::time::Duration;

use ringmark::{event, span};

/// What a box may weigh.
const KILOGRAMS_MAX: u64 = 40;

fn main() {
    let _session = ringmark::start_from_env();
    let worker = |number| move || (1..=20).for_each(|id| pack(100 * number + id));
    let threads = (1..=3_u64).map(|number| {
        let named = thread::Builder::new().name(format!("worker-{number}"));
        named.spawn(worker(number)).expect("a thread")
    });
    for thread in threads.collect::<Vec<_>>() {
        let _ = thread.join();
    }
}

fn pack(id: u64) {
    let kilograms = if id == 215 { 90 } else { id % 20 };
    let _span = span!("box", id, kilograms);
    thread::sleep(Duration::from_millis(2));
    if kilograms > KILOGRAMS_MAX {
        event!(level: Error, "too heavy", id);
        std::process::abort();
    }
}
