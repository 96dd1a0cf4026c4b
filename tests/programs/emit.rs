//! A traced program whose events are numbered: `emit THREADS EVENTS [KEY=VALUE…]`; with 0 threads
//! the main thread emits.
//!
//! `burst=N` and `pause=US`: pauses after every N events. `committed=FILE`: keeps each thread's
//! ledger in a file of u64s: how many calls have returned, and 256 words on how many have begun.
//! `gate=N`: each thread waits behind its first N events until word 510 of that file allows more in
//! all; once word 511 is set, there are no more events. `shape=one`: one number per event instead of two.
//! `bulk=BYTES`: that many more bytes in each. `slow=SPINS`: takes that long between reserving a
//! record and committing it. `hold=MS`: lives on for that time after the last event. `for=MS`: no
//! more events after that time.

use std::fs::OpenOptions;
use std::hint::black_box;
use std::os::fd::AsRawFd;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed, Ordering::Release};
use std::time::{Duration, Instant};
use std::{ptr, slice, thread};

use ringmark::{Event, event};

/// Words of the shared page by which the test says what to do.
const ALLOWED: usize = 510;
const STOP: usize = 511;

/// A page that is shared with the test: the kernel keeps it when this process is killed.
fn shared_page(path: &str) -> &'static [AtomicU64] {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .open(path)
        .expect("the shared page");
    // SAFETY: a new shared mapping, no address given, one page of a file that has one.
    let page = unsafe {
        libc::mmap(
            ptr::null_mut(),
            4096,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED,
            file.as_raw_fd(),
            0,
        )
    };
    assert_ne!(page, libc::MAP_FAILED);
    // SAFETY: 512 aligned words, mapped for ever; the test writes the last two alone.
    unsafe { slice::from_raw_parts(page.cast(), 512) }
}

struct Options {
    threads: u64,
    events: u64,
    burst: u64,
    pause: Duration,
    gate: u64,
    hold: Duration,
    end: Option<Instant>,
    committed: Option<&'static [AtomicU64]>,
    is_one: bool,
    bulk: Vec<u8>,
    slow: u64,
}

/// An event that is written in two phases.
#[derive(Event)]
#[repr(C)]
#[event(name = "emit.slow")]
struct Slow {
    thread: u64,
    seq: u64,
    /// All bits of `seq` turned over.
    check: u64,
}

fn options() -> Options {
    let mut arguments = std::env::args().skip(1);
    let mut number = || {
        arguments
            .next()
            .and_then(|text| text.parse().ok())
            .expect("a number")
    };
    let mut options = Options {
        threads: number(),
        events: number(),
        burst: u64::MAX,
        pause: Duration::ZERO,
        gate: u64::MAX,
        hold: Duration::ZERO,
        end: None,
        committed: None,
        is_one: false,
        bulk: Vec::new(),
        slow: 0,
    };
    for argument in arguments {
        let (key, value) = argument.split_once('=').expect("KEY=VALUE");
        let number = || value.parse().expect("a number");
        match key {
            "burst" => options.burst = number(),
            "pause" => options.pause = Duration::from_micros(number()),
            "gate" => options.gate = number(),
            "for" => options.end = Some(Instant::now() + Duration::from_millis(number())),
            "hold" => options.hold = Duration::from_millis(number()),
            "committed" => options.committed = Some(shared_page(value)),
            "bulk" => options.bulk = pattern(number() as usize),
            "slow" => options.slow = number(),
            "shape" => options.is_one = value == "one",
            _ => panic!("unknown option {key}"),
        }
    }
    options
}

/// Bytes of which any `bytes` in a row, from the first 256 on, tell where they start.
fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes + 256).map(|n| n as u8).collect()
}

fn emit(options: &Options, thread: u64, seq: u64) {
    if options.is_one {
        event!("emit.one", seq = seq);
    } else if let Some(bytes) = options.bulk.len().checked_sub(256) {
        let from = seq as usize % 256;
        let bulk = &options.bulk[from..from + bytes];
        event!("emit.bulk", thread = thread, seq = seq, bulk = bulk);
    } else if options.slow > 0 {
        emit_slowly(options.slow, thread, seq);
    } else {
        event!("emit.tick", thread = thread, seq = seq);
    }
}

fn emit_slowly(spins: u64, thread: u64, seq: u64) {
    if let Some(place) = ringmark::reserve::<Slow>() {
        (0..spins).for_each(|n| _ = black_box(n));
        let check = !seq;
        place.write(&Slow { thread, seq, check }).commit();
    }
}

impl Options {
    /// What the test has written there.
    fn told(&self, word: usize) -> u64 {
        self.committed.map_or(0, |page| page[word].load(Relaxed))
    }

    fn is_over(&self) -> bool {
        self.told(STOP) != 0 || self.end.is_some_and(|end| Instant::now() >= end)
    }

    fn wait_at_the_gate(&self, seq: u64) {
        while seq >= self.gate.max(self.told(ALLOWED)) && !self.is_over() {
            thread::sleep(Duration::from_millis(1));
        }
    }
}

fn work(options: &Options, thread: u64) {
    let ledger = options.committed.map(|page| page.split_at(256));
    let ledger =
        ledger.map(|(returned, begun)| (&returned[thread as usize], &begun[thread as usize]));
    for seq in 0..options.events {
        if seq >= options.gate {
            options.wait_at_the_gate(seq);
        }
        if let Some((_, begun)) = ledger {
            begun.store(seq + 1, Release);
        }
        emit(options, thread, seq);
        if let Some((returned, _)) = ledger {
            returned.store(seq + 1, Release);
        }
        if seq % 256 == 0 && options.is_over() {
            break;
        }
        if (seq + 1).is_multiple_of(options.burst) {
            thread::sleep(options.pause);
        }
    }
}

fn main() {
    let options = options();
    ringmark::start_from_env();
    if options.threads == 0 {
        work(&options, 0);
    }
    // All at once, and no thread leaves before the last has emitted: no ring is used twice.
    let barrier = Barrier::new(options.threads as usize);
    thread::scope(|scope| {
        for thread in 0..options.threads {
            let (options, barrier) = (&options, &barrier);
            scope.spawn(move || {
                barrier.wait();
                work(options, thread);
                barrier.wait();
            });
        }
    });
    thread::sleep(options.hold);
}
