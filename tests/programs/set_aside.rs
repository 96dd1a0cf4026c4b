//! A traced program whose threads hold reservations for long, leave them behind, end them in another
//! order than they began, or get no ring:
//! `set_aside HOW COUNT`. Prints how many events were emitted.

use std::mem;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use ringmark::{Event, event};

#[derive(Event)]
#[repr(C)]
struct Outer {
    value: u64,
}

fn emit(count: u64) -> u64 {
    for seq in 0..count {
        event!("aside.inner", seq = seq);
    }
    count
}

/// As a handler does that is much busier than the context that it interrupts: most of what is
/// emitted inside the reservation finds its page full.
fn held(rounds: u64) -> u64 {
    let round = |value| {
        let outer = ringmark::reserve::<Outer>();
        let inner = emit(3000);
        if let Some(outer) = outer {
            outer.write(&Outer { value }).commit();
        }
        inner + 1
    };
    (0..rounds).map(round).sum()
}

/// Thread after thread leaves a reservation behind and so needs a second ring.
fn left(threads: u64) -> u64 {
    let one = || {
        mem::forget(ringmark::reserve::<Outer>());
        emit(3000) + 1
    };
    (0..threads)
        .map(|_| thread::spawn(one).join().expect("a thread"))
        .sum()
}

#[derive(Event)]
#[repr(C)]
struct Late {
    value: u64,
    rest: [u64; 4],
}

/// Two reservations, of which the first one ends first; the second one ends a lap of the ring later.
fn crossed(rounds: u64) -> u64 {
    let round = |value| {
        let first = ringmark::reserve::<Outer>();
        let second = ringmark::reserve::<Late>();
        if let Some(first) = first {
            first.write(&Outer { value }).commit();
        }
        let inner = emit(500);
        if let Some(second) = second {
            let rest = [value; 4];
            second.write(&Late { value, rest }).commit();
        }
        for seq in 0..300 {
            event!("aside.after", seq = seq);
        }
        inner + 302
    };
    event!("aside.after", seq = 0);
    1 + (0..rounds).map(round).sum::<u64>()
}

/// A thread with a ring, until it is told to go.
fn hog() -> Option<(mpsc::Sender<()>, JoinHandle<()>)> {
    let (go, told) = mpsc::channel::<()>();
    let (says, has_ring) = mpsc::channel();
    let thread = thread::spawn(move || {
        let _ = says.send(ringmark::attach_thread());
        let _ = told.recv();
    });
    if has_ring.recv() == Ok(true) {
        return Some((go, thread));
    }
    drop(go);
    thread.join().expect("a thread");
    None
}

/// All rings are taken; a thread emits in vain, then a ring becomes free.
fn none(count: u64) -> u64 {
    let mut hogs = Vec::new();
    while let Some(one) = hog() {
        hogs.push(one);
    }
    let (go, told) = mpsc::channel::<()>();
    let (says, done) = mpsc::channel();
    let late = thread::spawn(move || {
        let in_vain = emit(count);
        let _ = says.send(());
        let _ = told.recv();
        in_vain + emit(10)
    });
    let _ = done.recv();
    let (hog, thread) = hogs.pop().expect("a thread with a ring");
    drop(hog);
    thread.join().expect("a thread");
    drop(go);
    late.join().expect("a thread")
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let how = arguments.next().expect("a way");
    let count = arguments.next().and_then(|n| n.parse().ok());
    let count = count.expect("a number");
    ringmark::start_from_env();
    let emitted = match how.as_str() {
        "held" => held(count),
        "left" => left(count),
        "crossed" => crossed(count),
        "none" => none(count),
        _ => panic!("unknown way {how}"),
    };
    println!("{emitted}");
}
