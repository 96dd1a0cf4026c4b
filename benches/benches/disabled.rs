//! P5: what an event and a span cost that are off, beside an empty loop.

use std::hint::black_box;

use ringmark::{event, span};
use ringmark_benches::{contestant, finish, pin, race};

fn main() {
    pin(1);
    let empty = contestant("empty loop", |n| {
        for i in 0..n {
            black_box(i);
        }
    });
    let events = contestant("event, off", |n| {
        for i in 0..n {
            event!("bench.off", value = black_box(i));
            black_box(i);
        }
    });
    let spans = contestant("span, off", |n| {
        for i in 0..n {
            let _span = span!("bench.off.span", value = black_box(i));
            black_box(i);
        }
    });
    let mut results = race("no session", 10_000, vec![empty, events, spans]);
    let floor = results.median("empty loop");
    let (event, span) = (results.median("event, off"), results.median("span, off"));
    results.bar("P5", "event off - empty loop, ns", event - floor, 0.3);
    results.bar("P5", "span off - empty loop, ns", span - floor, 0.6);
    finish(results.missed())
}
