//! Ringmark, as `RINGMARK` says. `ringmark record` counts what came out.

use std::hint::black_box;

use ringmark::{event, span};
use ringmark_rivals::{Rival, serve};

struct Ours;

impl Rival for Ours {
    fn events(&mut self, n: u64) {
        for i in 0..n {
            event!("bench.event", value = black_box(i));
        }
    }

    fn spans(&mut self, n: u64) {
        for i in 0..n {
            let _span = span!("bench.span", value = black_box(i));
        }
    }
}

fn main() {
    let _session = ringmark::start_from_env();
    serve(&mut Ours);
}
