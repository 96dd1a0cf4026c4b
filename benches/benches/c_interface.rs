//! P6: an event inline in C, beside Rust's, beside calls into the shared library, alone and under a
//! load of requests over the loopback interface.
//!
//! Rust and C run in processes of their own; windows of all bodies are interleaved, so that one run
//! compares them under the same load of the machine.

use std::hint::black_box;
use std::process::Command;
use std::time::Instant;

use ringmark::client::{Now, reserve_words};
use ringmark_benches::part::{Part, build_c};
use ringmark_benches::{child_argument, finish, percentiles, pin, print_bar};
use ringmark_format::TypeId;
use ringmark_ring::Reservation;

const WINDOWS: usize = 400;
const PER_WINDOW: u64 = 1000;

/// The process that runs it, and its name there.
const BODIES: [(&str, &str); 9] = [
    ("rust", "clock"),
    ("rust", "inline"),
    ("rust", "call"),
    ("c", "clock"),
    ("c", "inline"),
    ("c", "call"),
    ("c", "load without"),
    ("c", "load inline"),
    ("c", "load call"),
];

/// One of the types that the format keeps for programs; records of it are shown raw.
const SOME_TYPE: TypeId = TypeId(16);

#[inline(never)]
fn reserve() -> Option<Reservation<'static>> {
    reserve_words(SOME_TYPE, 1, Now::Clock)
}

#[inline(never)]
fn commit(reservation: Reservation<'static>) {
    reservation.commit();
}

fn rust_window(body: &str) -> f64 {
    let start = Instant::now();
    match body {
        "inline" => {
            for i in 0..PER_WINDOW {
                ringmark::event!("bench.event", value = black_box(i));
            }
        }
        "call" => {
            for i in 0..PER_WINDOW {
                if let Some(mut reservation) = reserve() {
                    reservation.set_word(0, black_box(i));
                    commit(reservation);
                }
            }
        }
        _ => {
            for _ in 0..PER_WINDOW {
                black_box(ringmark_ring::clock::tsc());
            }
        }
    }
    start.elapsed().as_nanos() as f64 / PER_WINDOW as f64
}

fn serve() {
    let _ = ringmark::start_from_env();
    for line in std::io::stdin().lines().map_while(Result::ok) {
        println!("{}", rust_window(&line));
    }
}

fn main() {
    if child_argument().is_some() {
        return serve();
    }
    let program = build_c();
    // One processor for all: requests and responses take turns on it, too.
    pin(1);
    let own = std::env::current_exe().expect("own name");
    let mut parts = [
        Part::start("rust", "", Command::new(own).arg("rust")),
        Part::start("c", "", &mut Command::new(program)),
    ];
    let mut windows = vec![Vec::with_capacity(WINDOWS); BODIES.len()];
    for round in 0..WINDOWS + 5 {
        for (index, (part, body)) in BODIES.iter().enumerate() {
            let part = parts
                .iter_mut()
                .find(|p| p.name() == *part)
                .expect("listed");
            let ns = part.ask(body);
            if round >= 5 {
                windows[index].push(ns);
            }
        }
    }
    let mut medians = Vec::new();
    for ((part, name), all) in BODIES.iter().zip(windows) {
        let [p10, median, p90] = percentiles(all);
        println!("{part:5} {name:14} p10 {p10:8.2} median {median:8.2} p90 {p90:8.2} ns");
        medians.push(median);
    }
    parts.into_iter().for_each(Part::end);
    report(&medians)
}

fn report(medians: &[f64]) -> ! {
    let [
        rust_clock,
        rust,
        rust_call,
        clock,
        inline,
        call,
        bare,
        load,
        load_call,
    ] = medians
    else {
        unreachable!("one for each body");
    };
    let saved = |less: f64, more: f64| (1.0 - less / more) * 100.0;
    println!(
        "L3   Rust, inline beside calls: {:.1} % saved",
        saved(*rust, *rust_call)
    );
    println!(
        "L3   C, inline beside calls into the shared library: {:.1} % saved",
        saved(*inline, *call)
    );
    println!(
        "L3   C, requests over loopback, 10 events each: {:.2} % saved; events cost {:.2} % inline, {:.2} % by calls",
        saved(*load, *load_call),
        (load / bare - 1.0) * 100.0,
        (load_call / bare - 1.0) * 100.0
    );
    println!("     Rust event / rdtsc: {:.3}", rust / rust_clock);
    println!("     C event / Rust event: {:.3}", inline / rust);
    let ratio = inline / clock;
    print_bar(
        "P6",
        "C event inline, one u64 / rdtsc",
        ratio,
        1.15,
        ratio <= 1.15,
    );
    finish(ratio > 1.15)
}
