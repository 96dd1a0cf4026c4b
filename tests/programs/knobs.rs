//! A traced program with events of every level, to switch on and off: `knobs ROUNDS PAUSE_US [FILE]`.
//! As soon as FILE is there, spans of `tracing` join in.

use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use ringmark::event;

fn one_round(round: u64) {
    event!(level: Error, target: "knobs::db", "knobs.error", round = round);
    event!(level: Warn, target: "knobs::db", "knobs.warn", round = round);
    event!(level: Info, target: "knobs::net", "knobs.info", round = round);
    event!(level: Debug, category: "noise", target: "knobs::net", "knobs.debug", round = round);
    event!(level: Trace, category: "noise", target: "knobs::net", "knobs.trace", round = round);
}

/// An event type that is made at run time, by the bridge from `tracing`.
fn join_in(round: u64) {
    drop(tracing::info_span!(target: "knobs::late", "knobs.late", round));
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut number = || {
        arguments
            .next()
            .and_then(|n| n.parse().ok())
            .expect("a number")
    };
    let (rounds, pause): (u64, u64) = (number(), number());
    let file = arguments.next().map(PathBuf::from);
    ringmark::start_from_env();
    if file.is_some() {
        let _ = ringmark::tracing::init();
    }
    for round in 0..rounds {
        one_round(round);
        if file.as_ref().is_some_and(|file| file.exists()) {
            join_in(round);
        }
        if pause > 0 {
            thread::sleep(Duration::from_micros(pause));
        }
    }
}
