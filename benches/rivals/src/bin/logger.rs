//! log and env_logger: lines of text to a file, written by the program itself.

use std::fs::File;
use std::hint::black_box;
use std::path::Path;

use env_logger::{Builder, Target};
use log::{LevelFilter, info};
use ringmark_rivals::{Rival, account, lines_with, serve};

struct Logger;

impl Rival for Logger {
    fn events(&mut self, n: u64) {
        for i in 0..n {
            info!("bench.event value={}", black_box(i));
        }
    }
}

fn main() {
    let path = Path::new("lines.log");
    let file = Box::new(File::create(path).expect("a file"));
    let mut builder = Builder::new();
    builder
        .filter_level(LevelFilter::Info)
        .target(Target::Pipe(file))
        .init();
    serve(&mut Logger);
    let (events, bytes) = lines_with(path, "bench.event");
    account(events, 0, bytes);
}
