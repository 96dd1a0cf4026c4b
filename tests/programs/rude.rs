//! A traced program whose own code runs in the middle of tracing: `rude WHAT`. Prints how many events
//! of `rude.tick` it emitted whole.
//!
//! `panics`: values panic while they are shown, measured and encoded; the program catches that.
//! `allocator`: its allocator emits, also while a session starts, a thread attaches and ends.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;

use ringmark::{Encoder, Kind, Value, event};

static EMITS: AtomicBool = AtomicBool::new(false);
/// Times that the allocator came to emit.
static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static DEPTH: Cell<u64> = const { Cell::new(0) };
}

struct Emitting;

// SAFETY: everything is handed to the system's allocator as it comes.
unsafe impl GlobalAlloc for Emitting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if EMITS.load(Relaxed) {
            let depth = DEPTH.get();
            DEPTH.set(depth + 1);
            assert!(depth == 0, "an event allocated");
            event!("rude.alloc", bytes = layout.size());
            DEPTH.set(depth);
            ALLOCATIONS.fetch_add(1, Relaxed);
        }
        // SAFETY: the caller keeps the rules of the trait.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Emitting = Emitting;

/// Panics where it is told to: while it is shown, measured or encoded.
struct Bomb(u64);

impl fmt::Debug for Bomb {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        // One that nests, before it goes off.
        event!("rude.nested", seq = self.0);
        panic!("shown")
    }
}

impl fmt::Display for Bomb {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        panic!("shown")
    }
}

impl Value for Bomb {
    const KIND: Kind = Kind::Str;

    fn dynamic_bytes(&self) -> usize {
        assert!(self.0 != 0, "measured");
        64
    }

    fn encode(&self, to: &mut Encoder<'_, '_>, offset: usize) {
        to.dynamic(offset, &[0x55; 64]);
        event!("rude.nested", seq = self.0);
        panic!("encoded")
    }
}

fn panics() -> u64 {
    std::panic::set_hook(Box::new(|_| ()));
    let (mut caught, rounds) = (0, 5000);
    for seq in 0..rounds {
        let bomb = Bomb(seq % 2);
        let fuse: &dyn Fn() = match seq % 4 {
            0 => &|| event!("rude.bomb", before = seq, bomb = ?bomb),
            1 => &|| event!("rude.bomb", before = seq, bomb = %bomb),
            _ => &|| event!("rude.bomb", before = seq, bomb = &bomb, behind = seq),
        };
        caught += u64::from(catch_unwind(AssertUnwindSafe(fuse)).is_err());
        event!("rude.tick", seq = seq);
    }
    assert_eq!(caught, rounds, "a panic was swallowed");
    rounds
}

fn allocator() -> u64 {
    let rounds = 500;
    for seq in 0..rounds {
        let text = format!("{seq}");
        event!("rude.tick", seq = seq, text = &text[..], shown = ?text);
    }
    let threads = (0..20).map(|_| {
        thread::spawn(|| {
            let list: Vec<u64> = (0..100).collect();
            event!("rude.tick", seq = list.len());
        })
    });
    let threads: Vec<_> = threads.collect();
    let ended = threads.into_iter().map(|thread| thread.join().is_ok());
    rounds + ended.map(u64::from).sum::<u64>()
}

fn main() {
    let what = std::env::args().nth(1).expect("what to do");
    EMITS.store(what == "allocator", Relaxed);
    ringmark::start_from_env();
    let ticks = match what.as_str() {
        "panics" => panics(),
        _ => allocator(),
    };
    EMITS.store(false, Relaxed);
    println!("{ticks} {}", ALLOCATIONS.load(Relaxed));
}
