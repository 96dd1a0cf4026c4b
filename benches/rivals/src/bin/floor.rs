//! The bare clock.

use std::hint::black_box;

use ringmark_rivals::{Rival, serve};

struct Clock;

impl Rival for Clock {
    fn events(&mut self, n: u64) {
        for _ in 0..n {
            black_box(ringmark_ring::clock::tsc());
        }
    }

    fn spans(&mut self, n: u64) {
        self.events(2 * n);
    }
}

fn main() {
    serve(&mut Clock);
}
