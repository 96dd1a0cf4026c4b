//! tracing-chrome: its thread writes JSON; the queue to it has no bound.

use std::hint::black_box;
use std::path::Path;

use ringmark_rivals::{Rival, account, lines_with, serve};
use tracing::{info, info_span};
use tracing_chrome::ChromeLayerBuilder;
use tracing_subscriber::prelude::*;

struct Chrome;

impl Rival for Chrome {
    fn events(&mut self, n: u64) {
        for i in 0..n {
            info!(value = black_box(i), "bench.event");
        }
    }

    fn spans(&mut self, n: u64) {
        for i in 0..n {
            let _span = info_span!("bench.span", value = black_box(i)).entered();
        }
    }
}

fn main() {
    let path = Path::new("trace.json");
    let builder = ChromeLayerBuilder::new().file(path).include_args(true);
    let (layer, guard) = builder.build();
    tracing_subscriber::registry().with(layer).init();
    serve(&mut Chrome);
    drop(guard);
    let (events, bytes) = lines_with(path, "bench.event");
    account(events, 0, bytes);
}
