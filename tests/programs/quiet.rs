//! A traced program that tells how quiet the event path is: `quiet HOW EVENTS`. Emits between two
//! `getsid` calls, made past the C library, and prints the allocations of that time.
//!
//! HOW: `events`; or, to see the test fail, `call` (a system call for each event) or `allocate`.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::hint::black_box;
use std::time::Duration;

use ringmark::{counter, event, flow, span};

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: everything is handed to the system's allocator as it comes.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller keeps the rules of the trait.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn marker() {
    // SAFETY: takes nothing, changes nothing.
    unsafe { libc::syscall(libc::SYS_getsid, 0) };
}

/// One record, of one of the kinds that a program has.
fn emit(seq: u64, text: &str, list: &[u8; 4]) {
    match seq % 6 {
        0 => event!("quiet.numbers", seq = seq, ratio = 0.5, signed = -1_i8),
        1 => event!("quiet.text", seq = seq, text = text, bytes = &list[..]),
        2 => event!("quiet.shown", seq = seq, debug = ?list, display = %seq),
        3 => drop(span!("quiet.span", seq = seq)),
        4 => counter!("quiet.counter", seq),
        _ => flow!("quiet.flow", seq, step = "one"),
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let how = arguments.next().expect("a way");
    let events: u64 = arguments
        .next()
        .and_then(|n| n.parse().ok())
        .expect("a number");
    ringmark::start_from_env();
    let attached = ringmark::attach_thread();
    // The helper thread refills the pool; the test looks at this process now.
    std::thread::sleep(Duration::from_millis(100));
    let before = ALLOCATIONS.get();
    marker();
    for seq in 0..events {
        emit(seq, "some text", &[1, 2, 3, 4]);
        match how.as_str() {
            "call" => marker(),
            "allocate" => drop(black_box(Box::new(seq))),
            _ => {}
        }
    }
    marker();
    println!("{attached} {}", ALLOCATIONS.get() - before);
}
