//! Rough cost of one event beside the bare clock. `benches/` measures properly.
use std::hint::black_box;
use std::time::Instant;

use ringmark::{Mode, Session, event, span};

fn time(name: &str, n: u32, mut body: impl FnMut(u64)) {
    let mut all: Vec<f64> = (0..300)
        .map(|_| {
            let start = Instant::now();
            for i in 0..n {
                body(u64::from(i));
            }
            start.elapsed().as_nanos() as f64 / f64::from(n)
        })
        .collect();
    all.sort_by(f64::total_cmp);
    println!(
        "{name:20} p10 {:6.2} median {:6.2} p90 {:6.2} ns",
        all[30], all[150], all[270]
    );
}

fn main() {
    let clock = match std::env::args().nth(1).as_deref() {
        Some("none") => ringmark::Clock::None,
        Some("coarse") => ringmark::Clock::Coarse,
        Some("monotonic") => ringmark::Clock::Monotonic,
        _ => ringmark::Clock::Tsc,
    };
    time("off", 1000, |i| event!("cost.event", value = black_box(i)));
    let session = Session::builder()
        .mode(Mode::Overwrite)
        .clock(clock)
        .start()
        .unwrap();
    for _ in 0..2 {
        let start = ringmark::ticks();
        time("rdtsc", 1000, |_| {
            black_box(ringmark::ticks());
        });
        time("event u64", 1000, |i| {
            event!("cost.event", value = black_box(i))
        });
        time("span u64", 1000, |i| {
            drop(span!("cost.span", value = black_box(i)))
        });
        time("event_at u64", 1000, |i| {
            ringmark::event_at!(black_box(start), "cost.at", value = black_box(i))
        });
        time("event str", 1000, |i| {
            event!("cost.str", text = black_box("hello world"), n = i)
        });
    }
    println!("{:?} {:?}", session, session.clock());
}
