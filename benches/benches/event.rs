//! P1, P2, P3: what one event costs beside the clock read; spans; other clocks; a lock-free queue; what
//! a span costs because it is shown while it is open.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use ringmark::{Clock, Mode, Session, event, event_at, span};
use ringmark_benches::{Contestant, child_argument, contestant, finish, in_child, pin, race};
use ringmark_ring::RingFile;
use ringmark_ring::session_dir::{self, OpenFor};

const WINDOW: u64 = 1000;

fn main() {
    match child_argument().as_deref() {
        None => {
            // All of them, also after a missed bar.
            let met = [
                "discard",
                "overwrite",
                "none",
                "coarse",
                "stack",
                "stack-work",
            ]
            .map(in_child);
            finish(met.contains(&false))
        }
        Some("discard") => with_counter(Mode::Discard),
        Some("overwrite") => with_counter(Mode::Overwrite),
        Some("stack") => stack_without_clock(),
        Some("stack-work") => stack_beside_work(),
        Some("none") => without_counter(Clock::None, 2.5),
        Some(_) => without_counter(Clock::Coarse, 5.0),
    }
}

fn start(mode: Mode, clock: Clock) -> RingFile {
    pin(1);
    let session = Session::builder()
        .mode(mode)
        .clock(clock)
        .start()
        .expect("a session");
    let file = session_dir::open(session.path(), OpenFor::Writing).expect("the ring file");
    RingFile::consume(file, session.path()).expect("a ring file")
}

/// Releases everything: what a reader would have done between two windows.
fn release_all(ring: &RingFile) {
    for slot in (0..ring.slots_used()).filter_map(|index| ring.slot(index)) {
        slot.release(slot.produced().saturating_sub(1));
    }
}

fn emit<'a>(ring: &'a RingFile) -> Contestant<'a> {
    contestant("event, one u64", |n| {
        for i in 0..n {
            event!("bench.event", value = black_box(i));
        }
    })
    .between(|| release_all(ring))
}

fn rdtsc<'a>() -> Contestant<'a> {
    contestant("rdtsc", |n| {
        for _ in 0..n {
            black_box(ringmark_ring::clock::tsc());
        }
    })
}

fn with_counter(mode: Mode) -> ! {
    let ring = start(mode, Clock::Tsc);
    let spans = contestant("span, one u64", |n| {
        for i in 0..n {
            let _span = span!("bench.span", value = black_box(i));
        }
    });
    let text = contestant("event, 11-byte str and u64", |n| {
        for i in 0..n {
            event!("bench.text", text = black_box("hello world"), value = i);
        }
    });
    let all = vec![
        rdtsc(),
        emit(&ring),
        spans.between(|| release_all(&ring)),
        text.between(|| release_all(&ring)),
    ];
    let mut results = race(&format!("{} mode, clock tsc", mode.name()), WINDOW, all);
    results.ratio("P1", "event, one u64", "rdtsc", 1.15);
    results.ratio("P3", "span, one u64", "rdtsc", 2.3);
    finish(results.missed())
}

fn without_counter(clock: Clock, most_ns: f64) -> ! {
    let ring = start(Mode::Overwrite, clock);
    let (mut push, mut pop) = rtrb::RingBuffer::<[u64; 2]>::new(1 << 15);
    let held = contestant("event_at, one u64", |n| {
        let now = ringmark::ticks();
        for i in 0..n {
            event_at!(black_box(now), "bench.at", value = black_box(i));
        }
    });
    let queue = contestant("rtrb push of 16 bytes", |n| {
        for i in 0..n {
            let _ = push.push(black_box([i, i]));
        }
    })
    .between(|| while pop.pop().is_ok() {});
    let empty = contestant("empty loop", |n| {
        for i in 0..n {
            black_box(i);
        }
    });
    let all = vec![empty, rdtsc(), emit(&ring), held, queue];
    let mut results = race(
        &format!("overwrite mode, clock {}", clock.name()),
        WINDOW,
        all,
    );
    let (event, at) = (
        results.median("event, one u64"),
        results.median("event_at, one u64"),
    );
    results.bar(
        "P2",
        &format!("event, clock {}, ns", clock.name()),
        event,
        most_ns,
    );
    results.bar("P2", "event_at, ns", at, 2.5);
    if clock == Clock::None {
        results.ratio("P2", "event, one u64", "rtrb push of 16 bytes", 2.2);
    }
    finish(results.missed())
}

/// What the control does that must be seen: a bus lock.
static LOCKED: AtomicU64 = AtomicU64::new(0);

/// About 300 instructions, each of which waits for one before it.
#[inline(always)]
fn work(mut x: u64) -> u64 {
    for _ in 0..33 {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
    }
    x
}

/// What the stack of open spans costs where nothing hides it: the clock is a constant. The same record,
/// made by an event as a span was made before there was a stack, has none; the control has one bus lock
/// more.
fn stack_without_clock() -> ! {
    let ring = start(Mode::Overwrite, Clock::None);
    let without = contestant("record of a span, no stack", |n| {
        for i in 0..n {
            let (v, since) = (black_box(i), ringmark::ticks());
            let now = ringmark::ticks();
            event_at!(
                now,
                "bench.bare",
                took = now - since,
                a = v,
                b = v,
                c = v,
                d = v
            );
        }
    });
    let with = contestant("span of four u64", |n| {
        for i in 0..n {
            let v = black_box(i);
            let _span = span!("bench.open", a = v, b = v, c = v, d = v);
        }
    });
    let control = contestant("no stack, one lock add", |n| {
        for i in 0..n {
            LOCKED.fetch_add(1, Relaxed);
            let (v, since) = (black_box(i), ringmark::ticks());
            let now = ringmark::ticks();
            event_at!(
                now,
                "bench.lock",
                took = now - since,
                a = v,
                b = v,
                c = v,
                d = v
            );
        }
    });
    let all = [without, with, control].map(|one| one.between(|| release_all(&ring)));
    stack_bars("no clock", "no stack, one lock add", all.into());
}

/// The same around work, with two clock readings, as in a busy program. Work hides one bus lock; the
/// control has two, where a span begins and ends.
fn stack_beside_work() -> ! {
    let ring = start(Mode::Overwrite, Clock::Tsc);
    let without = contestant("record of a span, no stack", |n| {
        let mut x = 1;
        for i in 0..n {
            let (v, since) = (black_box(i), ringmark::ticks());
            x = work(x);
            let now = ringmark::ticks();
            event_at!(
                now,
                "bench.bare",
                took = now - since,
                a = v,
                b = v,
                c = v,
                d = v
            );
        }
        black_box(x);
    });
    let with = contestant("span of four u64", |n| {
        let mut x = 1;
        for i in 0..n {
            let v = black_box(i);
            let _span = span!("bench.open", a = v, b = v, c = v, d = v);
            x = work(x);
        }
        black_box(x);
    });
    let control = contestant("no stack, two lock adds", |n| {
        let mut x = 1;
        for i in 0..n {
            let (v, since) = (black_box(i), ringmark::ticks());
            x = work(x ^ LOCKED.fetch_add(x, Relaxed));
            x ^= LOCKED.fetch_add(x, Relaxed);
            let now = ringmark::ticks();
            event_at!(
                now,
                "bench.lock",
                took = now - since,
                a = v,
                b = v,
                c = v,
                d = v
            );
        }
        black_box(x);
    });
    let all = [without, with, control].map(|one| one.between(|| release_all(&ring)));
    stack_bars(
        "300 instructions of work",
        "no stack, two lock adds",
        all.into(),
    );
}

/// The bar is on the difference; that it sees a bus lock is a bar as well.
fn stack_bars(title: &str, locked: &str, all: Vec<Contestant<'_>>) -> ! {
    let mut results = race(&format!("open spans, {title}"), WINDOW, all);
    let [without, with, control] =
        ["record of a span, no stack", "span of four u64", locked].map(|name| results.median(name));
    results.bar("P3", &format!("stack, {title}, ns"), with - without, 5.0);
    results.bar(
        "P3",
        &format!("control, {title}: bare / locked"),
        without / control,
        0.995,
    );
    finish(results.missed())
}
