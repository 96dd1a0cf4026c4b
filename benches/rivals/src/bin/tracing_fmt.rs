//! tracing, its formatter, and its appender's thread, which drops what it cannot keep up with.

use std::fs::File;
use std::hint::black_box;
use std::path::Path;

use ringmark_rivals::{Rival, account, lines_with, serve};
use tracing::{info, info_span};

struct Fmt;

impl Rival for Fmt {
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
    let path = Path::new("lines.log");
    let (writer, guard) = tracing_appender::non_blocking(File::create(path).expect("a file"));
    let dropped = writer.error_counter();
    tracing_subscriber::fmt()
        .with_writer(writer)
        .with_ansi(false)
        .init();
    serve(&mut Fmt);
    drop(guard);
    let (events, bytes) = lines_with(path, "bench.event");
    account(events, dropped.dropped_lines() as u64, bytes);
}
