//! A traced program of many threads: `threads serial COUNT EVENTS` runs them one after the other,
//! `threads parallel COUNT EVENTS` all at once. Prints `PAGES_EARLY PAGES_LATE`: resident pages
//! after a tenth of the threads and at the end.

use std::ops::Range;
use std::sync::Barrier;
use std::thread;

use ringmark::event;

fn resident_pages() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").expect("statm");
    let mut fields = text.split(' ');
    // Size, resident, shared: what is resident and not shared.
    let mut field = || {
        fields
            .next()
            .and_then(|f| f.parse::<u64>().ok())
            .expect("statm")
    };
    let (_, resident, shared) = (field(), field(), field());
    resident - shared
}

fn emit(thread: u64, events: Range<u64>) {
    for seq in events {
        event!("threads.tick", thread = thread, seq = seq);
    }
}

fn serial(count: u64, events: u64) -> u64 {
    let mut early = 0;
    for number in 0..count {
        thread::spawn(move || emit(number, 0..events))
            .join()
            .expect("a thread");
        if number == count / 10 {
            early = resident_pages();
        }
    }
    early
}

fn parallel(count: u64, events: u64) {
    let barrier = Barrier::new(count as usize);
    thread::scope(|scope| {
        for number in 0..count {
            let barrier = &barrier;
            let start = thread::Builder::new().stack_size(64 << 10);
            let body = move || {
                emit(number, 0..events / 2);
                barrier.wait();
                emit(number, events / 2..events);
            };
            start.spawn_scoped(scope, body).expect("a thread");
        }
    });
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let how = arguments.next().expect("serial or parallel");
    let mut number = || {
        arguments
            .next()
            .and_then(|text| text.parse().ok())
            .expect("a number")
    };
    let (count, events) = (number(), number());
    ringmark::start_from_env();
    let early = match how.as_str() {
        "serial" => serial(count, events),
        _ => {
            parallel(count, events);
            0
        }
    };
    println!("{early} {}", resident_pages());
}
