//! Spans of Rust, for a test that stops the program at each instruction:
//! `span_steps FORM DEPTH HANDLER LEDGER`. `tests/programs/c/span_steps.c` is the same in C.
//!
//! FORM: `begin`, `claim` (each time in a new thread), `ring` (the thread changes its ring). DEPTH spans
//! are open before. A handler nests, or ends its spans in the wrong order (`crosses`). The ledger, a
//! file, says for each span what the program knows of it; the program goes on until word 511 is set.

#[path = "stepped/child.rs"]
mod child;

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed, Ordering::SeqCst, compiler_fence};
use std::thread;

use child::{be_traced, handle, share, stop};
use ringmark::{Event, Reserved, SpanGuard, reserve, span};

/// In the highest byte of the number of a span.
const MARK: u64 = 0xA5 << 56;
/// Words of the ledger before its entries, and of each of these: state, number in the frame, number in
/// the record.
const HEADER: usize = 4;
const ENTRY: usize = 3;
/// Entries after those of the spans that are open before.
const A: usize = 64;
const B: usize = 65;
const C: usize = 66;
const D: usize = 67;
const O: usize = 69;
/// The word by which the test ends the program.
const STOP: usize = 511;

/// What the program knows of a span, by the numbers that the test has.
#[derive(Clone, Copy)]
enum Is {
    None,
    Begins,
    Open,
    Ends,
    Ended,
}

#[derive(Event)]
#[repr(C)]
#[event(name = "step.filler")]
struct Filler {
    rest: [u64; 2],
}

type Span = SpanGuard<(u64,)>;

static LEDGER: OnceLock<&'static [AtomicU64]> = OnceLock::new();
static NEXT: AtomicU64 = AtomicU64::new(0);
static CROSSES: OnceLock<bool> = OnceLock::new();

fn word(at: usize) -> &'static AtomicU64 {
    &LEDGER.get().expect("a ledger")[at]
}

fn say(span: usize, is: Is) {
    compiler_fence(SeqCst);
    word(HEADER + ENTRY * span).store(is as u64, Relaxed);
    compiler_fence(SeqCst);
}

/// A new span takes the entry of one that has ended.
#[inline(always)]
fn begin(entry: usize) -> Span {
    let id = MARK | NEXT.fetch_add(1, Relaxed);
    say(entry, Is::None);
    for number in 1..ENTRY {
        word(HEADER + ENTRY * entry + number).store(id, Relaxed);
    }
    say(entry, Is::Begins);
    let span = span!("step.span", id = id);
    say(entry, Is::Open);
    span
}

#[inline(always)]
fn end(entry: usize, span: Span) {
    say(entry, Is::Ends);
    drop(span);
    say(entry, Is::Ended);
}

/// Two spans, one in the other.
#[inline(never)]
fn nested(outer: usize, inner: usize) {
    let one = begin(outer);
    let other = begin(inner);
    end(inner, other);
    end(outer, one);
}

/// The lower one ends first.
#[inline(never)]
fn crossed(outer: usize, inner: usize) {
    let one = begin(outer);
    let other = begin(inner);
    end(outer, one);
    end(inner, other);
}

extern "C" fn on_signal(_: libc::c_int) {
    word(1).store(1, Relaxed);
    match CROSSES.get() {
        Some(true) => crossed(C, D),
        _ => nested(C, D),
    }
    word(1).store(0, Relaxed);
}

fn a_round() {
    nested(A, B);
    crossed(A, B);
}

/// A page with an open reservation is almost full: the thread is near a change of its ring, which comes with the
/// first record that has no room there.
fn near_a_change_of_ring() -> Option<Reserved<Filler>> {
    let held = reserve::<Filler>();
    for _ in 0..140 {
        if let Some(reserved) = reserve::<Filler>() {
            reserved.cancel();
        }
    }
    held
}

fn change_ring(held: Option<Reserved<Filler>>) {
    let around = begin(O);
    (0..10).for_each(|_| nested(A, B));
    drop(held);
    nested(A, B);
    end(O, around);
}

fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [form, depth, handler, ledger] = &arguments[..] else {
        panic!("span_steps FORM DEPTH HANDLER LEDGER");
    };
    let _session = ringmark::start_from_env();
    assert!(LEDGER.set(share(ledger)).is_ok());
    assert!(CROSSES.set(handler == "crosses").is_ok());
    let depth = depth.parse().expect("a number");
    // A handler's span in a thread that is getting its ring stands nowhere: its record is counted as lost.
    if form != "claim" {
        end(A, begin(A));
    }
    let _below: Vec<_> = (0..depth).map(begin).collect();
    handle(libc::SIGUSR1, on_signal);
    let held = (form == "ring").then(near_a_change_of_ring);
    be_traced();
    stop();
    if let Some(held) = held {
        change_ring(held);
        return stop();
    }
    loop {
        match form.as_str() {
            "claim" => thread::spawn(a_round).join().expect("a thread"),
            _ => a_round(),
        }
        if word(STOP).load(Relaxed) != 0 {
            break;
        }
    }
    stop();
}
