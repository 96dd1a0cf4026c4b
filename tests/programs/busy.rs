//! A program with requests: `busy THREADS PER_BURST PAUSE_US BURSTS READY`. Each thread makes that many
//! requests, two spans and an event each, and pauses, in a span, that many times; then it makes the file
//! READY and stays in a span.
#![forbid(unsafe_code)]

use std::sync::Barrier;
use std::time::Duration;
use std::{env, fs, thread};

use ringmark::{event, span};

fn request(number: u64) {
    let _request = span!("request", number = number);
    event!("accepted", number = number);
    let _query = span!("query", rows = number);
}

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let number = |at: usize| arguments[at].parse::<u64>().expect("a number");
    let (threads, per_burst, bursts) = (number(0), number(1), number(3));
    let pause = Duration::from_micros(number(2));
    let _session = ringmark::start_from_env();
    let done = Barrier::new(threads as usize + 1);
    thread::scope(|scope| {
        for worker in 0..threads {
            let named = thread::Builder::new().name(format!("worker-{worker}"));
            let work = || {
                for burst in 0..bursts {
                    let _burst = span!("burst", number = burst);
                    (0..per_burst).for_each(|n| request(burst * per_burst + n));
                    thread::sleep(pause);
                }
                done.wait();
                let _held = span!("held");
                thread::sleep(Duration::from_secs(600));
            };
            named.spawn_scoped(scope, work).expect("a thread");
        }
        done.wait();
        fs::write(&arguments[4], "").expect("a file");
    });
}
