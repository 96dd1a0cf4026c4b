//! A traced program of many threads: `threads serial COUNT EVENTS` runs them one after the other,
//! `threads batches COUNT EVENTS` a hundred at a time, `threads parallel COUNT EVENTS` all at once.
//! `threads first COUNT EVENTS` runs them one after the other, and prints the most page faults of a thread
//! in its first event. The others print `EARLY LATE FILE_EARLY FILE_LATE`: resident pages, and blocks of the ring file, after a
//! tenth of the threads and at the end.

use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::sync::Barrier;
use std::thread::{self, ScopedJoinHandle};

use ringmark::{Session, event};

/// Threads at a time.
const BATCH: u64 = 100;

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

/// Resident pages, and blocks that the ring file takes.
fn memory() -> [u64; 2] {
    let session = Session::current().expect("a session");
    let about = std::fs::metadata(session.path()).expect("a ring file");
    [resident_pages(), about.blocks()]
}

fn emit(thread: u64, events: Range<u64>) {
    for seq in events {
        event!("threads.tick", thread = thread, seq = seq);
    }
}

fn serial(count: u64, events: u64) -> [u64; 2] {
    let mut early = memory();
    for number in 0..count {
        thread::spawn(move || emit(number, 0..events))
            .join()
            .expect("a thread");
        if number == count / 10 {
            early = memory();
        }
    }
    early
}

/// Waits for their very end; a scope alone waits for the end of their functions.
fn join(threads: Vec<ScopedJoinHandle<'_, ()>>) {
    for thread in threads {
        thread.join().expect("a thread");
    }
}

fn batches(count: u64, events: u64) -> [u64; 2] {
    let mut early = memory();
    for batch in 0..count / BATCH {
        thread::scope(|scope| {
            let number = |number| batch * BATCH + number;
            let start = |n| scope.spawn(move || emit(number(n), 0..events));
            join((0..BATCH).map(start).collect());
        });
        if batch == count / BATCH / 10 {
            early = memory();
        }
    }
    early
}

fn parallel(count: u64, events: u64) {
    let barrier = Barrier::new(count as usize);
    thread::scope(|scope| {
        let start = |number| {
            let barrier = &barrier;
            let start = thread::Builder::new().stack_size(64 << 10);
            let body = move || {
                emit(number, 0..events / 2);
                barrier.wait();
                emit(number, events / 2..events);
            };
            start.spawn_scoped(scope, body).expect("a thread")
        };
        join((0..count).map(start).collect());
    });
}

/// Page faults of the calling thread so far.
fn faults() -> u64 {
    let stat = std::fs::read_to_string("/proc/thread-self/stat").expect("stat");
    let (_, fields) = stat.rsplit_once(") ").expect("a name");
    let mut fields = fields.split(' ');
    // State and seven more, then minor ones, those of children, major ones.
    let mut field = |skipped| {
        fields
            .nth(skipped)
            .and_then(|field| field.parse::<u64>().ok())
    };
    let (minor, major) = (field(7), field(1));
    minor.expect("minor faults") + major.expect("major faults")
}

fn most_faults(count: u64, events: u64) -> u64 {
    let in_first = move |number| {
        let before = faults();
        emit(number, 0..1);
        let after = faults();
        emit(number, 1..events);
        after - before
    };
    let run = |number| thread::spawn(move || in_first(number)).join();
    let each = (0..count).map(|number| run(number).expect("a thread"));
    each.max().expect("threads")
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
    if how == "first" {
        println!("{}", most_faults(count, events));
        return;
    }
    let early = match how.as_str() {
        "serial" => serial(count, events),
        "batches" => batches(count, events),
        _ => {
            parallel(count, events);
            memory()
        }
    };
    let late = memory();
    println!("{} {} {} {}", early[0], late[0], early[1], late[1]);
}
