//! Tracy without a profiler that takes what is recorded: it keeps all in memory. A plotted number
//! is its smallest event.

use std::hint::black_box;

use ringmark_rivals::{Rival, serve};
use tracy_client::{Client, plot, span};

struct Tracy;

impl Rival for Tracy {
    fn events(&mut self, n: u64) {
        for i in 0..n {
            plot!("bench.event", black_box(i) as f64);
        }
    }

    fn spans(&mut self, n: u64) {
        for i in 0..n {
            let span = span!("bench.span", 0);
            span.emit_value(black_box(i));
        }
    }
}

fn main() {
    let _client = Client::start();
    serve(&mut Tracy);
    // Its end waits for a profiler in some settings.
    std::process::exit(0);
}
